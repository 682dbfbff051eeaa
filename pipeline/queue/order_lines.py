"""Defines what is said of orders: a type for each kind of line, and a line as it is kept. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pipeline.data_types import BareName, BranchName, Frozen, ObjectName, Timestamp
from pipeline.errors import UserError
from pipeline.outcomes import Reason

KINDS: Final[dict[str, type[OrderFact]]] = {}
"""Every kind of line by its word."""

OrderId = Annotated[str, Field(pattern=r"^o-[0-9a-f]{6,12}$")]
RunKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+/run-[A-Za-z0-9._@-]+$", max_length=400)]
"""A run by the key of its worktree and its name, as claims name it."""


class OrderFact(BaseModel):
    """What happened to an order; a later version may say more of it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    KIND: ClassVar[str]

    order: OrderId

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Make the kind known."""
        super().__pydantic_init_subclass__(**kwargs)
        KINDS[cls.KIND] = cls


class RunWords(Frozen):
    """What of the command line of `run` an order says; nothing of it counts for a run that is gone on with."""

    base: str | None = None
    approve: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    recipe: str | None = None
    previous: str | None = None

    def argv(self) -> tuple[str, ...]:
        """Return them as they are typed."""
        found = [f"--base={self.base}"] if self.base else []
        found += [f"--approve={gate}" for gate in self.approve]
        found += [f"--agent={each}" for each in self.agent]
        found += [f"--set={each}" for each in self.values]
        found += [f"--recipe={self.recipe}"] if self.recipe else []
        found += [f"--previous={self.previous}"] if self.previous else []
        return tuple(found)


class OrderPlaced(OrderFact):
    """An issue is to be run, or a run is to be gone on with.

    `key` is unique: who places an order twice has placed one. `cause` is what it came of, `depth` how many orders that
    were placed by orders stand above it.
    """

    KIND = "order_placed"

    do: Literal["run", "resume"]
    issue: BareName | None = None
    run: RunKey | None = None
    options: RunWords = RunWords()
    via: BareName
    cause: tuple[str, ...] = ()
    depth: int = 0
    key: Annotated[str, Field(min_length=1, max_length=400)]
    priority: int = 0
    not_before: Timestamp | None = None


class OrderWorktree(OrderFact):
    """A linked worktree is about to be made for it."""

    KIND = "order_worktree"

    folder: str
    branch: BranchName
    tip: ObjectName


class OrderStarted(OrderFact):
    """A process drives it; the log has what it says."""

    KIND = "order_started"

    pid: int
    start_time: int
    boot_id: str
    log: str


class OrderLeft(OrderFact):
    """Its driver has ended, and it is still to be done.

    The worker was stopped, the driver died, a run had the issue, or another machine took the run over.
    """

    KIND = "order_left"

    why: Literal["stopped", "died", "busy", "superseded"]
    note: str = ""


class OrderEnded(OrderFact):
    """It is done: its run has ended, waits for a person, or could not begin."""

    KIND = "order_ended"

    run: RunKey | None = None
    outcome: str
    reason: str
    note: str = ""


class OrderDropped(OrderFact):
    """It is not to be done any more."""

    KIND = "order_dropped"

    why: str


class OrderHeld(OrderFact):
    """It is not to begin for now."""

    KIND = "order_held"


class OrderReleased(OrderFact):
    """It may begin again."""

    KIND = "order_released"


@dataclass(frozen=True)
class OrderLine:
    """What happened to an order, with its number among all lines, and when that was."""

    seq: int
    at: str
    data: OrderFact


class NotNowError(UserError):
    """The orders cannot be had for now: their server is away, or somebody holds them. A later call may work."""


class Row(NamedTuple):
    """A line as it is kept: its number, the moment, its kind, and its data as JSON."""

    seq: int
    at: str
    kind: str
    data: str


class Found(NamedTuple):
    """What a look at the rows found.

    Attributes:
        made: Says which database it is: another one where it was made anew. None where there is none yet.
        rows: The lines behind the one that was asked for; all of a database that was made anew.
        held: The orders that a living worker of any machine holds, where there is a server that knows.
    """

    made: object
    rows: list[Row]
    held: frozenset[str] = frozenset()


def unreadable(where: str, line: int, error: Exception) -> UserError:
    """Return what is said of a line that cannot be read."""
    return UserError(
        f"The orders in {where} are damaged at line {line} ({str(error).splitlines()[0]}). Put them back, or set them "
        "aside: runs and claims are as they are, and the queue is empty then.",
        Reason.USAGE,
        path=where,
        pointer=f"/{line - 1}",
    )
