"""How do steps ask roles? What each is handed, what it may change, and what an answer counts for.

Start with `dispatches.py`: which role still has to be asked, and asking it.
"""
