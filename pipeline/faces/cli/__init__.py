"""What does a person type, and what is printed? One module for each command or group, no logic.

A command parses words, makes one call into the room `app`, and prints words or one JSON document. Start with `main.py`;
`errors.py` is the one handler of what goes wrong.
"""
