"""The program in the box that plays one entry of a script as an agent would. See `scripted.Answer`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def play(entry: dict[str, Any]) -> int:
    """Carry out the entry's actions in order and return the exit code."""
    for name, content in entry["files"].items():
        path = Path(name)
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    if entry["run"] is not None and (code := subprocess.run(entry["run"], check=False).returncode) != 0:
        return code if code > 0 else 128 - code
    time.sleep(entry["sleep_s"])
    if entry["report"] is not None:
        Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps(entry["report"]), encoding="utf-8")
    if entry["stdout"] is not None:
        sys.stdout.write(entry["stdout"])
    return entry["exit"]


if __name__ == "__main__":
    sys.exit(play(json.load(sys.stdin)))
