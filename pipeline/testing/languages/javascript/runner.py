"""Our program in the box that runs a JavaScript test run's processes, and records their messages on its socket.

This file, `channel` and what all runners use are copied out of the package and run alone: the standard library only.
Each process gets its request on descriptor 3 and answers on descriptor 4, each line with the nonce of that process. The
request to this program comes over a socket, with a nonce of its own, and it is closed to its children. It is the one
that sees a test hang or take its process along: it ends that process, and has another one run what is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline.testing.languages.javascript.channel import Channel, Progress
from pipeline.testing.languages.runners.exec_guard import Watch, how_ended, start
from pipeline.testing.languages.runners.processes import Records, begin

_TAIL = 16_000
_PRINTED = 4_000_000
_TICK_S = 0.05
_LATE_S = 5.0
_NOTICED_S = 3.0
_EXEC = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Tail:
    """The end of a process's output, read as it comes, so that endless output fills nothing."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while part := self._pipe.read1(65_536):
            self._kept = (self._kept + part)[-_TAIL:]

    def text(self) -> str:
        """Return the kept output; processes that inherited the stream and live on are not waited for."""
        self._thread.join(_LATE_S)
        return self._kept.decode("utf-8", "replace")


class Job:
    """One test file, or all of them for runners with processes of their own; its processes run one after another."""

    def __init__(self, number: int, asked: dict[str, Any], request: dict[str, Any], records: Records) -> None:
        self._number = number
        self._asked = asked
        self._per_test_s: float | None = request["per_test_s"]
        self._deadline: float = request["deadline"]
        self._records = records
        self._progress = Progress(asked["request"]["ids"], asked["request"]["files"])
        self._serial = False

    def run(self) -> None:
        """Run processes until all requested tests have ended, nothing more can be learnt, or the time is over."""
        progress = self._progress
        for _ in range(1 + self._asked["restarts"]):
            before = (*progress.known, self._serial)
            progress.begin()
            self._once()
            ended = progress.done or (self._asked["file"] in progress.bad_files)
            if progress.forged or (ended and not progress.remaining) or time.monotonic() >= self._deadline:
                return
            if before == (*progress.known, self._serial):
                return

    def _once(self) -> None:
        nonce = secrets.token_hex(16)
        hints = self._open_hints()
        process, watch, descriptor = self._start(nonce)
        channel = Channel(descriptor, nonce, hints)
        out, err = Tail(process.stdout), Tail(process.stderr)
        timed_out, late, gone = self._watch(process, channel)
        code = end(process)
        self._drain(channel)
        os.close(descriptor)
        if hints is not None:
            os.close(hints)
        progress = self._progress
        how = how_ended(code)
        if gone and not progress.forged:
            self._blame("crashed", [name for name in gone if name in progress.open], "ended its process")
        elif not progress.forged:
            self._judge(how, late, timed_out)
        self._records.write(
            "ended",
            job=self._number,
            code=code,
            timed_out=timed_out,
            forged=progress.forged,
            done=progress.done,
            stdout=out.text(),
            stderr=err.text(),
            **watch.facts(),
        )

    def _start(self, nonce: str) -> tuple[subprocess.Popen[bytes], Watch, int]:
        asked, progress = self._asked, self._progress
        more = {"done": sorted(progress.settled), "bad_files": sorted(progress.bad_files), "serial": self._serial}
        ask_read, ask_write = connected()
        tell_read, tell_write = connected()
        high = [move_up(one) for one in (ask_read, tell_write)]
        process, watch = start(
            [sys.executable, "-I", "-S", "-c", _EXEC, *map(str, high), *asked["argv"]],
            programs=2,
            cwd=asked["cwd"],
            env={**os.environ, **asked["env"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=high,
            start_new_session=True,
        )
        for one in high:
            os.close(one)
        data = json.dumps({**asked["request"], **more, "nonce": nonce}).encode()
        threading.Thread(target=feed, args=(ask_write, data), daemon=True).start()
        return process, watch, tell_read

    def _open_hints(self) -> int | None:
        """Create the hints file anew and open it: deleting it only keeps hints of later processes away."""
        if self._asked["hints"] is None:
            return None
        Path(self._asked["hints"]).unlink(missing_ok=True)
        return os.open(self._asked["hints"], os.O_RDONLY | os.O_CREAT, 0o666)

    def _watch(self, process: subprocess.Popen[bytes], channel: Channel) -> tuple[bool, list[str], list[str]]:
        """Read records until the process ends or must be ended.

        Returns:
            Whether all the time is used up, the tests that had too much of it, and those whose process is no more while
            the one that started it has not noticed.
        """
        progress = self._progress
        missed: dict[str, float] = {}
        while True:
            ended = process.poll() is not None
            self._take(*channel.read(_TICK_S))
            now = time.monotonic()
            if progress.forged or ended:
                return False, [], []
            if now >= self._deadline:
                return True, sorted(progress.open), []
            missed = {name: missed.get(name, now) for name in progress.gone()}
            gone = sorted(name for name, since in missed.items() if now - since > _NOTICED_S)
            limit = self._per_test_s
            late = [name for name, since in progress.open.items() if limit is not None and now - since > limit]
            if gone or late:
                return False, sorted(set(late) - missed.keys()), sorted(missed)

    def _drain(self, channel: Channel) -> None:
        """Read the remaining records; a process that lives on and holds the stream is not waited for."""
        until = time.monotonic() + _LATE_S
        while not self._progress.forged and time.monotonic() < until:
            records, forged = channel.read(0)
            self._take(records, forged)
            if not records:
                return

    def _take(self, records: list[dict[str, Any]], forged: str) -> None:
        for record in records:
            self._progress.take(record)
            if record["kind"] not in ("left", "loading", "loaded"):
                self._records.write("said", job=self._number, said=record)
        if forged:
            self._progress.forged = forged

    def _judge(self, how: str, late: list[str], timed_out: bool) -> None:
        """Record which tests ended with the process or were ended with it, and which files while loading."""
        progress = self._progress
        if timed_out or late:
            self._blame("limit", [name for name in late if name in progress.open], how)
            return
        tests, files = progress.suspects(), sorted(progress.loading)
        if len(tests) + len(files) > 1 and not progress.done and not self._serial:
            self._serial = True  # several at once: the next process does one after the other, and shows which it is
            return
        if not tests and not files and not progress.done and not progress.items:
            files = [self._asked["file"]] if self._asked["file"] and not progress.bad_files else []
        self._blame("crashed", tests, "ended its process" if progress.done else how)
        for path in files if not tests else []:
            self._say({"kind": "uncollected", "path": path, "errors": [], "how": how})

    def _blame(self, kind: str, names: list[str], how: str) -> None:
        for name in names:
            self._say({"kind": kind, "id": name, "how": how})

    def _say(self, facts: dict[str, Any]) -> None:
        self._progress.take(facts)
        self._records.write("said", job=self._number, said=facts)


def connected() -> tuple[int, int]:
    """Return the two ends of a socket that, unlike a pipe, nobody can open by name to read messages back."""
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def move_up(descriptor: int) -> int:
    """Return a duplicate of the descriptor with a number of at least 10, since 3 and 4 are used otherwise."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return high


def feed(descriptor: int, data: bytes) -> None:
    """Write the request; a process that ends without reading it is no failure."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill the process and its group; return its exit code, below 0 for a signal."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def run_tests(request: dict[str, Any], records: Records) -> None:
    """Run the jobs, several at a time."""
    request["deadline"] = time.monotonic() + request["timeout_s"]
    jobs = [Job(number, asked, request, records) for number, asked in enumerate(request["jobs"])]

    def work(job: Job) -> None:
        if time.monotonic() < request["deadline"]:
            job.run()

    with ThreadPoolExecutor(max(1, min(os.cpu_count() or 1, len(jobs)))) as pool:
        list(pool.map(work, jobs))  # raises what one of them has raised
    if time.monotonic() >= request["deadline"]:
        records.write("out_of_time")


def run_plain(request: dict[str, Any], records: Records) -> None:
    """Run programs that are no tests, one after the other, and record their output."""
    deadline = time.monotonic() + request["timeout_s"]
    for number, asked in enumerate(request["jobs"]):
        left = max(0.1, deadline - time.monotonic())
        try:
            done = subprocess.run(
                asked["argv"],
                cwd=asked["cwd"],
                env={**os.environ, **asked["env"]},
                input=asked["stdin"].encode(),
                capture_output=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            records.write("out_of_time")
            return
        out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
        records.write("printed", job=number, code=done.returncode, stdout=out[:_PRINTED], stderr=err[-_TAIL:])


def main() -> None:
    """Carry out the request."""
    request, records = begin()
    (run_tests if request["do"] == "test" else run_plain)(request, records)
    records.write("end")
