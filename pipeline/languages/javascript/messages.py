"""What our runner and the processes below it write, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pipeline.languages.sessions import read_records

if TYPE_CHECKING:
    from pipeline.process import Answer


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Site(_Value):
    """A frame that a runner has taken apart, its place mapped back to the source."""

    file: str = ""
    line: int | None = None
    column: int | None = None
    method: str | None = ""


class Thrown(_Value):
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


class PlaceOf(_Value):
    """Where a test is defined."""

    path: str
    line: int | None = None
    column: int | None = None


class Item(_Value):
    """A test that exists. `at` is the stack of its definition, where the runner does not say the place."""

    kind: Literal["item"]
    id: str
    names: tuple[str, ...]
    state: Literal["run", "skip", "todo"]
    at: str = ""
    place: PlaceOf | None = None


class Start(_Value):
    """A test begins."""

    kind: Literal["start"]
    id: str


class End(_Value):
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


class Cut(_Value):
    """A test took its process along, or was ended with it because it took too long."""

    kind: Literal["crashed", "limit"]
    id: str
    how: str = ""


class ReachLine(_Value):
    """What a traced test touched: functions by the engine's bare names, files, processes."""

    kind: Literal["reach"]
    id: str
    functions: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


class FileLine(_Value):
    """A test file was loaded."""

    kind: Literal["file"]
    path: str


class Uncollected(_Value):
    """A test file could not be loaded, or failed outside of its tests; `how` says how its process ended instead."""

    kind: Literal["uncollected"]
    path: str
    errors: tuple[Thrown, ...] = ()
    how: str = ""


class LayoutLine(_Value):
    """Where the runner's configuration looks for tests."""

    kind: Literal["layout"]
    patterns: tuple[str, ...] = ()


class Done(_Value):
    """The runner came to its end; `canaries` say what its assertions make of certain values."""

    kind: Literal["done"]
    canaries: dict[str, bool]


class Tampered(_Value):
    """Tested code got hold of something of ours."""

    kind: Literal["tampered", "too_long"]
    what: str = ""


Said = Annotated[
    Item | Start | End | Cut | ReachLine | FileLine | Uncollected | LayoutLine | Done | Tampered,
    Field(discriminator="kind"),
]


class _Line(_Value):
    nonce: str
    n: int


class SaidLine(_Line):
    """What a process of the test run wrote."""

    kind: Literal["said"]
    job: int
    said: Said


class EndedLine(_Line):
    """A process of the test run is over; see `watched.Watch` for what it asked for."""

    kind: Literal["ended"]
    job: int
    code: int
    timed_out: bool
    forged: str
    done: bool
    stdout: str
    stderr: str
    replaced: bool = False
    unwatched: str = ""


class PrintedLine(_Line):
    """What a program that is no test has printed."""

    kind: Literal["printed"]
    job: int
    code: int
    stdout: str
    stderr: str


class OutOfTime(_Line):
    """The time for everything is used up."""

    kind: Literal["out_of_time"]


class LastLine(_Line):
    """Our runner came to its end."""

    kind: Literal["end"]


Record = SaidLine | EndedLine | PrintedLine | OutOfTime | LastLine
_ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@dataclass(frozen=True)
class Session:
    """The records of one run of our runner. `fault` says why they cannot be believed, or is empty."""

    records: tuple[Record, ...]
    fault: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether our runner came to its end."""
        return bool(self.records) and isinstance(self.records[-1], LastLine)

    @property
    def said(self) -> list[Said]:
        """Return what the processes wrote, in order."""
        return [record.said for record in self.records if isinstance(record, SaidLine)]

    @property
    def ended(self) -> list[EndedLine]:
        """Return the ends of the processes, in order."""
        return [record for record in self.records if isinstance(record, EndedLine)]


def read_session(answer: Answer, nonce: str) -> Session:
    """Return the records that came; a line that is not ours makes the session unusable."""
    return Session(*read_records(answer, nonce, _ADAPTER, LastLine))
