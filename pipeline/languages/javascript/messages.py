"""What our runner and the processes below it write, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners import sessions
from pipeline.languages.runners.sessions import Line, OutOfTime, ProcessLine


class Site(sessions.Said):
    """A frame that a runner has taken apart, its place mapped back to the source."""

    file: str = ""
    line: int | None = None
    column: int | None = None
    method: str | None = ""


class Thrown(sessions.Said):
    """Something that was thrown; `compared` if it carries two values that were compared."""

    kind: str
    bases: tuple[str, ...] = ()
    message: str = ""
    stack: str = ""
    code: str = ""
    operator: str = ""
    compared: bool = False
    cause: Thrown | None = None
    frames: tuple[Site, ...] = ()


class PlaceOf(sessions.Said):
    """Where a test is defined."""

    path: str
    line: int | None = None
    column: int | None = None


class Item(sessions.Said):
    """A test that exists. `at` is the stack of its definition, where the runner does not say the place."""

    kind: Literal["item"]
    id: str
    names: tuple[str, ...]
    state: Literal["run", "skip", "todo"]
    at: str = ""
    place: PlaceOf | None = None


class Start(sessions.Said):
    """A test begins."""

    kind: Literal["start"]
    id: str


class End(sessions.Said):
    """A test ended by itself. `inverted`: it is expected to fail."""

    kind: Literal["end"]
    id: str
    passed: bool
    skipped: str | None = None
    todo: str | None = None
    inverted: bool = False
    phase: Literal["setup", "call", "teardown"] = "call"
    timed_out: bool = False
    errors: tuple[Thrown, ...] = ()


class Cut(sessions.Said):
    """A test took its process along, or was ended with it because it took too long."""

    kind: Literal["crashed", "limit"]
    id: str
    how: str = ""


class ReachLine(sessions.Said):
    """What a traced test touched: functions by the engine's bare names, files, processes."""

    kind: Literal["reach"]
    id: str
    functions: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


class FileLine(sessions.Said):
    """A test file was loaded."""

    kind: Literal["file"]
    path: str


class Uncollected(sessions.Said):
    """A test file could not be loaded, or failed outside of its tests; `how` says how its process ended instead."""

    kind: Literal["uncollected"]
    path: str
    errors: tuple[Thrown, ...] = ()
    how: str = ""


class LayoutLine(sessions.Said):
    """Where the runner's configuration looks for tests."""

    kind: Literal["layout"]
    patterns: tuple[str, ...] = ()


class Done(sessions.Said):
    """The runner came to its end; `canaries` say what its assertions make of certain values."""

    kind: Literal["done"]
    canaries: dict[str, bool]


class Tampered(sessions.Said):
    """Tested code got hold of something of ours."""

    kind: Literal["tampered", "too_long"]
    what: str = ""


Said = Annotated[
    Item | Start | End | Cut | ReachLine | FileLine | Uncollected | LayoutLine | Done | Tampered,
    Field(discriminator="kind"),
]


class SaidLine(Line):
    """What a process of the test run wrote."""

    kind: Literal["said"]
    job: int
    said: Said


class EndedLine(ProcessLine):
    """A process of the test run is over; see `exec_guard.Watch` for what it asked for."""

    kind: Literal["ended"]
    job: int
    forged: str
    done: bool
    replaced: bool = False
    unwatched: str = ""


class PrintedLine(ProcessLine):
    """What a program that is no test has printed."""

    kind: Literal["printed"]
    job: int


Record = SaidLine | EndedLine | PrintedLine | OutOfTime | sessions.End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
