"""Makes a `Fault` from the output of a failing test.

Kinds are Go's own words; `bases` say in the vocabulary of `pipeline.evidence` what they amount to. The innermost frame
in the workspace decides there.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Fault, Frame, Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.languages.go.output import Call, Log, Output, Panic
    from pipeline.languages.go.sources import TestFunction

SILENT: Final = "t.Fail"
"""The kind of a failure without a message."""

_MESSAGE_LIMIT: Final = 2000
_FRAME_LIMIT: Final = 60
_STUB: Final = re.compile(r"(?:not (?:yet )?implemented|unimplemented)\b", re.IGNORECASE)
_RUNTIME: Final = re.compile(r"runtime error: |interface conversion: |assignment to entry in nil map|reflect: ")
_GOEXIT: Final = "test executed panic(nil) or runtime.Goexit"
_TRACE: Final = re.compile(r"Error Trace:.*?(?=^\s*Error:)", re.DOTALL | re.MULTILINE)
_SAID_BY_TEST: Final = re.compile(r"\bpanic\(|\.(?:Panic|Panicf|Panicln)\(")


@dataclass(frozen=True)
class Sources:
    """The functions and tables that find paths and lines in sources for a `Fault`.

    Args:
        relative: From a file as a stack names it to its path in the workspace, empty outside it.
        near: From a file as a test's log names it to its path: beside the test first.
        line: A line of a file of the workspace.
        logs: Lines (by path) on which something is only written down.
        is_test: Whether a path is a test file.
    """

    relative: Callable[[str], str]
    near: Callable[[str, str], str]
    line: Callable[[str, int], str]
    logs: Mapping[str, frozenset[int]]
    is_test: Callable[[str], bool]


def of_failure(name: str, output: Output, test: TestFunction, sources: Sources) -> Fault:
    """Return the fault of a test or subtest that `testing` reported as failed.

    A test that said nothing itself failed because of its subtests: the first of them that did says why.
    """
    for candidate in (name, *_below(name, output)):
        log = _decisive(output.logs.get(candidate, ()), test, sources)
        if log is not None:
            path = sources.near(log.file, posixpath.dirname(test.path))
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


def of_panic(panic: Panic, test: TestFunction, sources: Sources) -> Fault:
    """Return the fault of a test that panicked, or whose code had a data race."""
    frames = _frames(panic.calls, sources)
    own = next((frame for frame in reversed(frames) if frame.path), None)
    at = Frame(path=test.path, line=test.first, function=test.name)
    by_test = own is not None and sources.is_test(own.path) and _SAID_BY_TEST.search(sources.line(own.path, own.line))
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


def _below(name: str, output: Output) -> Sequence[str]:
    return [entry for entry, result in output.results.items() if entry.startswith(f"{name}/") and result == "FAIL"]


def _decisive(logs: Sequence[Log], test: TestFunction, sources: Sources) -> Log | None:
    """Return the first message that was no mere note, else None; the race detector's file is `testing.go`."""
    for log in logs:
        path = sources.near(log.file, posixpath.dirname(test.path))
        if log.line not in sources.logs.get(path, frozenset()) and log.file != "testing.go":
            return log
    return None


def _frames(calls: Sequence[Call], sources: Sources) -> tuple[Frame, ...]:
    """Return the frames of a stack, outermost first."""
    found: list[Frame] = []
    for call in calls[:_FRAME_LIMIT]:
        path = sources.relative(call.file)
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
