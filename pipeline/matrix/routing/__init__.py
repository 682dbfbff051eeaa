"""What follows what in the run of an issue? Every decision is a row of one table (`matrix`), read by one pure function.

`advance.py` is a machine of the engine; nothing else of ours is imported. Start with `matrix.py`; `vocabulary.py` has
the words, `state.py` what a run has come to, `lookup.py` what the tables say of that, `lanes.py` tasks side by side,
`render.py` the pictures in DESIGN.md; `simulation.py` plays it without agents.
"""
