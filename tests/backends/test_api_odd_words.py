"""What a model says can be unfit for JSON, and is its own fault: neither a bug of ours nor an outage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from backends.api_play import DIALECTS, SECRET, Play
from model_service.script import Report, Use, call, conversation
from model_service.service import ModelService

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.providers import Api

pytestmark = [pytest.mark.slow, pytest.mark.broad]


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("arguments", [nested(400), nested(900), {"path": "\ud800"}], ids=["deep", "deeper", "half"])
@pytest.mark.broad(but_first=1)
def test_arguments_that_cannot_be_said_again(api: Api, arguments: dict[str, Any], tmp_path: Path) -> None:
    play = Play(tmp_path, api)
    script = conversation(Use(call("read", arguments)), Report({"result": "COMPLETE", "summary": "done"}))
    with ModelService([script], secret=SECRET) as service:
        result = play.run(service, session=play.session())
    assert service.problems == []
    assert result.fault is None, result.complaint
