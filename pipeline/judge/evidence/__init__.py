"""What does a measured test run prove? Classification, RED tests, GREEN, regressions.

Pure: values in, values out; it imports nothing of ours, and knows no language. Start with
`observation.py` (the facts), then `red_classes.py`, `classify.py`, `red_tests.py` (RED) and `compare.py` (GREEN).
"""
