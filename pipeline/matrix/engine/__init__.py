"""How is any workflow driven so that a crash loses nothing? The engine does not know what an issue is.

A machine (`protocols.py`) decides what follows an event; a run (`run.py`) journals each decision and is folded from
its journal; the loop (`loop.py`) asks for the next event until the run ends or waits for a person. Where a run is
kept, and who may drive it, are ports (`Store`, `Lease`), whose files are in the room `run`. Read `loop.py`,
`run.py`, `protocols.py`. The first machine is `routing.advance`.
"""
