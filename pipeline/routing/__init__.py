"""What follows what? Every decision is a row of one table (`matrix`), read by one pure function (`machine`).

It imports nothing of ours. Start with `matrix.py`; `vocabulary.py` has the words, `state.py` what a run has come to,
`render.py` the pictures in DESIGN.md, `simulation.py` plays it without agents.
"""
