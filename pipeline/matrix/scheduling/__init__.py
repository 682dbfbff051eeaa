"""Which steps of a graph may run side by side, and in what order do the others follow?

Pure: steps are names, dependencies and patterns of paths; what a step does is not known here. It imports nothing of
ours but the folding of paths (`policy.paths`). Start with `graph.py`, whose `planned` draws an edge for each conflict;
`patterns.py` says whether two patterns have a path in common.
"""
