"""As many faults are tried side by side as this process may use cores."""

from __future__ import annotations

import os
import subprocess
import sys


def test_so_many_at_a_time_as_there_are_cores_for_this_process() -> None:
    said = "from pipeline.testing.measure.mutation import usable_cores; print(usable_cores())"
    alone = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); {said}"
    told = [subprocess.check_output([sys.executable, "-c", code], text=True).strip() for code in (said, alone)]
    assert told == [str(min(len(os.sched_getaffinity(0)), 8)), "1"]
