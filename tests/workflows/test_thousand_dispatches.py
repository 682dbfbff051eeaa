"""Acceptance check 27: a thousand dispatches side by side in one run, and not one of them is taken for an escape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project
from workflows.test_runs_of_recipes import LOOSE

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad, pytest.mark.timeout(3_600)]

READERS, WRITERS, AT_ONCE = 900, 100, 24


def test_check_27_a_thousand_dispatches_side_by_side_are_no_escape(tmp_path: Path) -> None:
    """Each of the hundred writers moves the ref of the run, which whoever looks for escapes sees."""
    steps: list[dict[str, Any]] = []
    script: list[Entry] = []
    for number in range(READERS + WRITERS):
        id_ = f"s{number}"
        if number % (READERS // WRITERS + 1):
            steps.append({"id": id_, "agent": "explore", "prompt": "Look."})
            report = {"result": "ANSWERED", "output": "Nothing."}
            script.append({"when": {"step": id_}, "report": report, "sleep_s": 0.3})
        else:
            steps.append({"id": id_, "agent": "make", "write_set": [f"docs/{id_}.md"], "prompt": "Write."})
            report = {"result": "COMPLETE", "summary": "Written."}
            script.append({"when": {"step": id_}, "report": report, "files": {f"docs/{id_}.md": f"{id_}\n"}})
    project = make_project(tmp_path, {"readme.md": "Small.\n"})
    recipe = {"name": "wide", "max_concurrency": AT_ONCE, "steps": steps}
    (tmp_path / "wide.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    project.use_script(script, LOOSE)
    done = project.redfirst("run", "../wide.yaml", "--json", timeout=3_600)
    document = json.loads(done.stdout)
    assert (document["outcome"], document["dispatches"]) == ("completed", READERS + WRITERS), document
    assert "any/ESCAPE" not in project.rows("run-wide")
    begun: set[str] = set()
    most = 0
    for line in project.journal("run-wide"):
        if line["kind"] == "dispatch_started":
            begun.add(line["data"]["dispatch"])
            most = max(most, len(begun))
        elif line["kind"] == "dispatch_finished":
            begun.discard(line["data"]["dispatch"])
    assert most == AT_ONCE
