"""The backend `api`: our own tool loop with a model that plays a script, in every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from backends.api_play import Play, report, told
from model_service.script import Report, Use, conversation, edit, read, run, write

from pipeline.backends.protocol import Ended
from pipeline.config.providers import Api

if TYPE_CHECKING:
    from pathlib import Path

DONE = {"result": "COMPLETE", "summary": "a is 2"}


@pytest.fixture(params=list(Api))
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    return Play(tmp_path, request.param)


def test_a_conversation_with_every_kind_of_tool(play: Play) -> None:
    result = play.play(
        conversation(
            Use(read("app.py")),
            Use(edit("app.py", "a = 1", "a = 2"), write("new.py", "d = 1\n"), text="Both at once."),
            Use(run("cat app.py")),
            Report(DONE),
            kind="implement",
        )
    )
    assert (result.ended, result.complaint, result.fault) == (Ended.OK, None, None), result.stdout.decode()
    assert report(result) == DONE
    assert [change.path for change in play.changes()] == ["app.py", "new.py"]
    assert (result.steps, result.denials) == (4, ())
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.model) == (400, 80, "scripted")
    assert [line["tool"] for line in told(result, "call")] == ["read", "edit", "write", "run", "final_result"]
    assert "a = 2\nb = 1" in told(result, "answer")[3]["text"]
