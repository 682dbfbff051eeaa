"""What stands between an agent in the box and its model: one address, the user's credential on our side only.

A box with network `model` has one socket to connect to. What comes in there is judged (`rules`), counted (`limits`),
given the credential and carried to the configured service and nowhere else (`exchange`), and written down (`log`).
Each connection carries one request, so that nothing can hide behind one.
"""
