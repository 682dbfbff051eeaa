"""Edits of Rust files by @test, by the rule itself and through a dispatch: view, gate and tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Case, Layer, RustDiff, Verdict, cases
from attacks.figures import count

from pipeline.testing.languages.rust.test_regions import only_test_regions

if TYPE_CHECKING:
    from attacks.world import World

PATH = "src/lib.rs"
CASES = [pytest.param(case, id=case.id) for case in cases(Layer.CONTENT)]


@pytest.mark.parametrize("case", CASES)
def test_the_rule_knows_a_test_region_from_production(case: Case, request: pytest.FixtureRequest) -> None:
    count(request, case, "the rule on test regions")
    assert isinstance(case.attempt, RustDiff)
    old, new = case.attempt.old.encode(), case.attempt.new.encode()
    assert only_test_regions(PATH, old, new) is (case.expected.verdict is Verdict.ACCEPTED), case.attempt.title


@pytest.mark.slow
@pytest.mark.broad
@pytest.mark.parametrize("case", CASES)
def test_the_gate_admits_an_edit_only_inside_of_test_regions(
    case: Case, world: World, request: pytest.FixtureRequest
) -> None:
    count(request, case, world.name)
    assert isinstance(case.attempt, RustDiff)
    base = world.tree_with({PATH: case.attempt.old})
    happened = world.attack(case.role, f"cat > {PATH} << 'END-OF-FILE'\n{case.attempt.new}END-OF-FILE", base)
    assert happened.wrongs == (), happened.wrongs
    assert happened.verdict is case.expected.verdict, happened.rules()
    if happened.verdict is Verdict.ACCEPTED:
        assert [change.path for change in happened.result.changes] == [PATH]
    else:
        assert happened.result.tree == base
