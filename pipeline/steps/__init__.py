"""What is done at each step of the matrix? One module for each: it dispatches, measures, and returns one event.

Never a routing decision. Start with `context.py`, what every step is given, then
`write_tests.py` and `implement.py`. What steps share stands in `asking`, `evidence` and `publication`.
"""

from __future__ import annotations
