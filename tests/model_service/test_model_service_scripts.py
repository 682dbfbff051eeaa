"""Scripts: as a file, from stories of the scripted agent, and matched with the prompts that redfirst builds."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from demo_story import STORY
from kit import HONEST
from model_service.answers import from_answers
from model_service.asked import Prompt
from model_service.asking import ask, history, prompt
from model_service.script import (
    Fail,
    Report,
    Reports,
    Say,
    Tokens,
    Use,
    Uses,
    conversation,
    dump_script,
    load_script,
    write,
)
from model_service.service import ModelService
from model_service.structured import example, shaped

from pipeline.dispatch.prompt import DispatchDocument, build_prompt, continued_prompt, parse_template
from pipeline.policy.roles import parse_role
from pipeline.reports.kinds import KINDS, report_schema

if TYPE_CHECKING:
    from model_service.documents import Json

ROOT = Path(__file__).parents[2]


@pytest.mark.asyncio
async def test_in_an_event_loop() -> None:
    async with ModelService([conversation(Say("ok"))]) as model:
        with anyio.fail_after(60):
            got = await anyio.to_thread.run_sync(ask, model, "chat", history(prompt(), 0))
    assert got.status == 200


def test_as_a_program(tmp_path: Path) -> None:
    script, port, log = tmp_path / "script.json", tmp_path / "port", tmp_path / "log.jsonl"
    turns = (Fail(429, headers={"retry-after": "1"}, times=1), Use(write("a", "b"), text="x"), Report({"result": "?"}))
    wanted = (conversation(*turns, kind="implement", task="1"), conversation(Say("ok", Tokens(input=9))))
    dump_script(wanted, script)
    assert load_script(script) == wanted
    argv = [sys.executable, "tests/model_service/serve.py"]
    options = [f"--script={script}", f"--port-file={port}", f"--log={log}"]
    with subprocess.Popen([*argv, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(600):
                if port.exists():
                    break
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
            url = f"http://127.0.0.1:{port.read_text()}/v1/models"
            with urllib.request.urlopen(url, timeout=30) as models:
                assert json.load(models)["data"]
        finally:
            process.terminate()
        assert process.communicate(timeout=30) == (None, "")
        assert process.returncode == 0


def test_every_template_says_what_conversations_are_matched_by() -> None:
    """A prompt is built from each of our own; what the service reads from it is what the dispatch was."""
    found = 0
    for file in sorted((ROOT / "commands").glob("*.md")):
        if file.stem == "workflow":
            continue
        template = parse_template(file.read_text(encoding="utf-8"), file.stem)
        for role in template.roles:
            document = DispatchDocument(
                run_id="run-GAL-1",
                dispatch="d-001",
                step="step",
                phase="phase",
                role=role,
                kind=template.kind,
                question=template.question,
                task="7" if "task" in KINDS[template.kind].required else None,
                attempt=2,
                workspace="/redfirst-view",
                artifacts={},
                report_schema=report_schema(template.kind, role, template.question),
            )
            spec = parse_role((ROOT / "agents" / f"{role}.md").read_text(encoding="utf-8"), role)
            said = Prompt(build_prompt(spec, template, document))
            assert (said.role, said.kind, said.question) == (role, template.kind, template.question), file
            assert (said.task, said.attempt, said.workspace) == (document.task, 2, "/redfirst-view"), file
            assert said.known
            assert not said.reask
            again = document.model_copy(update={"reask": "no report"})
            assert Prompt(build_prompt(spec, template, again)).reask
            assert Prompt(continued_prompt(again)).reask
            found += 1
    assert found >= 16


def test_stories_of_the_scripted_agent_become_conversations() -> None:
    script = from_answers(STORY)
    assert len(script) == len(STORY)
    made = next(one for one in script if one.when.kind == "implement")
    assert made.when.task == "1"
    assert [type(turn) for turn in made.turns] == [Uses, Uses, Uses, Uses, Reports]
    assert [one.when.kind for one in from_answers(HONEST)] == [entry["when"]["kind"] for entry in HONEST]
    with pytest.raises(ValueError, match="exit, step"):
        from_answers([{"when": {"step": "plan"}, "exit": 3}])


def test_a_report_takes_the_shape_that_a_schema_asks_for() -> None:
    text_: Json = {"type": "string"}
    maybe: Json = {"anyOf": [text_, {"type": "null"}]}
    wide: Json = {"type": "object", "properties": {"a": text_, "b": maybe, "c": text_}, "required": ["a", "b", "c"]}
    wrapped: Json = {"type": "object", "properties": {"report": {"type": "object"}}, "required": ["report"]}
    quoted: Json = {"type": "object", "properties": {"report": text_}, "required": ["report"]}
    assert shaped({"a": "x"}, wide) == {"a": "x", "b": None}
    assert shaped({"a": "x"}, wrapped) == {"report": {"a": "x"}}
    assert shaped({"a": "x"}, quoted) == {"report": '{"a": "x"}'}
    assert example(wide) == {"a": "work", "b": {}, "c": "work"}
