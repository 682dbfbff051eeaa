"""Parses a test process's output: begun tests and their results, messages, panics and races with their stacks.

All of it comes from streams that the tests write to as well. So nothing here is believed where it would raise trust:
`go.records` takes from it what a failure says, and lets it contradict an exit code, never replace one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Result = Literal["PASS", "FAIL", "SKIP"]

_BEGIN: Final = re.compile(r"=== (?:RUN|CONT|NAME|PAUSE) +(?P<name>\S+)$")
_END: Final = re.compile(r"--- (?P<result>PASS|FAIL|SKIP): (?P<name>\S+) \(\d+(?:\.\d+)?s\)$")
_WORD: Final = re.compile(r"(?:PASS|FAIL)$")
_LOG: Final = re.compile(r"(?:^|.*?) {4}(?P<file>[^\s:]+\.go):(?P<line>\d+): ?(?P<said>.*)$")
_MORE: Final = re.compile(r"^ {8}")
_SAID_LINES: Final = 60
_NAMES: Final = 10_000

_PANIC: Final = re.compile(r"^panic: ", re.MULTILINE)
_FATAL: Final = re.compile(r"^fatal error: (?P<said>.*)$", re.MULTILINE)
_ROUTINE: Final = re.compile(r"^goroutine \d+[^\n]*:\n", re.MULTILINE)
_FURTHER: Final = re.compile(r"\n(?:\tpanic: |\[signal |\[recovered\])")
_RECOVERED: Final = re.compile(r" \[recovered[^\]]*\]$", re.MULTILINE)
_FRAME: Final = re.compile(r"^(?P<name>\S.*)\n\t(?P<file>[^\n]+?\.\w+):(?P<line>\d+)(?: .*)?$", re.MULTILINE)
_RACE: Final = re.compile(r"^WARNING: DATA RACE\n(?P<body>.*?)^={10,}$", re.MULTILINE | re.DOTALL)
_RACE_FRAME: Final = re.compile(r"^  (?P<name>\S.*)\(\)\n {6}(?P<file>[^\n]+?\.\w+):(?P<line>\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Log:
    """A message of a test by `t.Log`, `t.Error` and the like; the file is a bare name, or absolute."""

    file: str
    line: int
    said: str


@dataclass
class Output:
    """The parsed stdout of one test process. `begun` and `results` are by test name, subtests with slashes.

    `current` is the test that was last said to go on, `last_word` what `testing` says of the process as a whole.
    """

    begun: dict[str, None] = field(default_factory=dict[str, None])
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    logs: dict[str, list[Log]] = field(default_factory=dict[str, list[Log]])
    printed: dict[str, str] = field(default_factory=dict[str, str])
    last_word: str = ""
    current: str = ""

    @property
    def busy(self) -> str:
        """Return the innermost test that was running when the process ended."""
        name = self.current
        while self.results.get(name) in {"PASS", "SKIP"} and "/" in name:
            name = name.rpartition("/")[0]
        return name


@dataclass(frozen=True)
class Call:
    """A frame of a stack: the function with its import path, and its place."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Panic:
    """A panic, a fatal error of the runtime (then `fatal`), or a data race, with its stack, innermost first."""

    said: str
    calls: tuple[Call, ...]
    fatal: bool = False


def read_output(stdout: str, test: str) -> Output:
    """Return the parsed output of a process that ran the top-level `test`; lines about other tests are left out."""
    found = Output(current=test)
    tail: list[str] = []
    for line in stdout.split("\n"):
        begin, end = _BEGIN.search(line), _END.search(line)
        name = (begin or end or {"name": ""})["name"]
        if (begin or end) and not _is_of(name, test):
            continue
        if begin is not None:
            found.current = name
            if len(found.begun) < _NAMES:
                found.begun[name] = None
        elif end is not None:
            _ended(found, name, end["result"])  # pyright: ignore[reportArgumentType]  the pattern says so
            tail = []
        elif test in found.results and _WORD.search(line):
            found.last_word = line[-4:]
            found.printed[test] = "\n".join(tail).strip()
        else:
            tail.append(line)
            _said(found.logs.setdefault(found.current, []), line)
    return found


def _is_of(name: str, test: str) -> bool:
    return name == test or name.startswith(f"{test}/")


def _ended(found: Output, name: str, result: Result) -> None:
    known = found.results.get(name)
    # what is said twice is believed where it is worse
    if known is None or (known != "FAIL" and result != "PASS"):
        found.results[name] = result


def _said(logs: list[Log], line: str) -> None:
    begun = _LOG.match(line)
    if begun is not None:
        logs.append(Log(begun["file"], int(begun["line"]), begun["said"]))
    elif logs and _MORE.match(line) and logs[-1].said.count("\n") < _SAID_LINES:
        logs[-1] = Log(logs[-1].file, logs[-1].line, f"{logs[-1].said}\n{line.strip()}")


def read_panic(stderr: str) -> Panic | None:
    """Return the panic that ended a process with exit code 2, None if the output does not look like the runtime's."""
    words = [*_PANIC.finditer(stderr), *_FATAL.finditer(stderr)]
    found = max(words, key=lambda match: match.start(), default=None)  # a process dies of the last one
    if found is None:
        return None
    routine = _ROUTINE.search(stderr, found.end())
    message = stderr[found.end() : routine.start() if routine is not None else len(stderr)]
    if found.re is _FATAL:
        return Panic(found["said"], _own_routine(stderr, found.end()), fatal=True)
    further = _FURTHER.search(message)
    said = _RECOVERED.sub("", message[: further.start()] if further is not None else message)
    calls = _calls(stderr[routine.end() :]) if routine is not None else ()
    return Panic("\n".join(line.strip() for line in said.strip().splitlines()), calls)


def _own_routine(stderr: str, at: int) -> tuple[Call, ...]:
    """Return the stack of the goroutine that runs the test; the main one only waits for it."""
    stacks = [_calls(stderr[match.end() :]) for match in list(_ROUTINE.finditer(stderr, at))[:10]]
    waiting = (stack for stack in stacks if not any(call.name.startswith("main.main") for call in stack))
    return next(waiting, stacks[0] if stacks else ())


def _calls(text: str) -> tuple[Call, ...]:
    stack = text.partition("\n\n")[0]
    return tuple(_frames(_FRAME, stack))


def _frames(pattern: re.Pattern[str], text: str) -> Iterator[Call]:
    for match in pattern.finditer(text):
        if not match["name"].startswith("created by "):
            yield Call(match["name"], match["file"], int(match["line"]))


def read_race(stderr: str) -> Panic | None:
    """Return the first reported data race, with the stack of the access that was noticed; None if there is none."""
    found = _RACE.search(stderr)
    if found is None:
        return None
    first, _, _ = found["body"].partition("\n\n")
    return Panic("data race", tuple(_frames(_RACE_FRAME, f"{first}\n")))
