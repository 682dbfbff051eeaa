"""The records of cargo, libtest and our runner, as validated values; unknown keys are ignored.

Kinds are Rust's own words; `bases` say in the vocabulary of `judge.evidence` what they amount to. The innermost
frame in the workspace decides there, so places are those of the backtrace; a place in a test region of a production
file is written `src/lib.rs#tests`, which `Layout.collected` knows as a test.

A panic is text on stderr, between whatever else the test prints there. The one that decides is the last of the test's
own thread, so nothing printed before it takes its place. The others say which code a test got to that a caught panic,
or one of another thread, has ended; for them text counts less: the runtime's own frame has to be the innermost, and a
thread has one number. Code that prints all of this by hand is believed: that is as much as one who prints a panic and
returns an error is believed, and both stand in the test for everybody to read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.judge.evidence.observation import Fault, Frame, Missing, Raised
from pipeline.testing.languages.runners.sessions import End, Line, OutOfTime, ProcessLine, Said, Session, Start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.testing.languages.rust.project import Project


class Target(Said):
    """A target that cargo compiles: a library, a program, an integration test."""

    kind: tuple[str, ...]
    name: str
    src_path: str
    test: bool = True

    @property
    def is_test(self) -> bool:
        """Return whether the whole target is tests."""
        return self.kind[0] in {"test", "bench"}

    @property
    def label(self) -> str:
        """Return the part of a test id that distinguishes a package's targets; the library is `lib`."""
        return f"{self.kind[0]}/{self.name}" if self.kind[0] in {"bin", "test", "example", "bench"} else "lib"


class Package(Said):
    """A member of the workspace."""

    name: str
    version: str
    manifest_path: str
    targets: tuple[Target, ...]


class Metadata(Said):
    """The workspace and its packages."""

    packages: tuple[Package, ...]
    workspace_root: str


class Span(Said):
    """A place in a source."""

    file_name: str
    line_start: int
    is_primary: bool
    label: str | None = None


class Diagnostic(Said):
    """A compiler error; `code` is such as `E0432`."""

    message: str
    code: str | None = None
    spans: tuple[Span, ...] = ()
    rendered: str | None = None


class CompilerMessage(Said):
    """A compiler error with the target that it is in."""

    target: Target
    message: Diagnostic


class Artifact(Said):
    """A compiled test executable."""

    manifest_path: str
    target: Target
    executable: str


class MetadataLine(ProcessLine):
    """The output of `cargo metadata`."""

    kind: Literal["metadata"]


class ArtifactLine(Line):
    """A record that a test executable was compiled."""

    kind: Literal["artifact"]
    message: Artifact


class ErrorLine(Line):
    """A record of a compiler error."""

    kind: Literal["error"]
    message: CompilerMessage


class Built(ProcessLine):
    """A record that the compilation ended."""

    kind: Literal["built"]


class Documented(Line):
    """A record of the packages that may have examples in their documentation."""

    kind: Literal["documented"]
    packages: tuple[str, ...]


class Listed(Line):
    """The tests in an executable; no `names` where the project's own harness does not list like libtest."""

    kind: Literal["listed"]
    executable: str
    names: tuple[str, ...] | None
    ignored: tuple[str, ...]


class DoctestsListed(Line):
    """A record of the examples in a package's documentation."""

    kind: Literal["doctests_listed"]
    package: str
    names: tuple[str, ...]


class TooMany(Line):
    """A record that an executable or package lists more tests than `names`, or more than `size` bytes of names."""

    kind: Literal["too_many"]
    where: str
    names: int
    size: int


class TestEnded(ProcessLine):
    """A record that a test ended; `left_aside`: in another than the first thread of its process."""

    kind: Literal["ended"]
    id: str
    left_aside: bool = False


class DoctestsRan(ProcessLine):
    """A record that a run of a package's examples ended; `hung` ones did not end within the limit for one test."""

    kind: Literal["doctests_ran"]
    package: str
    hung: tuple[str, ...] = ()


OfBuild = MetadataLine | ArtifactLine | ErrorLine | Built | Documented
OfTests = Listed | DoctestsListed | TooMany | Start | TestEnded | DoctestsRan
Record = OfBuild | OfTests | OutOfTime | End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


def is_done(session: Session) -> bool:
    """Return whether our runner's records are valid and complete, and no limit of time or size was exceeded."""
    return not session.fault and session.is_whole and not session.is_late and not session.of(TooMany)


def excess(session: Session) -> str:
    """Return a message if there are more tests than are read, else an empty text."""
    found = session.first(TooMany)
    if found is None:
        return ""
    limits = f"at most {found.names:,} names and {found.size:,} bytes of them are taken of one workspace"
    return f"{found.where.rpartition('/')[2]} lists more tests than are taken: {limits}"


def read_metadata(line: MetadataLine) -> Metadata | None:
    """Return the workspace in cargo's output, None if cargo failed."""
    try:
        return Metadata.model_validate(json.loads(line.stdout)) if line.code == 0 else None
    except (ValueError, RecursionError):
        return None


REGION: Final = "#tests"
"""The suffix to a production file's path that means its test regions."""

_MESSAGE_LIMIT: Final = 2000
_FRAME_LIMIT: Final = 60
_BUG: Final = "CompileError"

_FRAME: Final = re.compile(r"^ *\d+: (?P<name>[^\n]+)\n +at (?P<file>[^\n]+?):(?P<line>\d+)(?::\d+)?$", re.MULTILINE)
_SHOULD_PANIC: Final = re.compile(
    r"^(?:note: )?(?P<said>test did not panic as expected|panic did not (?:contain|match) expected)[^\n]*", re.MULTILINE
)
_RETURNED: Final = re.compile(r"^Error: (?P<said>.*)", re.MULTILINE)

_PANICS: Final[Sequence[tuple[re.Pattern[str], str, str]]] = (
    (re.compile(r"not yet implemented"), "todo!", "NotImplementedError"),
    (re.compile(r"not implemented"), "unimplemented!", "NotImplementedError"),
    (re.compile(r"assertion `left (==|!=) right` failed|assertion `?left.* matches"), "assert_eq!", "AssertionError"),
    (re.compile(r"assertion failed"), "assert!", "AssertionError"),
    (re.compile(r"called `\w+::\w+\(\)` on an? `\w+` value"), "unwrap", "AssertionError"),
)
"""Panic messages by pattern, with their origin and exception class. A value that is not `Ok` fails a test's expectation
like an assertion."""

_SAID: Final = re.compile(r"\b(?:panic|unreachable)!")
_UNWRAPPED: Final = re.compile(r"::(?:unwrap_failed|expect_failed)\b")

_LACKS: Final[Sequence[re.Pattern[str]]] = tuple(
    re.compile(pattern)
    for pattern in (
        r"unresolved import `(?P<path>[^`]+)`",
        r"use of (?:undeclared|unresolved)[^`]*`(?P<name>[^`]+)`",
        r"cannot find [^`]*`(?P<name>[^`]+)` in (?:this scope|.*`(?P<owner>[^`]+)`)",
        r"no [^`]*`(?P<name>[^`]+)` found for [^`]*`(?P<owner>[^`]+)`",
        r"no field `(?P<name>[^`]+)` on type `(?P<owner>[^`]+)`",
        r"[^`]*`(?P<owner>[^`]+)` has no field named `(?P<name>[^`]+)`",
        r"could not find `(?P<name>[^`]+)` in `(?P<owner>[^`]+)`",
        r"can't find crate for `(?P<name>[^`]+)`",
        r"method `(?P<name>[^`]+)` is not a member of trait `(?P<owner>[^`]+)`",
    )
)
_MISSING_CRATE: Final = frozenset({"E0432", "E0433", "E0463"})


@dataclass(frozen=True)
class Printed:
    """The output of a failing test, and where it ran.

    Args:
        name: The test, as libtest calls it; its thread has this name.
        stdout: What libtest printed.
        stderr: What the test printed, panics with their backtraces among it.
        cwd: Where the test ran: backtraces name files from there.
    """

    name: str
    stdout: str
    stderr: str
    cwd: str

    @cached_property
    def panics(self) -> Panics:
        """Return the panics in the output."""
        return read_panics(self.stderr)

    def reached(self, project: Project) -> tuple[Frame, ...]:
        """Return the frames of all panics of the test, in any thread, whether they were caught or not."""
        raised = self.panics.raised(self.name)
        return tuple(frame for panic in raised for frame in _frames(panic.stack, project, self.cwd))


def of_panic(printed: Printed, project: Project, *, at: Frame) -> Fault:
    """Return the fault of a failed test by its output.

    Args:
        printed: What it printed.
        project: Its sources tell how places are named.
        at: The test itself, for failures without a place of their own.
    """
    expected = _SHOULD_PANIC.search(printed.stdout)
    if expected is not None:
        raised = Raised(kind="should_panic", bases=("AssertionError",), message=expected[0].removeprefix("note: "))
        return Fault(chain=(raised,), frames=(at,), expectation=True)
    panic = printed.panics.decisive(printed.name)
    if panic is None:
        returned = _RETURNED.search(printed.stderr) or _RETURNED.search(printed.stdout)
        said = returned["said"] if returned is not None else "failed without a panic"
        return Fault(chain=(Raised(kind="Err", bases=("AssertionError",), message=_cut(said)),), frames=(at,))
    file, number = panic.place
    place = project.frame(file, project.workspace, number)
    frames = _frames(panic.stack, project, printed.cwd)
    innermost = next((frame for frame in reversed(frames) if frame.path), place)
    path, line = innermost.path.removesuffix(REGION), innermost.line
    kind, bases = _kind(panic.message, panic.stack, project.line(path, line))
    return Fault(
        chain=(Raised(kind=kind, bases=bases, message=_cut(panic.message)),),
        frames=frames if any(frame.path for frame in frames) else (place if place.path else at,),
        bare=project.is_bare(path, line),
    )


def of_diagnostic(error: Diagnostic, project: Project, *, root: str, crates: frozenset[str]) -> Fault:
    """Return the fault of a compiler error; `crates` are the names of the workspace's own libraries."""
    span = next((span for span in error.spans if span.is_primary), None)
    frames = (project.frame(span.file_name, root, span.line_start),) if span is not None else ()
    if error.code is None:
        return Fault(chain=(Raised(kind="SyntaxError", message=_cut(error.message)),), frames=frames)
    missing = _missing(error, crates)
    bases = (_BUG,) if missing is None else ("ImportError", _BUG)
    raised = Raised(kind=error.code, bases=bases, message=_cut(error.message))
    return Fault(chain=(raised,), frames=frames, missing=missing)


def _missing(error: Diagnostic, crates: frozenset[str]) -> Missing | None:
    found = next((match for pattern in _LACKS if (match := pattern.match(error.message))), None)
    if found is None or error.code is None:
        return None
    parts = found.groupdict()
    owner, _, name = (parts.get("path") or "").rpartition("::")
    name, owner = parts.get("name") or name, _dotted(parts.get("owner") or owner)
    first = (owner or name).partition(".")[0]
    label = next((span.label or "" for span in error.spans if span.is_primary), "")
    if (lacked := re.match(r"no `([^`]+)` in ", label)) and lacked[1] != name:
        name = lacked[1]
    says_crate = error.code in _MISSING_CRATE and "unlinked crate" in f"{error.message} {label}"
    foreign = error.code == "E0463" or (says_crate and first not in {*crates, "crate", "self", "super"})
    return Missing(name=first if foreign else name, owner="" if foreign else owner, first_party=not foreign)


def _kind(message: str, stack: str, source: str) -> tuple[str, tuple[str, ...]]:
    for pattern, kind, base in _PANICS:
        if pattern.match(message):
            return kind, (base,)
    if _UNWRAPPED.search(stack):
        return "expect", ("AssertionError",)
    return ("panic!", ("Failed",)) if _SAID.search(source) else ("panic", ())


def _frames(stack: str, project: Project, cwd: str) -> tuple[Frame, ...]:
    """Return the frames of a backtrace, outermost first, without the closure that libtest calls."""
    found = [
        project.frame(match["file"], cwd, int(match["line"]), _function(match["name"]))
        for match in _FRAME.finditer(stack)
        if not match["file"].startswith("/rustc/")
    ]
    merged = [frame for at, frame in enumerate(found) if at == 0 or frame != found[at - 1]]
    return tuple(reversed(merged[:_FRAME_LIMIT]))


def _function(symbol: str) -> str:
    """Return `greet.core.Greeter.greet` for `<greet::core::Greeter as core::fmt::Display>::greet` and the like."""
    plain = re.sub(r"<(?:impl )?([^<>]*?)(?: as [^<>]*)?>::", r"\1::", symbol)
    while (shorter := re.sub(r"(?:::)?<[^<>]*>", "", plain)) != plain:
        plain = shorter
    return _dotted(plain.replace("::{{closure}}", ""))


def _dotted(path: str) -> str:
    return path.replace("::", ".").strip("&. ")


def _cut(message: str) -> str:
    return message[:_MESSAGE_LIMIT]


_PANIC: Final = re.compile(
    r"^thread '(?P<thread>.*)'(?: \((?P<number>\d+)\))? panicked at (?P<file>[^\n]+?):(?P<line>\d+):\d+:\n",
    re.MULTILINE,
)
_STACK: Final = re.compile(r"^stack backtrace:\n", re.MULTILINE)
_NOTE: Final = re.compile(r"^note: (?:run with|Some details)", re.MULTILINE)
_RUNTIME: Final = re.compile(
    r" *0: (?:__rustc(?:\[[0-9a-f]+\])?::)?(?:rust_begin_unwind|std::panicking::begin_panic\w*)(?:::.*)?\n"
)
_SCOPED: Final = "a scoped thread panicked"
_SCOPE: Final = re.compile(r"^ *\d+: std::thread::scoped::scope\b", re.MULTILINE)


@dataclass(frozen=True)
class Panic:
    """One panic. `number` is the thread's, empty before Rust 1.91; `body` is all that follows up to the next panic.

    `place` is the file, as the compiler was given it, and the line.
    """

    thread: str
    number: str
    place: tuple[str, int]
    body: str

    @cached_property
    def message(self) -> str:
        """Return the panic's message."""
        ends = [found.start() for found in (_STACK.search(self.body), _NOTE.search(self.body)) if found is not None]
        return (self.body[: min(ends)] if ends else self.body).strip()

    @cached_property
    def stack(self) -> str:
        """Return the panic's backtrace, empty if it has none."""
        found = _STACK.search(self.body)
        return self.body[found.end() :] if found is not None else ""

    @property
    def is_raised(self) -> bool:
        """Return whether the backtrace begins in the runtime's panic code."""
        return _RUNTIME.match(self.stack) is not None

    @property
    def passes_on(self) -> bool:
        """Return whether the panic only reports that a thread of `std::thread::scope` has panicked."""
        return self.message == _SCOPED and _SCOPE.search(self.stack) is not None


@dataclass(frozen=True)
class Panics:
    """The panics of one test, in the order of the output."""

    all: tuple[Panic, ...]

    def decisive(self, test: str) -> Panic | None:
        """Return the panic by which the test failed, None if there is none.

        Args:
            test: The name of the test's thread.
        """
        last = self._last(test)
        if last is None or not last.passes_on:
            return last
        before = self.all[: self.all.index(last)]
        others = (panic for panic in reversed(before) if panic.is_raised and not panic.passes_on)
        return next((panic for panic in others if (panic.thread, panic.number) != (last.thread, last.number)), last)

    def raised(self, test: str) -> tuple[Panic, ...]:
        """Return the panics that were really raised, as far as text can show; caught ones and other threads' included.

        Args:
            test: The name of the test's thread.
        """
        last = self._last(test)
        return tuple(panic for panic in self.all if panic.is_raised and (last is None or _fits(panic, last)))

    def _last(self, test: str) -> Panic | None:
        own = (panic for panic in reversed(self.all) if panic.thread in {test, "main"})
        return next(own, self.all[-1] if self.all else None)


def read_panics(printed: str) -> Panics:
    """Return the panics in what a test printed."""
    found = list(_PANIC.finditer(printed))
    following = [match.start() for match in found[1:]] + [len(printed)] * bool(found)
    return Panics(
        tuple(
            Panic(head["thread"], head["number"] or "", (head["file"], int(head["line"])), printed[head.end() : end])
            for head, end in zip(found, following, strict=True)
        )
    )


def _fits(panic: Panic, last: Panic) -> bool:
    """Return whether a panic's thread name and number are consistent with those of the last panic."""
    if bool(panic.number) != bool(last.number):
        return False
    return not last.number or (panic.thread == last.thread) == (panic.number == last.number)
