"""What does a run leave in the repository? Its commits, the issues that it files, its summary.

Start with `commits.py`; `steps.publish` and `steps.failure` put it there.
"""
