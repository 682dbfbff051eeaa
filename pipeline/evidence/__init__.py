"""What does a measured test run prove? Classification, the RED ledger, GREEN, regressions.

Pure: values in, values out; it imports nothing of ours, and knows no language. Start with
`observation.py` (the facts), then `red_classes.py`, `classify.py`, `ledger.py` (RED) and `compare.py` (GREEN).
"""
