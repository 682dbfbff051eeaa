"""An honest @make for GAL-1 of the kit: looks with git, runs the project's tests, and leaves what its tools leave.

Usage: tidy_maker.py SECONDS, how long the processes that it leaves behind would sleep. What it sees goes to stdout as
one JSON object per line; the report is the last one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKED = '    if not name:\n        raise ValueError("a name is needed")\n    return'


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def told(*argv: str) -> None:
    """Run a command of the box and say what came of it."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    say(command=" ".join(argv), code=done.returncode, out=done.stdout + done.stderr)


def main() -> None:
    json.load(sys.stdin)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    told("git", "status", "--porcelain")
    told("python", "-m", "pytest", "-q", "-p", "pytest_cov", "--cov=greet")

    greet = Path("greet.py")
    greet.write_text(greet.read_text(encoding="utf-8").replace("    return", CHECKED), encoding="utf-8")
    told("git", "diff", "--stat")
    told("git", "stash")
    told("git", "stash", "pop")
    told("git", "commit", "--all", "--message", "refuse empty names")
    told("git", "log", "--oneline")

    told("python", "-m", "pytest", "-q", "tests/test_greet.py")
    told("ruff", "check", "greet.py")
    for trace in (".hypothesis/examples/1", "greet.egg-info/PKG-INFO", "tests/.greet.py.swp"):
        Path(trace).parent.mkdir(parents=True, exist_ok=True)
        Path(trace).write_text("left behind\n", encoding="utf-8")
    # one of them in a session of its own, the other one holding stdout open
    subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True, stdout=subprocess.DEVNULL)
    subprocess.Popen(["sleep", sys.argv[1]])
    say(result="COMPLETE", summary="raises ValueError")


main()
