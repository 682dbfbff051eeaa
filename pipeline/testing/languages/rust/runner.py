"""Our program in the box that runs cargo and test executables, and records the results as JSON lines on its socket.

This file is copied out of the package (with what all runners use) and runs alone (`python -I -S`): the
standard library only. It records facts; `cargo.records` makes an observation of them. Each test is a process of its
own, as libtest has no time limit for a test and one that exits would take the others along. Tested code cannot write
records in our name: see `processes`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

from pipeline.testing.languages.runners.processes import WHOLE, Ended, Records, Tail, begin, run

TEXT_LIMIT = 64_000
"""The most bytes that are kept of a process's output."""

_SET_CHILD_SUBREAPER = 36
# what libtest prints when it begins, for each example that has ended, and at the end
_STEP = re.compile(rb"(?:running \d+ tests?|test (?P<over>result): .*|test .+ \.\.\. (?:ok|FAILED|ignored).*)")


class Steps(Tail):
    """The end of libtest's output, and the time since one of its tests last ended.

    `stall_s` is how long one may take after the one before it, None for as long as it likes.
    """

    def __init__(self, limit: int, stall_s: float | None) -> None:
        super().__init__(limit)
        self._stall_s = stall_s
        self._since: float | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add the next bytes of output."""
        super().feed(data)
        *lines, self._rest = (self._rest[-TEXT_LIMIT:] + data).split(b"\n")
        for step in filter(None, map(_STEP.fullmatch, lines)):
            self._since = time.monotonic() if step["over"] is None else None

    def is_stuck(self, now: float) -> bool:
        """Return whether one test has been running for too long."""
        return self._stall_s is not None and self._since is not None and now - self._since >= self._stall_s


def alone(
    argv: list[str],
    limit_s: float,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    *,
    keep: int = TEXT_LIMIT,
    stall_s: float | None = None,
    watched: bool = False,
) -> Ended:
    """Run a program until it ends or meets the limit; none of its processes is left on return.

    With `stall_s` the limit is also that long without the end of one more of the tests that it runs.
    """
    out, err = Steps(keep, stall_s), Tail(keep)
    ended = run(argv, limit_s, out, err, cwd, env, watched=watched, ends=True)
    end_the_rest()
    return ended


def end_the_rest() -> None:
    """Kill all descendants of this process and wait until they have ended."""
    while True:
        for child in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)  # what it leaves in its turn is ours by then
        except ChildProcessError:
            return


def children() -> list[int]:
    """Return this process's children, including those that have ended and were not waited for."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                # the name in parentheses may hold anything
                said = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(said[1]) == os.getpid():
                    found.append(int(process.name))
    return found


_MESSAGES = 200
_RENDERED = 4000
_LIST_S = 60.0
_NAMES = 50_000
_NAMES_BYTES = 8_000_000
_KINDS = frozenset({"test", "benchmark"})
_RESULT = re.compile(r"^test (?P<name>.+?) \.\.\. (?:ok|FAILED|ignored)", re.MULTILINE)
_BEGUN = re.compile(r"^test (?P<name>.+?) \.\.\. \Z", re.MULTILINE)


class TooManyError(Exception):
    """The tests listed at `where` are more than are read."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


class Room:
    """The number and bytes of test names that a listing may still have."""

    def __init__(self) -> None:
        self._names = _NAMES
        self._bytes = _NAMES_BYTES

    def take(self, listed: Ended, where: str) -> list[str]:
        """Return the names in a listing, each once.

        rustdoc also says there how long compiling took, from edition 2024 on.

        Raises:
            TooManyError: there is no room for them.
        """
        lines = (line.rpartition(": ") for line in listed.stdout.splitlines())
        names = list(dict.fromkeys(name for name, _, kind in lines if kind in _KINDS))
        self._names -= len(names)
        self._bytes -= sum(len(json.dumps(name)) for name in names)
        if listed.is_cut or self._names < 0 or self._bytes < 0:
            raise TooManyError(where)
        return names


def build(request: dict[str, Any], records: Records) -> None:
    """Describe the workspace and compile every test target; with `check`, only look for errors."""
    cargo: list[str] = request["cargo"]
    deadline = time.monotonic() + request["timeout_s"]
    ask = [*cargo[: cargo.index("test")], "metadata", "--no-deps", "--format-version=1"]
    described = alone(ask, deadline - time.monotonic(), keep=WHOLE)
    records.write("metadata", **described.facts())
    if described.code:
        return
    compile_tests(cargo, request["do"], records, deadline - time.monotonic())
    if request["do"] == "build":
        records.write("documented", packages=documented(json.loads(described.stdout)))


def list_tests(request: dict[str, Any], records: Records) -> None:
    """List the tests of executables: each is started, so compiled files must be read-only.

    Raises:
        TooManyError: they hold more than is taken.
    """
    deadline = time.monotonic() + request["timeout_s"]
    room, more = Room(), Room()
    for executable in request["executables"]:
        argv = [executable, "--list", "--format", "terse"]
        listed = alone(argv, min(deadline - time.monotonic(), _LIST_S), keep=_NAMES_BYTES)
        names = room.take(listed, executable) if is_listing(listed) else None
        listed = alone([*argv, "--ignored"], min(deadline - time.monotonic(), _LIST_S), keep=_NAMES_BYTES)
        ignored = more.take(listed, executable) if is_listing(listed) else []
        records.write("listed", executable=executable, names=names, ignored=ignored)
        if is_late(deadline, records):
            return


def is_listing(listed: Ended) -> bool:
    """Return whether an executable answers `--list --format terse`; a harness of the project's own may not."""
    lines = [line for line in listed.stdout.splitlines() if line.strip()]
    whole = lines[1:] if listed.is_cut else lines  # the first is torn then
    return not listed.code and all(line.rpartition(": ")[2] in _KINDS for line in whole)


def list_examples(request: dict[str, Any], records: Records) -> None:
    """List the examples in packages' documentation; from edition 2024 on this compiles and starts them.

    Raises:
        TooManyError: there are more than are taken.
    """
    deadline = time.monotonic() + request["timeout_s"]
    room = Room()
    for package in request["packages"]:
        argv = [*request["cargo"], "--doc", "--package", package, "--", "--list", "--format", "terse"]
        listed = alone(argv, deadline - time.monotonic(), keep=_NAMES_BYTES)
        names = [] if listed.code else room.take(listed, package)
        records.write("doctests_listed", package=package, names=names)
        if is_late(deadline, records):
            return


def is_late(deadline: float, records: Records) -> bool:
    """Return whether the time is used up, and record it."""
    late = time.monotonic() >= deadline
    if late:
        records.write("out_of_time")
    return late


def compile_tests(cargo: list[str], how: str, records: Records, limit_s: float) -> None:
    """Compile (or only `check`), and record errors and test executables."""
    at = cargo.index("test")
    whole = [] if "--workspace" in cargo else ["--workspace"]
    # what `cargo test --no-run` compiles; but what one target lacks says nothing about the others
    options = ["--tests", "--profile=test", "--keep-going", "--message-format=json"]
    built = alone([*cargo[:at], how, *options, *whole, *cargo[at + 1 :]], limit_s, keep=WHOLE)
    errors = 0
    for message in map(json_of, built.stdout.splitlines()):
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            records.write("artifact", message=message)
        elif message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
            errors += 1
            if errors <= _MESSAGES:
                records.write("error", message=shortened(message))
    records.write("built", code=built.code, stderr=built.stderr[-TEXT_LIMIT:], timed_out=built.timed_out)


def json_of(line: str) -> dict[str, Any]:
    """Return the JSON object on a line, empty for other output such as a build script's."""
    with contextlib.suppress(ValueError):
        message: dict[str, Any] | str | float | None = json.loads(line)
        return message if isinstance(message, dict) else {}
    return {}


def shortened(message: dict[str, Any]) -> dict[str, Any]:
    """Return a compiler message without its long explanation."""
    said: dict[str, Any] = message["message"]
    code, rendered = said.get("code"), said.get("rendered") or ""
    short: dict[str, Any] = {"code": code and code["code"], "children": [], "rendered": rendered[:_RENDERED]}
    return {**message, "message": {**said, **short}}


def documented(metadata: dict[str, Any]) -> list[str]:
    """Return the packages whose library may have examples in its documentation; asking rustdoc is slow."""
    found: list[str] = []
    for package in metadata["packages"]:
        libraries = [target for target in package["targets"] if target.get("doctest") and "bin" not in target["kind"]]
        folders = {Path(target["src_path"]).parent for target in libraries}
        if any(b"```" in path.read_bytes() for folder in folders for path in folder.rglob("*.rs") if path.is_file()):
            found.append(package["name"])
    return found


def run_tests(request: dict[str, Any], records: Records) -> None:
    """Run the chosen tests, each in a process of its own, and the chosen examples of each package in one process."""
    deadline = time.monotonic() + request["timeout_s"]
    limit_s: float = request["per_test_s"] or request["timeout_s"]
    for test in request["tests"]:
        records.write("start", id=test["id"])
        left = min(limit_s, deadline - time.monotonic())
        ended = alone(test["argv"], left, test["cwd"], test["env"], watched=True)
        records.write("ended", id=test["id"], **ended.facts())
        if is_late(deadline, records):
            return
    for asked in request["doctests"]:
        run_examples(asked, request["per_test_s"], deadline, records)
        if is_late(deadline, records):
            return


def run_examples(asked: dict[str, Any], limit_s: float | None, deadline: float, records: Records) -> None:
    """Run the examples of a package, each with the time limit for one test, if there is one.

    rustdoc gives them none, and says only which have ended. Where none ends for as long as the limit, all that run had
    that long; what has not ended is run again one by one, when libtest prints a name before its test runs. Compiling an
    example is part of its time. Options after `--` are split at blanks, so the line of an example stands for its name.
    """
    left: list[str] = asked["names"]
    stopped: list[str] = []
    options: list[str] = []
    while True:
        ended = alone([*asked["argv"], *options], deadline - time.monotonic(), stall_s=limit_s)
        told = {found["name"] for found in _RESULT.finditer(ended.stdout)}
        left = [name for name in left if name not in told]
        hung = stuck(ended, left, serial=bool(options), whole=asked["whole"])
        wanted = [name for name in hung if name in left]
        records.write("doctests_ran", package=asked["package"], hung=wanted, **ended.facts())
        stopped += hung
        left = [name for name in left if not any(line_of(one) in name for one in stopped)]
        if not ended.timed_out or not left or (options and not hung) or time.monotonic() >= deadline:
            return
        skipped = [word for name in stopped for word in ("--skip", line_of(name))]
        options = ["--", "--test-threads=1", *sorted(set(map(line_of, left))), *skipped]


def stuck(ended: Ended, left: list[str], *, serial: bool, whole: bool) -> list[str]:
    """Return the example that did not end, if it can be identified."""
    if not ended.timed_out:
        return []
    begun = _BEGUN.search(ended.stdout) if serial else None
    if begun is not None:
        return [begun["name"]]
    return left if whole and not serial and len(left) == 1 else []


def line_of(name: str) -> str:
    """Return the end of an example's name, `12)`; several may have the same."""
    return name.rpartition("(line ")[2].partition(")")[0] + ")"


def main() -> None:
    """Carry out the request."""
    request, records = begin()
    # what our own processes leave behind becomes ours
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    work = {"build": build, "check": build, "list": list_tests, "examples": list_examples, "test": run_tests}
    try:
        work[request["do"]](request, records)
    except TooManyError as error:
        records.write("too_many", where=error.where, names=_NAMES, size=_NAMES_BYTES)
    records.write("end")


if __name__ == "__main__":
    main()
