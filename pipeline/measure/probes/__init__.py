"""The probes of a task's tests, once they are GREEN: would they fail without the change, and do they look at it?

Start reading at `all_probes`, which calls `repeat`, `revert`, `reach` and `mutation`. `evidence` has the results,
`words` tells them. It may import what `measure` may.
"""
