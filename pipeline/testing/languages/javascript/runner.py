"""Our program in the box that runs a JavaScript test run's processes, and records their messages on its socket.

This file and what all runners use are copied out of the package and run alone: the standard library only.
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
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline.testing.languages.runners.exec_guard import Watch, how_ended, start
from pipeline.testing.languages.runners.processes import Records, Tail, begin

_LINE = 4_000_000
_SETTLED = ("end", "crashed", "limit")
_HINTS = ("start", "left", "loading", "loaded")
_TAIL = 16_000
_PRINTED = 4_000_000
_TICK_S = 0.05
_LATE_S = 5.0
_NOTICED_S = 3.0
_EXEC = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Progress:
    """The progress of one job, over all its processes."""

    def __init__(self, ids: list[str] | None, files: list[str] | None) -> None:
        self._ids = None if ids is None else set(ids)
        self._files = None if files is None else set(files)
        self.items: set[str] = set()
        self.settled: set[str] = set()
        self.bad_files: set[str] = set()
        self.open: dict[str, float] = {}
        self.pids: dict[str, int] = {}
        self.left: set[str] = set()
        self.loading: set[str] = set()
        self.done = False
        self.forged = ""

    def begin(self) -> None:
        """Reset what belongs to one process."""
        self.open, self.pids, self.left, self.loading, self.done = {}, {}, set(), set(), False

    def take(self, record: dict[str, Any]) -> None:
        """Count one record or hint."""
        kind = record["kind"]
        name = str(record.get("id") or record.get("path") or "")
        if kind == "item":
            self.items.add(name)
        elif kind == "start":
            self.open[name] = time.monotonic()
            self.pids[name] = record["pid"] if isinstance(record.get("pid"), int) else 0
        elif kind in ("left", *_SETTLED):
            self.open.pop(name, None)
            self.left.add(name)
            if kind != "left":
                self.settled.add(name)
        elif kind == "loading":
            self.loading.add(name)
        elif kind in ("loaded", "uncollected", "file"):
            self.loading.discard(name)
            if kind == "uncollected":
                self.bad_files.add(name)
        elif kind == "done":
            self.done = True

    @property
    def remaining(self) -> bool:
        """Return whether a requested test has not ended."""
        return any(
            (self._ids is None or name in self._ids) and (self._files is None or name.partition("::")[0] in self._files)
            for name in self.items - self.settled
        )

    @property
    def known(self) -> tuple[int, int]:
        """Return the number of settled tests and files; a process that adds none will not do better the next time."""
        return len(self.settled), len(self.bad_files)

    def gone(self) -> list[str]:
        """Return the tests that were running in a process that has ended."""
        return sorted(name for name in self.open if self.pids[name] > 0 and not is_alive(self.pids[name]))

    def suspects(self) -> list[str]:
        """Return the tests that may have ended the process: the running ones, else those whose body had just ended."""
        return sorted(self.open) or ([] if self.done else sorted(self.left - self.settled))


class Channel:
    """The records of one process, and the hints that its child processes leave in a file.

    Hints say which test is running where the runner itself learns that too late; they carry no result, and are believed
    only about what then has none.
    """

    def __init__(self, descriptor: int, nonce: str, hints: int | None) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._hints = hints
        self._buffer = b""
        self._hint_buffer = b""
        self._number = 0
        self._is_open = True

    def read(self, wait_s: float) -> tuple[list[dict[str, Any]], str]:
        """Return the new records and hints, and why a line is not ours (empty if all are)."""
        found = self._read_hints()
        if not self._is_open:
            time.sleep(wait_s)
            return found, ""
        ready = select.select([self._descriptor], [], [], wait_s)[0]
        if not ready:
            return found, ""
        part = os.read(self._descriptor, 1 << 20)
        self._is_open = bool(part)
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        if len(self._buffer) > _LINE:
            return found, "a record is too long"
        for line in lines:
            record = self._record(line)
            if record is None:
                return found, f"line {self._number + 1} of the records was not written by the harness"
            found.append(record)
        return found, ""

    def _record(self, line: bytes) -> dict[str, Any] | None:
        nonce, _, rest = line.decode("utf-8", "replace").partition(" ")
        number, _, text = rest.partition(" ")
        if nonce != self._nonce or number != str(self._number):
            return None
        self._number += 1
        return json_of(text)

    def _read_hints(self) -> list[dict[str, Any]]:
        if self._hints is None:
            return []
        *lines, rest = (self._hint_buffer + os.read(self._hints, 1 << 20)).split(b"\n")
        self._hint_buffer = rest[-_LINE:]
        found = [json_of(line.decode("utf-8", "replace")) for line in lines]
        return [one for one in found if one and one["kind"] in _HINTS and isinstance(one.get("id"), str)]


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended; a zombie has."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def json_of(line: str) -> dict[str, Any] | None:
    """Return the JSON object with a `kind` on a line, None if there is none."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("kind"), str) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class PipeTail(Tail):
    """The end of a process's output, read as it comes, so that endless output fills nothing."""

    def __init__(self, pipe: Any) -> None:
        super().__init__(_TAIL)
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe: Any) -> None:
        while part := pipe.read1(65_536):
            self.feed(part)

    def text(self) -> str:
        """Return the kept output; processes that inherited the stream and live on are not waited for."""
        self._thread.join(_LATE_S)
        return super().text()


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
        out, err = PipeTail(process.stdout), PipeTail(process.stderr)
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
