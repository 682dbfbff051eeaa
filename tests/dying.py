"""redfirst as a user starts it, that kills itself (SIGKILL) at a named instant: `dying.py PATTERN NUMBER ARGUMENT...`.

Instants are named before and after every durable write and every git process of the driver: `after journal decision`,
`before replace plan.md`, `after git update-ref ...`. It dies at the NUMBER-th that PATTERN (a regular expression) is
found in. Nothing of redfirst is changed: what is wrapped is the standard library and GitPython below it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

PATTERN, NUMBER = re.compile(sys.argv[1]), int(sys.argv[2])
BEFORE, AFTER = "before", "after"
LOG = os.environ.get("DYING_LOG")
_seen = 0


def instant(name: str) -> None:
    """Pass an instant, or die at it."""
    global _seen  # noqa: PLW0603  (a counter of this process)
    if LOG is not None:
        with Path(LOG).open("a", encoding="utf-8") as log:
            log.write(f"{name}\n")
    if PATTERN.search(name):
        _seen += 1
        if _seen == NUMBER:
            os.kill(os.getpid(), signal.SIGKILL)


def around(call: Callable[..., Any], name_of: Callable[..., str | None], *whens: str) -> Callable[..., Any]:
    """Return *call* with an instant before and one after it (*whens*), where `name_of` its arguments is a name."""

    @wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        name = name_of(*args)
        if name is not None and BEFORE in whens:
            instant(f"{BEFORE} {name}")
        result = call(*args, **kwargs)
        if name is not None and AFTER in whens:
            instant(f"{AFTER} {name}")
        return result

    return wrapped


def _journalled(handle: int) -> str | None:
    path = Path(f"/proc/self/fd/{handle}").readlink()
    if path.name != "journal.jsonl":
        return None
    return f"journal {json.loads(path.read_bytes().splitlines()[-1])['kind']}"


def _replaced(_source: str | Path, target: str | Path) -> str | None:
    name = Path(target).name
    return None if name.endswith(".pyc") else f"replace {name}"  # a cache is no durable write


def _git(_: object, argv: list[str]) -> str | None:
    words = [word for flag, word in pairwise(argv) if not {"-c", "-C"} & {flag, word}]
    return " ".join(["git", *(word for word in words if word != "--no-optional-locks")])


def _ended(process: Any) -> str | None:
    return _git(process, process.args) if process.args[0] == "git" else None


os.fdatasync = around(os.fdatasync, _journalled, BEFORE, AFTER)
os.replace = around(os.replace, _replaced, BEFORE, AFTER)
sys.argv[:] = ["redfirst", *sys.argv[3:]]

from pipeline.faces.cli.main import run  # noqa: E402  (only now: everything below it is wrapped)
from pipeline.repo.gitpython import Git  # noqa: E402  (the same)

Git.execute = around(Git.execute, _git, BEFORE)
subprocess.Popen.communicate = around(cast("Any", subprocess.Popen).communicate, _ended, AFTER)
run()
