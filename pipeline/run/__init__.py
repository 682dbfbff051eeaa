"""What is a run on disk? Its folder, journal, lock, claim and private checkout.

The disk is the truth: what a run has come to is folded from its journal. `folder.py` and `lease.py` are the engine's
ports as files, for any machine; the rest is of an issue's run. Start with `run.py`, then `journal_kinds.py` (the
kinds of lines) and `store.py`.
"""
