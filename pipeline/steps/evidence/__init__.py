"""What was measured in this run so far, as its artifacts hold it, and a candidate held against that.

Start with `red.py`, then `green.py`.
"""
