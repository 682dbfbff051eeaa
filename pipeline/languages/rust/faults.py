"""Makes a `Fault` from the output of a failed test or from a compiler error.

Kinds are Rust's own words; `bases` say in the vocabulary of `pipeline.evidence` what they amount to. The innermost
frame in the workspace decides there, so places are those of the backtrace; a place in a test region of a production
file is written `src/lib.rs#tests`, which `Layout.collected` knows as a test.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Fault, Frame, Missing, Raised
from pipeline.languages.rust.panics import read_panics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.languages.rust.messages import Diagnostic
    from pipeline.languages.rust.panics import Panics

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
class Sources:
    """The functions that find paths and lines in sources for a `Fault`.

    Args:
        relative: From a file as the compiler or a backtrace names it (in the folder given) to its path in the
            workspace, empty outside it.
        is_region: Whether a line of a file is compiled for tests only, in a file that is production otherwise.
        is_bare: Whether a line states failure without looking at anything.
        line: A line of a file of the workspace.
    """

    relative: Callable[[str, str], str]
    is_region: Callable[[str, int], bool]
    is_bare: Callable[[str, int], bool]
    line: Callable[[str, int], str]

    def frame(self, file: str, folder: str, line: int, function: str = "") -> Frame:
        """Return a traceback frame; its path is empty outside the workspace."""
        path = self.relative(file, folder)
        shown = f"{path}{REGION}" if path and self.is_region(path, line) else path
        return Frame(path=shown, module=function.rpartition(".")[0], line=line if path else 0, function=function)


@dataclass(frozen=True)
class Printed:
    """The output of a failing test, and where it ran.

    Args:
        name: The test, as libtest calls it; its thread has this name.
        stdout: What libtest printed.
        stderr: What the test printed, panics with their backtraces among it.
        root: Where the compiler ran: panics name files from there.
        cwd: Where the test ran: backtraces name files from there.
    """

    name: str
    stdout: str
    stderr: str
    root: str
    cwd: str

    @cached_property
    def panics(self) -> Panics:
        """Return the panics in the output."""
        return read_panics(self.stderr)

    def reached(self, sources: Sources) -> tuple[Frame, ...]:
        """Return the frames of all panics of the test, in any thread, whether they were caught or not."""
        raised = self.panics.raised(self.name)
        return tuple(frame for panic in raised for frame in _frames(panic.stack, sources, self.cwd))


def of_panic(printed: Printed, sources: Sources, *, at: Frame) -> Fault:
    """Return the fault of a failed test by its output.

    Args:
        printed: What it printed.
        sources: How places are named.
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
    place = sources.frame(file, printed.root, number)
    frames = _frames(panic.stack, sources, printed.cwd)
    innermost = next((frame for frame in reversed(frames) if frame.path), place)
    path, line = innermost.path.removesuffix(REGION), innermost.line
    kind, bases = _kind(panic.message, panic.stack, sources.line(path, line))
    return Fault(
        chain=(Raised(kind=kind, bases=bases, message=_cut(panic.message)),),
        frames=frames if any(frame.path for frame in frames) else (place if place.path else at,),
        bare=sources.is_bare(path, line),
    )


def of_diagnostic(error: Diagnostic, sources: Sources, *, root: str, crates: frozenset[str]) -> Fault:
    """Return the fault of a compiler error; `crates` are the names of the workspace's own libraries."""
    span = next((span for span in error.spans if span.is_primary), None)
    frames = (sources.frame(span.file_name, root, span.line_start),) if span is not None else ()
    if error.code is None:
        return Fault(chain=(Raised(kind="SyntaxError", message=_cut(error.message)),), frames=frames)
    missing = _missing(error, crates)
    bases = (_BUG,) if missing is None else ("ImportError", _BUG)
    kind = error.code.code
    return Fault(chain=(Raised(kind=kind, bases=bases, message=_cut(error.message)),), frames=frames, missing=missing)


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
    says_crate = error.code.code in _MISSING_CRATE and "unlinked crate" in f"{error.message} {label}"
    foreign = error.code.code == "E0463" or (says_crate and first not in {*crates, "crate", "self", "super"})
    return Missing(name=first if foreign else name, owner="" if foreign else owner, first_party=not foreign)


def _kind(message: str, stack: str, source: str) -> tuple[str, tuple[str, ...]]:
    for pattern, kind, base in _PANICS:
        if pattern.match(message):
            return kind, (base,)
    if _UNWRAPPED.search(stack):
        return "expect", ("AssertionError",)
    return ("panic!", ("Failed",)) if _SAID.search(source) else ("panic", ())


def _frames(stack: str, sources: Sources, cwd: str) -> tuple[Frame, ...]:
    """Return the frames of a backtrace, outermost first, without the closure that libtest calls."""
    found = [
        sources.frame(match["file"], cwd, int(match["line"]), _function(match["name"]))
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


def relative_to(workspace: str) -> Callable[[str, str], str]:
    """Return a function that gives files' paths relative to the workspace's folder in the box."""

    def relative(file: str, folder: str) -> str:
        path = posixpath.normpath(posixpath.join(folder, file))
        return path.removeprefix(f"{workspace}/") if path.startswith(f"{workspace}/") else ""

    return relative


def crate_names(packages: Mapping[str, str]) -> frozenset[str]:
    """Return the names of packages as sources write them, with `_` for `-`."""
    return frozenset(name.replace("-", "_") for name in packages)
