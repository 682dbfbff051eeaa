"""What a run asks for before it begins, when its agents want a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

MODEL = '[agents]\nbackend = "scripted"\nscript = "{script}"\nnetwork = "model"\n'


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", 'network = "model" of orchestrator needs a provider'),
        ('provider = "anthropic"\n', "is taken from the variable ANTHROPIC_API_KEY, which is not set"),
        ('provider = "nobody"\n', 'The provider "nobody" of orchestrator is not known'),
    ],
)
@pytest.mark.slow
def test_a_run_whose_agents_could_not_reach_their_model_is_refused_before_it_begins(
    tmp_path: Path, more: str, words: str
) -> None:
    project = make_project(tmp_path)
    project.configure(MODEL.format(script=project.script(HONEST)) + more)
    document = project.run()
    assert document["_code"] == 2
    assert document["error"]["kind"] == "config"
    assert words in document["error"]["message"]
    assert not project.run_folder().exists()
