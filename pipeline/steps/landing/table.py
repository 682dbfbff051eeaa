"""Decides what follows of what was found when a run was picked onto the base. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.testing.verification.results import CommitCheck, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


MOST_PICKS: Final = 5
"""How often a run is picked while others move the base."""


class Found(StrEnum):
    """What came of a pick."""

    VERIFIED = "verified"
    CONFLICT = "conflict"
    REFUTED = "refuted"
    REGRESSION = "regression"
    UNCHECKED = "unchecked"
    BASE_MOVED = "base_moved"
    IN_THE_WAY = "in_the_way"
    WAITS = "waits"


class Then(StrEnum):
    """What follows."""

    LAND = "land"
    PICK_AGAIN = "pick_again"
    ORDER_AGAIN = "order_again"
    TELL = "tell"
    WAIT = "wait"


TABLE: Final[Mapping[Found, tuple[Then, Then]]] = {
    Found.VERIFIED: (Then.LAND, Then.LAND),
    Found.CONFLICT: (Then.ORDER_AGAIN, Then.TELL),
    Found.REFUTED: (Then.ORDER_AGAIN, Then.TELL),
    Found.REGRESSION: (Then.ORDER_AGAIN, Then.TELL),
    Found.UNCHECKED: (Then.TELL, Then.TELL),
    Found.BASE_MOVED: (Then.PICK_AGAIN, Then.TELL),
    Found.IN_THE_WAY: (Then.TELL, Then.TELL),
    Found.WAITS: (Then.WAIT, Then.WAIT),
}
"""What follows at first, and once that was done as often as it may be."""


def then(found: Found, *, picks: int = 1, ordered: bool = False) -> Then:
    """Return what follows.

    Args:
        found: What came of the last pick.
        picks: How often the run was picked by now.
        ordered: Whether the issue was ordered again already, after this run or with it.
    """
    spent = picks >= MOST_PICKS if found is Found.BASE_MOVED else ordered
    return TABLE[found][spent]


def found_of(checks: Collection[CommitCheck]) -> Found:
    """Return what measuring the picked commits again comes to, by the first that does not hold.

    Where all tests of such a commit hold, and something else does not, others are lost: a regression.
    """
    for check in checks:
        if check.status is Status.UNCHECKED:
            return Found.UNCHECKED
        if check.status is Status.REFUTED:
            own = all(test.before_holds and test.after_holds for test in check.tests)
            return Found.REGRESSION if check.tests and own else Found.REFUTED
    return Found.VERIFIED
