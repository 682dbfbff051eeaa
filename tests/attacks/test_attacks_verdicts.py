"""Code that lies to its tests, measured as IMPLEMENT measures: never GREEN, or a reviewer is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Case, Layer, Verdict, cases
from attacks.figures import count
from attacks.lies import APP, HONEST, LIES, RED, START
from languages.direct import context_of, measure, write

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.red import judge_red
from pipeline.testing.languages.sources.forgery import notes
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attacks.world import World

    from pipeline.judge.evidence.compare import GreenFacts
    from pipeline.judge.evidence.observation import TestRecord
    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.sandbox.boxes.box import ProvableBox

BOXES = ("bubblewrap-overlay", pytest.param("none-shadow", marks=pytest.mark.broad))  # a measurement has one view
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("world", BOXES, indirect=True, scope="module"),
]


@dataclass(frozen=True)
class Evidence:
    """RED as it was measured, and what must be kept."""

    ledger: RedTests
    kept: Mapping[str, TestRecord]
    box: ProvableBox

    def judge(self, folder: Path, files: Mapping[str, str]) -> GreenFacts:
        """Return what a measurement of these files in the box says."""
        return judge_green(self.ledger, measure(write(folder, files), box=self.box), self.kept)


@pytest.fixture(scope="module")
def evidence(world: World, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    before = measure(write(tmp_path_factory.mktemp("start"), START), box=world.box)
    after = measure(write(tmp_path_factory.mktemp("red"), RED), box=world.box)
    red = judge_red(before, after, None, context_of(after, frozenset(START)), task="1", tree="red")
    assert red.legal, red
    return Evidence(red.ledger, expectations(before), world.box)


@pytest.mark.usefixtures("world")
def test_honest_work_is_green(evidence: Evidence, tmp_path: Path) -> None:
    assert evidence.judge(tmp_path, HONEST).green


@pytest.mark.usefixtures("world")
def test_no_work_is_not_green(evidence: Evidence, tmp_path: Path) -> None:
    assert not evidence.judge(tmp_path, RED).green


@pytest.mark.parametrize("case", cases(Layer.VERDICT), ids=lambda case: case.id)
@pytest.mark.broad(but_first=2)
def test_a_lie_is_not_green_or_a_reviewer_is_told(
    case: Case, evidence: Evidence, world: World, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count(request, case, world.name)
    lie = LIES[case.id]
    assert lie.noted is (case.expected.verdict is Verdict.FLAGGED)
    if not lie.noted:
        verdict = evidence.judge(tmp_path, lie.tree())
        assert not verdict.green, verdict
        return
    source = lie.tree()[APP]
    noted = notes(APP, START[APP].encode(), source.encode())
    assert noted
    happened = world.attack(Role.MAKE, f"cat > {APP} << 'END-OF-FILE'\n{source}END-OF-FILE")
    assert happened.wrongs == (), happened.wrongs
    assert set(noted) <= set(happened.result.notes), "the reviewer of the dispatch is not told"
