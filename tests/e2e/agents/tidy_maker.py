"""An honest @make for GAL-1 of the kit: looks with git, runs the project's tests, and leaves what its tools leave.

What it sees goes to stdout, one JSON object per line; the report is the last one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def told(*argv: str) -> str:
    """Run a command of the box and print what came of it."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    print(json.dumps({"argv": argv, "code": done.returncode, "out": done.stdout + done.stderr}))
    return done.stdout


def main() -> None:
    json.load(sys.stdin)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    told("git", "status", "--porcelain")
    told("python", "-m", "pytest", "-q", "--cov=greet")

    greet = Path("greet.py")
    done = greet.read_text().replace(
        "    return", '    if not name:\n        raise ValueError("a name is needed")\n    return'
    )
    greet.write_text(done)
    told("git", "diff", "--stat")
    told("git", "stash")
    told("git", "stash", "pop")
    told("git", "commit", "--all", "--message", "refuse empty names")
    told("git", "log", "--oneline")

    told("python", "-m", "pytest", "-q", "tests/test_greet.py")
    told("ruff", "check", "greet.py")
    told("sh", "-c", "env HYPOTHESIS_STORAGE_DIRECTORY= true; mkdir -p .hypothesis/examples greet.egg-info")
    for trace in (".hypothesis/examples/1", "greet.egg-info/PKG-INFO", "tests/.greet.py.swp"):
        Path(trace).write_text("left behind\n")
    with Path("/dev/null").open("wb") as nowhere:
        left = subprocess.Popen(["sleep", "4321"], start_new_session=True, stdout=nowhere, stderr=nowhere)
    subprocess.Popen(["sleep", "4321"])  # holds stdout open as well
    print(json.dumps({"background": left.pid}))
    print(json.dumps({"result": "COMPLETE", "summary": "raises ValueError"}))


main()
