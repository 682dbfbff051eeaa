"""Words that must have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.catalogue import Case, Layer, cases
from attacks.figures import count
from attacks.texts import RUNNERS, Stage

if TYPE_CHECKING:
    from attacks.world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("world", ["bubblewrap-overlay"], indirect=True, scope="module"),
]


@pytest.fixture(scope="module")
def stage(world: World, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(world, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("case", cases(Layer.TEXT), ids=lambda case: case.id)
@pytest.mark.broad(but_first=1)
def test_words_have_no_effect(case: Case, stage: Stage, request: pytest.FixtureRequest) -> None:
    count(request, case, "texts")
    RUNNERS[case.id](stage)
