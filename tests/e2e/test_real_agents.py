"""Real agents take the same issue of a real package to the same commits, in the box, with one way to their model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.packages import CAMELIZE
from e2e.real_agents import AGENTS, KEY, MODEL, Agent, commits, conversations, each, playing, prepared, results
from e2e.shapes import done

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


DRIVEN = [agent for agent in AGENTS if agent.name in {"claude", "codex", "opencode", "gemini", "api-chat"}]
"""The others are the same products and dialects by another door; their adapters' tests drive them."""


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    """Return where archives are kept between sessions; there are never more than the pinned ones."""
    return pytestconfig.cache.mkdir("sdists")


@pytest.fixture(scope="session")
def known(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Return the commits that a program without any model makes of the issue."""
    project = prepared(CAMELIZE, cache, tmp_path_factory.mktemp("known") / "it")
    done(project)
    return commits(project)


def texts_of(project: Project) -> str:
    """Return everything that the run wrote down, together."""
    files = (path for path in project.run_folder().rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


@pytest.mark.parametrize("agent", each(DRIVEN, "claude", "api-chat"))
@pytest.mark.broad
def test_a_real_agent_makes_the_same_commits(
    agent: Agent, cache: Path, known: list[tuple[str, str]], tmp_path: Path
) -> None:
    project = prepared(CAMELIZE, cache, tmp_path / "it")
    with playing(agent, conversations(CAMELIZE, agent), project) as service:
        document = done(project)

    assert service.problems == []
    assert service.unused == ()
    assert commits(project) == known
    assert document["usage"]["input_tokens"] > 0
    assert document["usage"]["cost_usd"] > 0
    found = results(project)
    assert {result["agent"]["model"] for result in found} == {MODEL}
    assert all(result["usage"]["model"] for result in found)
    assert all(request.asked is not None and request.asked.model == MODEL for request in service.work)
    assert KEY not in texts_of(project)
