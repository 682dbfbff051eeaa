"""The records of our runner and of the processes below it, as validated values; unknown keys are ignored."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners import sessions
from pipeline.languages.runners.sessions import Line, OutOfTime, ProcessLine


class Site(sessions.Said):
    """A frame as a runner reports it, with its place mapped to the source."""

    file: str = ""
    line: int | None = None
    column: int | None = None
    method: str | None = ""


class Thrown(sessions.Said):
    """A thrown value; `compared` if it carries two values that were compared."""

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
    """The place where a test is defined."""

    path: str
    line: int | None = None
    column: int | None = None


class Item(sessions.Said):
    """A record that a test exists. `at` is the stack of its definition, where the runner does not report the place."""

    kind: Literal["item"]
    id: str
    names: tuple[str, ...]
    state: Literal["run", "skip", "todo"]
    at: str = ""
    place: PlaceOf | None = None


class Start(sessions.Said):
    """A record that a test begins."""

    kind: Literal["start"]
    id: str


class End(sessions.Said):
    """A record that a test ended by itself. `inverted`: it is expected to fail."""

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
    """A record that a test ended its process, or was ended with it after its time limit."""

    kind: Literal["crashed", "limit"]
    id: str
    how: str = ""


class ReachLine(sessions.Said):
    """A record of a traced test's reach: functions by the engine's bare names, files, processes."""

    kind: Literal["reach"]
    id: str
    functions: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


class FileLine(sessions.Said):
    """A record that a test file was loaded."""

    kind: Literal["file"]
    path: str


class Uncollected(sessions.Said):
    """A record that a test file could not be loaded, or failed outside of tests; `how` is how its process ended."""

    kind: Literal["uncollected"]
    path: str
    errors: tuple[Thrown, ...] = ()
    how: str = ""


class LayoutLine(sessions.Said):
    """A record of the patterns by which the runner's configuration finds tests."""

    kind: Literal["layout"]
    patterns: tuple[str, ...] = ()


class Done(sessions.Said):
    """A record that the runner ended in order; `canaries` are results of its assertions on known values."""

    kind: Literal["done"]
    canaries: dict[str, bool]


class Tampered(sessions.Said):
    """A record that tested code got access to our own code."""

    kind: Literal["tampered", "too_long"]
    what: str = ""


Said = Annotated[
    Item | Start | End | Cut | ReachLine | FileLine | Uncollected | LayoutLine | Done | Tampered,
    Field(discriminator="kind"),
]


class SaidLine(Line):
    """A message of a process of the test run."""

    kind: Literal["said"]
    job: int
    said: Said


class EndedLine(ProcessLine):
    """A record that a process of the test run ended; see `exec_guard.Watch` for the calls that it attempted."""

    kind: Literal["ended"]
    job: int
    forged: str
    done: bool
    replaced: bool = False
    unwatched: str = ""


class PrintedLine(ProcessLine):
    """A record of the output of a program that is no test."""

    kind: Literal["printed"]
    job: int


Record = SaidLine | EndedLine | PrintedLine | OutOfTime | sessions.End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
