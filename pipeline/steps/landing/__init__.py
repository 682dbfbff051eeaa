"""How do finished runs get onto the base? `redfirst land`: picked onto its tip, verified there, then compare-and-swap.

Start with `train.py`; `table.py` says what follows of what was found, and does no I/O.
"""
