"""How do finished runs get onto the base? `redfirst land`: picked onto its tip, verified there, then compare-and-swap.

It may import what `verify` and publication are made of, and is called by `service`. Start with `train.py`; `table.py`
says what follows of what was found, and does no I/O.
"""
