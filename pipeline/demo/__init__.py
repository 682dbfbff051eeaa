"""What does `redfirst demo` show? A whole run on an example project, with scripted agents that it calls scripted.

It may import what `cli` may. Start with `command.py`; `project` is the example, somebody else's code.
"""
