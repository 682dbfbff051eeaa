"""Who may change what, and which commands may an agent run?

Pure rules about paths, roles and texts; they know no language, no run and no disk. Start with `rights.py`: its
`judge` decides on one change. Then read `roles.py` and `commands.py`.
"""
