"""How `agents.py` measures: a model that tells when it was asked, and the memory of a process and of those below it.

The model is `tests/model_service` as a process of its own, so that it takes the interpreter's lock from nobody. Its log
is a pipe, and a request is noted in it before it is answered: the arrival of a line is the time of the request. All
times are of the one monotonic clock that processes share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
SERVE: Final = ROOT / "tests" / "model_service" / "serve.py"
LIMIT_S: Final = 300.0
"""For one asking; an agent that takes longer is broken, and so is the bench."""

_EACH_S: Final = 0.03
_SHARE: Final = 8
"""Reading the memory of a large process takes milliseconds: so many times as long nothing is read."""

_LATE_S: Final = 0.1
"""On a busy machine a line may be read a moment after the answer that it came before."""

Entry = dict[str, Any]


@dataclass(frozen=True)
class Asking:
    """One asking of an agent, in milliseconds and megabytes.

    Args:
        before: From the start to the first request that the model saw.
        between: From there to the last one.
        after: From there to the end.
        memory: The most that it took at a time.
        driver: What of that was in the process of redfirst.
    """

    before: float
    between: float
    after: float
    memory: float
    driver: float = 0.0

    @property
    def whole(self) -> float:
        return self.before + self.between + self.after


@dataclass(frozen=True)
class StreamFacts:
    """What whoever asks knows of it: when it began and ended, and the memory."""

    began: float
    ended: float
    memory: float
    driver: float = 0.0


# --- time -----------------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """The scripted model."""

    url: str
    requests: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When, by conversation; what products ask beside the work is left out."""

    def asking(self, number: int, heard: StreamFacts) -> Asking:
        """Return the figures of the conversation *number*; only of a model that serves no more."""
        first, last = self.requests[number][0], self.requests[number][-1]
        if first < heard.began or last > heard.ended + _LATE_S:
            raise RuntimeError(f"conversation {number} lasted from {first} to {last}: {heard}")
        before, between, after = first - heard.began, last - first, max(0.0, heard.ended - last)
        return Asking(1000 * before, 1000 * between, 1000 * after, heard.memory, heard.driver)


@contextmanager
def serving(folder: Path, script: Sequence[Entry]) -> Generator[Model]:
    """Serve a script; the times of requests are complete after the end.

    Raises:
        RuntimeError: something was asked that the script does not have, so that the figures mean nothing.
    """
    folder.mkdir()
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    log, port = folder / "log", folder / "port"
    os.mkfifo(log)
    argv = [sys.executable, str(SERVE), "--script", str(folder / "script.json")]
    process = subprocess.Popen([*argv, "--port-file", str(port), "--log", str(log)], stderr=subprocess.PIPE)
    lines = os.open(log, os.O_RDWR | os.O_CLOEXEC)  # to have a writer at all times: the pipe does not end
    model = Model("")
    listener = threading.Thread(target=_listen, args=(lines, model))
    listener.start()
    try:
        model.url = f"http://127.0.0.1:{_appears(port, process)}"
        yield model
    finally:
        process.terminate()
        _, complaint = process.communicate()
        os.write(lines, b"null\n")
        listener.join()
        os.close(lines)
    if process.returncode:
        raise RuntimeError(f"the script does not fit: {complaint.decode(errors='replace')}")


def _listen(lines: int, model: Model) -> None:
    with open(lines, "rb", closefd=False) as stream:
        for line in stream:
            now = time.monotonic()
            request = json.loads(line)
            if request is None:
                return
            if request["conversation"] is not None:
                model.requests[request["conversation"]].append(now)


def _appears(file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + LIMIT_S
    while not file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the model does not serve")
        time.sleep(0.01)
    return file.read_text(encoding="ascii")


# --- memory ---------------------------------------------------------------------------------------------------------


class Watch:
    """Reads the memory of a process, and of all below it, until the end of the `with`.

    What processes share is divided between them (PSS). A process that may not be read counts as nothing. One counts
    from the second time that it is seen: while it is being started it shows the memory of its parent as its own.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._samples: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def peak(self) -> tuple[float, float]:
        """Return the most megabytes at a time, and those of the process itself among them."""
        return max(self._samples, default=(0.0, 0.0))

    def _watch(self) -> None:
        pause, known = 0.0, set[int]()
        while not self._over.wait(pause):
            began = time.monotonic()
            below = set(_below(self.pid))
            own = pss(self.pid)
            self._samples.append((own + sum(pss(pid) for pid in below & known), own))
            known = below
            pause = max(_EACH_S, _SHARE * (time.monotonic() - began))


def pss(pid: int) -> float:
    """Return the megabytes of one process."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _below(pid: int) -> Iterator[int]:
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (names are all that is wanted)
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split():
                yield int(child)
                yield from _below(int(child))
    except OSError:
        return


# --- a process that asks in itself ----------------------------------------------------------------------------------


@contextmanager
def started(argv: Sequence[str], cwd: Path, env: Mapping[str, str], errors: Path) -> Generator[subprocess.Popen[bytes]]:
    """Start a process in a group of its own, of which nothing is left afterwards.

    Raises:
        RuntimeError: it took too long.
    """
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    late = threading.Timer(LIMIT_S, _kill, (process,))
    late.start()
    with process:
        try:
            yield process
        finally:
            _kill(process)
            late.cancel()


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return


def asked_within(argv: Sequence[str], cwd: Path, env: Mapping[str, str], errors: Path, times: int) -> list[StreamFacts]:
    """Start a program that asks once for every line that it is sent, and let it ask so many times.

    It says a line when it is ready. Its own memory counts as what it grew by since then.

    Raises:
        RuntimeError: the program ended early.
    """
    found: list[StreamFacts] = []
    with started(argv, cwd, env, errors) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        _line(process.stdout, errors)
        rest = pss(process.pid)
        for _ in range(times):
            with Watch(process.pid) as watch:
                process.stdin.write(b"\n")
                process.stdin.flush()
                said = json.loads(_line(process.stdout, errors))
            whole, own = watch.peak()
            found.append(StreamFacts(said["began"], said["ended"], whole - rest, own - rest))
        process.stdin.close()
        process.wait()
    return found


def _line(stream: IO[bytes], errors: Path) -> bytes:
    line = stream.readline()
    if not line:
        raise RuntimeError(errors.read_text(encoding="utf-8", errors="replace"))
    return line
