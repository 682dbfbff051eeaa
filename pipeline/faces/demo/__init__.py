"""`redfirst demo`: a whole run on an example project, with scripted agents that are announced as scripted.

Start with `command.py`; `project` is the example, somebody else's code.
"""
