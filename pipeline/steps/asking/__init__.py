"""How do steps ask roles? What each is handed, what it may change, and what an answer counts for.

It may import what steps may, and no step. Start with `dispatches.py`: which role still has to be asked, and asking it.
"""
