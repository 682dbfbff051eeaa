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
import sys
from functools import partial, wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATTERN, NUMBER = re.compile(sys.argv[1]), int(sys.argv[2])
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


def around(call: Callable[..., Any], name_of: Callable[..., str | None]) -> Callable[..., Any]:
    """Return *call* with an instant before and one after it, where `name_of` its arguments is a name."""

    @wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        name = name_of(*args)
        if name is None:
            return call(*args, **kwargs)
        instant(f"before {name}")
        result = call(*args, **kwargs)
        instant(f"after {name}")
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


def _git(argv: list[str]) -> str:
    words = [word for flag, word in pairwise(argv) if not {"-c", "-C"} & {flag, word}]
    return " ".join(["git", *(word for word in words if word != "--no-optional-locks")])


def begun(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return GitPython's *call* with an instant before it; the one after it is when what it began has ended."""

    @wraps(call)
    def wrapped(git: object, argv: list[str], **options: Any) -> Any:
        instant(f"before {_git(argv)}")
        started = call(git, argv, **options)
        process = started.proc  # a process each, and a reader of objects that stays
        process.communicate = partial(_ended, process.communicate, _git(argv))
        return started

    return wrapped


def _ended(call: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    result = call(*args, **kwargs)
    instant(f"after {name}")
    return result


os.fdatasync = around(os.fdatasync, _journalled)
os.replace = around(os.replace, _replaced)
sys.argv[:] = ["redfirst", *sys.argv[3:]]

from pipeline.faces.cli.main import run  # noqa: E402  (only now: everything below it is wrapped)
from pipeline.repo.gitpython import Git  # noqa: E402  (the same)

Git.execute = begun(Git.execute)
run()
