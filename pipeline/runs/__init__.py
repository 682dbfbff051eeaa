"""What is a run on disk? Its folder, journal, lock, claim and private checkout (architecture 5 and 9).

The disk is the truth: what a run has come to is folded from its journal. It may import `git`, `routing` and `reports`.
Start with `run.py`, then `events.py` (the kinds of lines) and `store.py`.
"""
