"""What follows what in the run of an issue? Every decision is a row of one table (`matrix`), read by one pure function.

`machine.py` is a machine of the engine; nothing else of ours is imported. Start with `matrix.py`; `vocabulary.py` has
the words, `state.py` what a run has come to, `render.py` the pictures in DESIGN.md, `simulation.py` plays it without
agents.
"""
