"""Kills at random instants of a recipe's run whose steps read: the same comes out, nobody finished is asked twice.

Acceptance check 27: of a thousand dispatches side by side not one is taken for an escape.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, kill_after, problems, repeated_dispatches
from kit import make_project
from workflows.test_runs_of_recipes import LOOSE

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project


pytestmark = pytest.mark.slow

RUN = "run-mine"
RECIPE = """name: mine
steps:
  - {id: angles, agent: check, prompt: "Angles?", payload: {type: array, items: {type: string}}}
  - {id: look, agent: explore, depends_on: [angles], for_each: "{{steps.angles.payload}}", prompt: "{{item}}"}
  - {id: beside, agent: explore, prompt: "Something else."}
  - {id: brief, agent: check, depends_on: [look, beside], accepts: partial, prompt: "Tell."}
output: "{{steps.brief.output}}"
"""


def answer(step: str, output: str, chance: random.Random, **more: Any) -> Entry:
    report = {"result": "ANSWERED", "output": output, **more}
    return {"when": {"step": step}, "sleep_s": round(chance.uniform(0, 0.3), 3), "report": report}


def came_out(project: Project) -> dict[str, Any]:
    """Return what the steps came to, without what differs from run to run."""
    found: dict[str, Any] = {}
    for path in sorted((project.run_folder(RUN) / "steps").glob("*/outcome.json")):
        said = json.loads(path.read_text())
        found[path.parent.name] = {key: said[key] for key in ("checkpoint", "signal", "summary", "wave", "held_by")}
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.broad(but_first=1)
def test_check_8_kills_change_nothing_and_nobody_finished_is_asked_again(seed: int, tmp_path: Path) -> None:
    project, chance = make_project(tmp_path), random.Random(seed)  # noqa: S311  (a schedule, no secret)
    (tmp_path / "mine.yaml").write_text(RECIPE)
    script = [
        answer("angles", "Three.", chance, payload=["a", "b", "c"]),
        *(answer(f"look.{number}", f"Found {number}.", chance) for number in (1, 2, 3)),
        answer("beside", "Nothing.", chance),
        answer("brief", "All told.", chance),
    ]
    project.use_script(script, 'sandbox = "none"\n')
    begin = ("run", "../mine.yaml")
    kills = int(die_at(project, "after journal dispatch_finished", 2 + seed % 3, *begin) == KILLED)
    while kills < 5 and kill_after(project, chance.uniform(0.3, 1.5), "resume", RUN) == KILLED:
        kills += 1
    last = project.redfirst("resume", RUN)
    assert last.returncode == 0 or "has ended (completed, done)" in last.stderr, last.stderr
    said = json.loads(project.redfirst("show", RUN, "--json").stdout)
    assert (said["outcome"], said["output"], said["dispatches"] - 6 <= 3 * kills) == ("completed", "All told.\n", True)
    assert kills >= 1
    assert (repeated_dispatches(project, RUN), problems(project)) == ([], [])
    ready: dict[str, Any] = {"checkpoint": "ready", "signal": "ANSWERED", "held_by": []}
    assert came_out(project) == {
        "angles": {**ready, "summary": "Three.", "wave": 1},
        "beside": {**ready, "summary": "Nothing.", "wave": 1},
        "look.1": {**ready, "summary": "Found 1.", "wave": 2},
        "look.2": {**ready, "summary": "Found 2.", "wave": 2},
        "look.3": {**ready, "summary": "Found 3.", "wave": 2},
        "brief": {**ready, "summary": "All told.", "wave": 3},
    }


# --- a thousand dispatches side by side -------------------------------------------------------------------------------

READERS, WRITERS, AT_ONCE = 900, 100, 24


@pytest.mark.broad
@pytest.mark.timeout(3600)
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
