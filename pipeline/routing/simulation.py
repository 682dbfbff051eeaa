"""placeholder"""

from __future__ import annotations
from pipeline.routing.actions import Again, LeaveOut
from pipeline.routing.matrix import ASKS


def dispatches_due(decision, after):
    if after.outcome is not None or isinstance(decision.action, LeaveOut):
        return 0
    return 1 if isinstance(decision.action, Again) else len(ASKS.get(after.step, ()))
