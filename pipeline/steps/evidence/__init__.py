"""What was measured in this run so far, as its artifacts hold it, and a candidate held against that.

It may import what steps may, and no step. Start with `records.py`, then `green.py`.
"""
