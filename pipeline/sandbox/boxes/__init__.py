"""What isolates a command: which box works here, what is shown in it, and how is it ended with the driver?

A box runs a `process.Command` and returns a `process.Completed`; it knows no agent, no view and no run. A new box is a
class with the protocol of `process.Box` and a line in `box.py`. Start there, then with `bubblewrap.py`;
`namespace_helper.py`, `supervisor.py` and `canary_probe.py` run alone, as programs.
"""
