"""A whole story of the scripted agent, played by a real one: a revised plan, a refused write, a fix task, commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from demo_story import STORY
from e2e.real_agents import AGENTS, commits, playing
from kit import make_project
from model_service.answers import from_answers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LIGHTEST = next(agent for agent in AGENTS if agent.name == "codex")


@pytest.mark.broad
def test_a_story_with_detours_ends_in_the_same_commits(tmp_path: Path) -> None:
    for name in ("scripted", "real"):
        (tmp_path / name).mkdir()
    scripted = make_project(tmp_path / "scripted")
    scripted.use_script(STORY)
    assert scripted.run()["outcome"] == "completed"
    real = make_project(tmp_path / "real")
    with playing(LIGHTEST, from_answers(STORY), real) as service:
        document = real.run()
    assert (document.get("outcome"), service.problems, service.unused) == ("completed", [], ()), document["_stderr"]
    assert real.rows() == scripted.rows()
    assert commits(real) == commits(scripted)
