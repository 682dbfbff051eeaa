"""Every attack on the view, the box and the gate, through the product's own dispatch, behind each kind of box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Layer, Verdict, cases, script
from attacks.figures import count
from attacks.outcome import ELSEWHERE, is_expected

from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attacks.catalogue import Case
    from attacks.world import World

pytestmark = pytest.mark.slow

SLOWEST = "OWN-41"
"""A hundred thousand files; `tests/dispatch` holds the same bound on a few."""

ALONE = frozenset({*ELSEWHERE, "GIT-12", "OWN-52", "RES-07"})
"""What is never one of several in a dispatch: it kills them, goes on beside them, or does what they configured."""


def is_one_of_many(case: Case) -> bool:
    """Return whether nothing may come of it, so that it can be tried in one dispatch with others."""
    return case.expected.verdict is Verdict.BLOCKED and case.role is Role.MAKE and case.id not in ALONE


MANY = [case for case in cases(Layer.DISPATCH) if is_one_of_many(case)]
CASES = [
    pytest.param(case, marks=pytest.mark.broad) if case.id == SLOWEST or is_one_of_many(case) else case
    for case in cases(Layer.DISPATCH)
]


@pytest.mark.parametrize("world", ["bubblewrap-overlay"], indirect=True, scope="module")
@pytest.mark.parametrize(
    "those", [MANY[start : start + 8] for start in range(0, len(MANY), 8)], ids=lambda it: it[0].id
)
def test_attacks_of_which_nothing_may_come_are_tried_one_after_another(those: Sequence[Case], world: World) -> None:
    """`make test` has them so; each by itself, behind each kind of box, is in `make test-all`."""
    places = world.host.places()
    texts = [f"(\n{script(case, shared=world.shared, places=places)}\n)\necho tried {case.id}" for case in those]
    happened = world.attack(Role.MAKE, "\n".join(texts))
    told = f"{happened.result.signal}: {happened.rules()}\n{happened.stdout}\n{happened.log}"
    tried = [line.removeprefix("tried ") for line in happened.stdout.splitlines() if line.startswith("tried ")]
    assert tried == [case.id for case in those], told
    assert happened.wrongs == (), told
    assert is_expected(those[0], happened, world), told


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_attack_ends_as_it_should_and_the_host_never_notices(
    case: Case, world: World, request: pytest.FixtureRequest
) -> None:
    count(request, case, world.name)
    happened = world.attack(case.role, script(case, shared=world.shared, places=world.host.places()))
    told = f"{happened.result.signal}: {happened.rules()}\n{happened.stdout}\n{happened.log}"
    assert happened.wrongs == (), told
    assert is_expected(case, happened, world), f"{happened.verdict}, not {case.expected.verdict}; {told}"
