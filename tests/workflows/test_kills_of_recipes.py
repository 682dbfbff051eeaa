"""Kills at random instants of a recipe's run whose steps read: the same comes out, nobody finished is asked twice."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, kill_after, problems, repeated_dispatches
from kit import make_project

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
