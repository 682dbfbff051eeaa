"""What may each role answer, and which signal follows from its answer?

Pure: no I/O anywhere in this package. Start with `kinds.py`, the table of what is asked; `parse.py` finds the report in
an answer, `drafts.py`, `reviews.py` and `work.py` have the fields.
"""
