"""What does a commit claim, and does it still hold? `redfirst verify` and `redfirst tdd`.

No agent, no run, nothing written down. It may import `measure` and what decides, and knows no step. Start with
`recheck.py` (verify) and `tdd.py`.
"""
