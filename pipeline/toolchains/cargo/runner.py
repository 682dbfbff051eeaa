"""Runs cargo and test executables inside the box, and writes down what happened, as JSON lines on its socket.

This file is copied out of the package (with `recording` and `watched`) and runs alone (`python -I -S`): the standard
library only. It records facts; `cargo.records` makes an observation of them. Each test is a process of its own, as
libtest has no time limit for a test and one that exits would take the others along. Tested code cannot write records in
our name: see `recording`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline.toolchains.recording import Records, begin
from pipeline.toolchains.watched import Watch, start

_TEXT_LIMIT = 64_000
_WHOLE = 64_000_000
_MESSAGES = 200
_RENDERED = 4000
_LIST_S = 60.0
_LOOK_S = 0.2
_LOOKED_AT = 1_000_000
# what libtest prints when it begins, for each example that has ended, and at the end
_STEP = re.compile(
    rb"^(?:running \d+ tests?|test (?P<over>result): .*|test .+ \.\.\. (?:ok|FAILED|ignored).*)$", re.MULTILINE
)
_RESULT = re.compile(r"^test (?P<name>.+?) \.\.\. (?:ok|FAILED|ignored)", re.MULTILINE)
_BEGUN = re.compile(r"^test (?P<name>.+?) \.\.\. \Z", re.MULTILINE)


class Ended:
    """How one process ended, with the end of what it printed."""

    def __init__(self, code: int, stdout: str, stderr: str, *, timed_out: bool, watch: Watch | None = None) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.timed_out = timed_out
        self.watch = watch or Watch()

    def facts(self) -> dict[str, Any]:
        """Return the same for a record; a code below 0 is a signal."""
        said = {"code": self.code, "stdout": self.stdout, "stderr": self.stderr, "timed_out": self.timed_out}
        return {**said, **self.watch.facts()}


def run(
    argv: list[str],
    limit_s: float,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    keep: int = _TEXT_LIMIT,
    stall_s: float | None = None,
    *,
    watched: bool = False,
) -> Ended:
    """Run to the end or to the limit; its whole process group is dead on return, whoever holds its streams.

    With `stall_s` the limit is also that long without the end of one more of the tests that it runs; `watched` if no
    other program may take its place.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process, watch = start(
                argv,
                watched=watched,
                ends=True,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return Ended(127, "", f"{argv[0]}: {error.strerror}", timed_out=False)
        timed_out = not is_over(process, max(limit_s, 0.1), out.fileno(), stall_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return Ended(code, tail(out, keep), tail(err, keep), timed_out=timed_out, watch=watch)


def is_over(process: subprocess.Popen[bytes], limit_s: float, out: int, stall_s: float | None) -> bool:
    """Wait for the end, and return whether it came in time; `out` is what the process prints into."""
    deadline = time.monotonic() + limit_s
    step, since = None, time.monotonic()
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(left if stall_s is None else max(min(left, _LOOK_S), 0))
        except subprocess.TimeoutExpired:
            pass
        else:
            return True
        now = time.monotonic()
        if stall_s is None or now >= deadline:
            return False
        if (found := last_step(out)) != step:
            step, since = found, now
        if step is not None and step[1] and now - since >= stall_s:
            return False


def last_step(out: int) -> tuple[int, bool] | None:
    """Return where the last sign of progress stands, and whether tests are running since; None before the first."""
    start = max(0, os.fstat(out).st_size - _LOOKED_AT)
    # read without moving to it: the process writes where the file is at
    steps = [
        (start + found.start(), found["over"] is None) for found in _STEP.finditer(os.pread(out, _LOOKED_AT, start))
    ]
    return steps[-1] if steps else None


def tail(file: Any, limit: int = _TEXT_LIMIT) -> str:
    """Return the end of what was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - limit))
    return file.read().decode("utf-8", "replace")


def build(request: dict[str, Any], records: Records) -> None:
    """Ask what there is, compile every test target, and list what they hold; with `check`, look for errors only."""
    cargo: list[str] = request["cargo"]
    deadline = time.monotonic() + request["timeout_s"]
    left = lambda: deadline - time.monotonic()  # noqa: E731  (the one thing that changes from call to call)
    described = run([*cargo[: cargo.index("test")], "metadata", "--no-deps", "--format-version=1"], left(), keep=_WHOLE)
    records.write("metadata", **described.facts())
    if described.code:
        return
    artifacts = compile_tests(cargo, request["do"], records, left())
    if request["do"] == "check":
        return
    for artifact in artifacts:
        argv = [artifact["executable"], "--list", "--format", "terse"]
        listed = run(argv, min(left(), _LIST_S), keep=_WHOLE)
        ignored = run([*argv, "--ignored"], min(left(), _LIST_S), keep=_WHOLE)
        records.write("listed", executable=artifact["executable"], ignored=ignored.stdout, **listed.facts())
    for package in documented(json.loads(described.stdout)):
        listed = run([*cargo, "--doc", "--package", package, "--", "--list", "--format", "terse"], left(), keep=_WHOLE)
        records.write("doctests_listed", package=package, **listed.facts())


def compile_tests(cargo: list[str], how: str, records: Records, limit_s: float) -> list[dict[str, Any]]:
    """Compile (or only `check`), record errors and executables, and return the artifacts that hold tests."""
    at = cargo.index("test")
    whole = [] if "--workspace" in cargo else ["--workspace"]
    # what `cargo test --no-run` compiles; but what one target lacks says nothing about the others
    options = ["--tests", "--profile=test", "--keep-going", "--message-format=json"]
    built = run([*cargo[:at], how, *options, *whole, *cargo[at + 1 :]], limit_s, keep=_WHOLE)
    artifacts: list[dict[str, Any]] = []
    errors = 0
    for message in map(json_of, built.stdout.splitlines()):
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            artifacts.append(message)
            records.write("artifact", message=message)
        elif message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
            errors += 1
            if errors <= _MESSAGES:
                records.write("error", message=shortened(message))
    records.write("built", code=built.code, stderr=built.stderr[-_TEXT_LIMIT:], timed_out=built.timed_out)
    return artifacts


def json_of(line: str) -> dict[str, Any]:
    """Return the message on a line; what is none (a build script that prints there) is nothing."""
    try:
        message: dict[str, Any] | str | float | None = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def shortened(message: dict[str, Any]) -> dict[str, Any]:
    """Return a compiler message without the compiler's textbook."""
    said: dict[str, Any] = message["message"]
    code, rendered = said.get("code"), said.get("rendered") or ""
    short: dict[str, Any] = {"code": code and {"code": code["code"]}, "children": [], "rendered": rendered[:_RENDERED]}
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
    """Run the chosen tests, each in a process of its own, and the chosen examples of each package in one."""
    deadline = time.monotonic() + request["timeout_s"]
    limit_s: float = request["per_test_s"] or request["timeout_s"]
    for test in request["tests"]:
        records.write("start", id=test["id"])
        left = min(limit_s, deadline - time.monotonic())
        ended = run(test["argv"], left, test["cwd"], test["env"], watched=True)
        records.write("ended", id=test["id"], **ended.facts())
        if time.monotonic() >= deadline:
            records.write("out_of_time")
            return
    for asked in request["doctests"]:
        run_examples(asked, request["per_test_s"], deadline, records)
        if time.monotonic() >= deadline:
            records.write("out_of_time")
            return


def run_examples(asked: dict[str, Any], limit_s: float | None, deadline: float, records: Records) -> None:
    """Run the examples of a package, each with a limit if there is one.

    rustdoc gives them none, and says only which have ended. Where none ends for as long as the limit, all that run had
    that long; what has not ended is run again one by one, when libtest prints a name before its test runs. Compiling an
    example is part of its time. Options after `--` are split at blanks, so the line of an example stands for its name.
    """
    left: list[str] = asked["names"]
    stopped: list[str] = []
    options: list[str] = []
    while True:
        ended = run([*asked["argv"], *options], deadline - time.monotonic(), stall_s=limit_s)
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
    """Return the example that did not come to an end, if one can be named."""
    if not ended.timed_out:
        return []
    begun = _BEGUN.search(ended.stdout) if serial else None
    if begun is not None:
        return [begun["name"]]
    return left if whole and not serial and len(left) == 1 else []


def line_of(name: str) -> str:
    """Return the last word of where an example stands, `12)`; others may have the same, and share its lot."""
    return name.rpartition("(line ")[2].partition(")")[0] + ")"


def main() -> None:
    """Do what is asked for."""
    request, records = begin()
    if request["do"] in {"build", "check"}:
        build(request, records)
    else:
        run_tests(request, records)
    records.write("end")


if __name__ == "__main__":
    main()
