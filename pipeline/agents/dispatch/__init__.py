"""How is one agent asked, from the prompt to the admitted change?

A dispatch shows a view in a box, runs a backend, and lets the gate judge what changed. Start with `dispatcher.py`,
then `gate.py`; `views` and `boxes` are packages of their own.
"""
