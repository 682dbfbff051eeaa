"""Parses a test process's output: begun tests and their results, messages, panics and races with their stacks.

All of it comes from streams that the tests write to as well. So nothing here is believed where it would raise trust:
`go.records` takes from it what a failure says, and lets it contradict an exit code, never replace one.

Kinds are Go's own words; `bases` say in the vocabulary of `judge.evidence` what they amount to. The innermost frame
in the workspace decides there.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pipeline.judge.evidence.observation import Fault, Frame, Raised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.testing.languages.go.project import Project
    from pipeline.testing.languages.go.sources import TestFunction


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
        if (begin or end) and not f"{name}/".startswith(f"{test}/"):
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


def _calls(text: str, frame: re.Pattern[str] = _FRAME) -> tuple[Call, ...]:
    """Return the frames of the first stack in a text."""
    stack, _, _ = text.partition("\n\n")
    return tuple(
        Call(match["name"], match["file"], int(match["line"]))
        for match in frame.finditer(f"{stack}\n")
        if not match["name"].startswith("created by ")
    )


def read_race(stderr: str) -> Panic | None:
    """Return the first reported data race, with the stack of the access that was noticed; None if there is none."""
    found = _RACE.search(stderr)
    if found is None:
        return None
    return Panic("data race", _calls(found["body"], _RACE_FRAME))


SILENT: Final = "t.Fail"
"""The kind of a failure without a message."""

_MESSAGE_LIMIT: Final = 2000
_FRAME_LIMIT: Final = 60
_STUB: Final = re.compile(r"(?:not (?:yet )?implemented|unimplemented)\b", re.IGNORECASE)
_RUNTIME: Final = re.compile(r"runtime error: |interface conversion: |assignment to entry in nil map|reflect: ")
_GOEXIT: Final = "test executed panic(nil) or runtime.Goexit"
_TRACE: Final = re.compile(r"Error Trace:.*?(?=^\s*Error:)", re.DOTALL | re.MULTILINE)
_SAID_BY_TEST: Final = re.compile(r"\bpanic\(|\.(?:Panic|Panicf|Panicln)\(")


def of_failure(name: str, output: Output, test: TestFunction, project: Project) -> Fault:
    """Return the fault of a test or subtest that `testing` reported as failed.

    A test that said nothing itself failed because of its subtests: the first of them that did says why.
    """
    failed = [entry for entry, result in output.results.items() if result == "FAIL" and entry.startswith(f"{name}/")]
    for candidate in (name, *failed):
        log = _decisive(output.logs.get(candidate, ()), test, project)
        if log is not None:
            path = project.near(log.file, posixpath.dirname(test.path))
            frame = Frame(path=path or test.path, line=log.line if path else test.first, function=_dotted(candidate))
            bare = path == test.path and log.line in test.bare
            raised = Raised(kind="t.Error", bases=("AssertionError",), message=_message(log.said))
            return Fault(chain=(raised,), frames=(frame,), bare=bare)
    at = Frame(path=test.path, line=test.first, function=_dotted(name))
    if test.kind == "Example":
        raised = Raised(kind="Example", bases=("AssertionError",), message=_message(output.printed.get(name, "")))
        return Fault(chain=(raised,), frames=(at,), expectation=True)
    raised = Raised(kind=SILENT, bases=("AssertionError",), message="failed without a message")
    return Fault(chain=(raised,), frames=(at,), bare=bool(test.bare))


def of_panic(panic: Panic, test: TestFunction, project: Project) -> Fault:
    """Return the fault of a test that panicked, or whose code had a data race."""
    frames = _frames(panic.calls, project)
    own = next((frame for frame in reversed(frames) if frame.path), None)
    at = Frame(path=test.path, line=test.first, function=test.name)
    by_test = (
        own is not None and own.path.endswith("_test.go") and _SAID_BY_TEST.search(project.line(own.path, own.line))
    )
    kind, bases = _kind(panic.said, by_test=bool(by_test))
    return Fault(
        chain=(Raised(kind=kind, bases=bases, message=_message(panic.said)),),
        frames=frames if own is not None else (at,),
        bare=own is not None and own.path == test.path and own.line in test.bare,
    )


def _kind(said: str, *, by_test: bool) -> tuple[str, tuple[str, ...]]:
    if _STUB.match(said):
        return "panic", ("NotImplementedError",)
    if said == "data race":
        return "data race", ()
    if said.startswith(_GOEXIT):
        return "runtime.Goexit", ()
    if _RUNTIME.match(said):
        return "runtime error", ()
    return "panic", ("Failed",) if by_test else ()


def _decisive(logs: Sequence[Log], test: TestFunction, project: Project) -> Log | None:
    """Return the first message that was no mere note, else None; the race detector's file is `testing.go`."""
    for log in logs:
        path = project.near(log.file, posixpath.dirname(test.path))
        if log.line not in project.logs.get(path, frozenset()) and log.file != "testing.go":
            return log
    return None


def _frames(calls: Sequence[Call], project: Project) -> tuple[Frame, ...]:
    """Return the frames of a stack, outermost first."""
    found: list[Frame] = []
    for call in calls[:_FRAME_LIMIT]:
        path = project.relative(call.file)
        module, function = split_name(call.name)
        found.append(Frame(path=path, module=module, line=call.line if path else 0, function=function))
    return tuple(reversed(found))


def split_name(name: str) -> tuple[str, str]:
    """Return the import path and `Type.Method` of a function name in a stack: `a.b/c.(*T).M(...)`."""
    plain = name[: name.rindex("(")] if name.endswith(")") else name
    plain = plain.removesuffix("-fm")  # a method as a value
    folder, slash, last = plain.rpartition("/")
    package, _, function = last.partition(".")
    function = re.sub(r"\[[^\]]*\]", "", function)
    return f"{folder}{slash}{package}".replace("%2e", "."), re.sub(r"\(\*?([^()]*)\)", r"\1", function)


def _message(said: str) -> str:
    """Return a message without extra blanks; of assertion libraries' tables the part after the stack."""
    shown = _TRACE.sub("", said)
    lines = [" ".join(line.split()) for line in shown.strip().splitlines()]
    return "\n".join(line for line in lines if line)[:_MESSAGE_LIMIT] or "failed without a message"


def _dotted(name: str) -> str:
    return name.replace("/", ".")
