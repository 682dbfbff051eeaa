"""Starts redfirst as a process of its own, which lives on when whoever started it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.files import disk
from pipeline.run.lease import driver_of
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM: Final = "import redfirst; redfirst.main()"
_BEGINS_S: Final = 30
_LANDS_S: Final = 20
"""Seconds for which somebody waits for an answer; to measure again can take longer."""
_POLL_S: Final = 0.05
_MOST_KEPT: Final = 50


def resume(folder: Path) -> None:
    """Let a process of its own go on with the run in *folder*; return once it is driven, or has been.

    Raises:
        UserError: it does not go on, and why.
    """
    process, place = _started(["resume", folder.name, "--json"], folder.parents[1])
    until = time.monotonic() + _BEGINS_S
    while time.monotonic() < until and driver_of(folder) is None:  # a worker may have been quicker
        if process.poll() is not None:
            _tell(place)
            return
        time.sleep(_POLL_S)


def land(name: str, worktree: Path) -> None:
    """Let a process of its own put the commits of a run on their base; return when it has, or is still measuring.

    Raises:
        UserError: they did not go there, and why.
    """
    process, place = _started(["land", name, "--json"], worktree)
    try:
        process.wait(_LANDS_S)
    except subprocess.TimeoutExpired:  # the run's journal will say what came of it
        return
    for line in _tell(place)["runs"]:
        if line["status"] in {"waits", "refused"}:
            reason = Reason.LOCKED if line["status"] == "waits" else Reason.STALE
            raise UserError(". ".join(line["why"]), reason, actions=tuple(line["safe_next_actions"]))


def work(worktree: Path) -> None:
    """Let a process of its own drive what is in the queue, until nothing is left that can begin."""
    _started(["work", "--once"], worktree)


def _started(argv: list[str], worktree: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """Start redfirst in a worktree; return the process, and the folder of what it says."""
    place = _place(os.environ)
    environ = {**os.environ, "PATH": without_the_repository(os.environ.get("PATH", ""), worktree)}
    with (place / "result.json").open("wb") as out, (place / "log.txt").open("wb") as err:
        process = subprocess.Popen(  # -P: nothing is imported from the repository
            [sys.executable, "-P", "-c", _PROGRAM, *argv],
            cwd=worktree,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # nothing of it stays when it has ended
    return process, place


def _tell(place: Path) -> dict[str, Any]:
    """Return the document of a process that has ended and had something to do.

    Raises:
        UserError: it had not.
    """
    try:
        document: dict[str, Any] = json.loads((place / "result.json").read_bytes())
    except ValueError:
        log = (place / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
        raise UserError(f"It ended without an answer: {log[-500:]}", Reason.ENVIRONMENT, path=str(place)) from None
    facts: dict[str, Any] | None = document.get("error")
    if facts is not None:
        known = {reason.value for reason in Reason}
        reason = Reason(facts["kind"]) if facts["kind"] in known else Reason.ENVIRONMENT
        following = tuple(facts["safe_next_actions"])
        raise UserError(str(facts["message"]), reason, actions=following)
    return document


def _place(environ: Mapping[str, str]) -> Path:
    """Return a new folder for what a driver says; the oldest are removed."""
    folder = state_folder(environ) / "drivers"
    with disk(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)[:-_MOST_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=folder))
