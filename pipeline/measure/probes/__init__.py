"""Do a task's GREEN tests prove anything: would they fail without the change, and do they reach it?

Start reading at `all_probes`, which calls `repeat`, `revert`, `reach` and `mutation`. `evidence` has the results,
`words` tells them. It may import what `measure` may.
"""
