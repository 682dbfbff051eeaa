"""What may the user set, where does each value come from, and what may a repository not widen (contract 4)?

Plain frozen models with a default for every key. Start with `model.py`; `load.py` reads the layers, `trust.py` says
which values need the user's word.
"""
