"""Every attack on the view, the box and the gate, through the product's own dispatch, behind each kind of box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Layer, cases, script
from attacks.figures import count
from attacks.outcome import is_expected

if TYPE_CHECKING:
    from attacks.catalogue import Case
    from attacks.world import World

pytestmark = pytest.mark.slow

SLOWEST = "OWN-41"
"""A hundred thousand files; `tests/dispatch` holds the same bound on a few."""

CASES = [pytest.param(case, marks=pytest.mark.broad) if case.id == SLOWEST else case for case in cases(Layer.DISPATCH)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_attack_ends_as_it_should_and_the_host_never_notices(
    case: Case, world: World, request: pytest.FixtureRequest
) -> None:
    count(request, case, world.name)
    happened = world.attack(case.role, script(case, shared=world.shared, places=world.host.places()))
    told = f"{happened.result.signal}: {happened.rules()}\n{happened.stdout}\n{happened.log}"
    assert happened.wrongs == (), told
    assert is_expected(case, happened, world), f"{happened.verdict}, not {case.expected.verdict}; {told}"
