"""What does a commit claim, and does it still hold? `redfirst verify` and `redfirst tdd`.

No agent, no run, nothing written down. Start with `recheck.py` (verify) and `tdd.py`.
"""
