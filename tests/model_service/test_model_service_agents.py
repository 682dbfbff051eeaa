"""The real agents, started directly: they read, write, edit, run and report as the script says."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from model_service.bare import bare
from model_service.script import Report, Say, Use, conversation, edit, read, run, write
from model_service.service import ModelService

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

REPORT = {"result": "COMPLETE", "summary": "the sum is right"}
DIALECTS = {"claude": "anthropic", "codex": "responses", "opencode": "chat", "gemini": "google"}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_real_agent_does_what_the_script_says(name: str, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    workspace.mkdir()
    (workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n", encoding="utf-8")
    content = "# it's \"quoted\", $HOME and `date` and a tab\t\\n\nprint('ä')\n"
    turns = (
        Use(read("calc.py")),
        Use(write("made/new.py", content)),
        Use(edit("calc.py", "a - b", "a + b")),
        Use(run("python3 -c 'import calc; print(calc.add(1, 2))' > sum.txt && echo the-command-ran")),
        Report(REPORT),
    )
    script = [conversation(*turns, kind="implement", role="make", task="1"), conversation(Say("never"))]
    request = f"Implement task 1 (issue GAL-1, attempt 1).\n\nWorkspace: `{workspace}`\n"
    prompt = f"You are @make. You implement one task.\n\n# This request: implement\n\n{request}"
    with ModelService(script) as service:
        start = bare(name, url=service.url, home=home, workspace=workspace, prompt=prompt)
        done = subprocess.run(
            start.argv,
            env=start.env,
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert service.problems == [], done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert (workspace / "made" / "new.py").read_text(encoding="utf-8") == content
    assert (workspace / "sum.txt").read_text(encoding="utf-8") == "3\n"
    assert (workspace / "calc.py").read_text(encoding="utf-8") == "def add(a, b):\n    return a + b\n"
    assert [request.turn for request in service.work] == [0, 1, 2, 3, 4]
    assert {request.dialect for request in service.requests} == {DIALECTS[name]}
    assert service.unused == (1,)
    told = service.work[-1].asked
    assert told is not None
    assert "the-command-ran" in told.messages[-1].text
    assert json.dumps(REPORT) in done.stdout.encode().decode("unicode_escape")
