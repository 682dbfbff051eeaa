"""What a program that watches runs is told: a closed list of events, read from the journals.

It reads no file; `pipeline/app/event_stream.py` does. Start with `mapping.py`:
which line of a journal is which event.
"""
