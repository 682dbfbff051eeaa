"""Who may change what, and which commands may an agent run?

Pure rules about paths, roles and texts; they know no language, no run and no disk. Start with `scope.py`, whose `judge`
decides on one change, then `roles.py` and `commands.py`.
"""
