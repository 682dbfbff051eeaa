"""PUBLISH when branch, files or signature are in the way: parked, nothing changed, and how to go on (architecture)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.lanes import Played, go_on, play
from kit import FILES, HONEST, MAKE, PLAN, SPLIT, TASK, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

FAST = '[agents.simplify]\nbackend = "off"\n'
NEW_FILE = {"path": "messages.py", "action": "create"}
SCRIPT: list[Entry] = [
    {**PLAN, "report": {**PLAN["report"], "files": [*PLAN["report"]["files"], NEW_FILE]}},
    *HONEST[1:3],
    {**SPLIT, "report": {"tasks": [{**TASK, "files": [*TASK["files"], NEW_FILE]}]}},
    *HONEST[4:6],
    {**MAKE, "files": {**MAKE["files"], "messages.py": 'EMPTY = "a name is needed"\n'}},
    *HONEST[7:],
]


def parked_at_commit(tmp_path: Path) -> Played:
    """Return a run that has everything and waits for a person before it publishes."""
    project = make_project(tmp_path, {**FILES, "notes.txt": "mine\n", "TODO/GAL-2.md": FILES["TODO/GAL-1.md"]})
    project.write({"TODO/GAL-2.md": FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-2")})
    project.commit()
    played = play(project, SCRIPT, "--approve", "commit", extra=FAST)
    assert played.document.get("reason") == "approval", played.document
    return played


def standing(project: Project) -> tuple[str, str, str]:
    """Return all that a refused publication must leave alone: branch, index, files."""
    return project.git("rev-parse", "work"), project.git("write-tree"), project.git("status", "--porcelain")


@pytest.mark.broad
def test_whatever_is_in_the_way_parks_the_run_and_is_mended_one_by_one(tmp_path: Path) -> None:
    parked = parked_at_commit(tmp_path)
    project = parked.project

    project.git("config", "commit.gpgsign", "true")
    project.git("config", "gpg.program", "/bin/false")
    before = standing(project)
    document = go_on(parked, "approve").document
    assert (document.get("reason"), document["_code"]) == ("signing", 4), document
    assert standing(project) == before
    project.git("config", "--unset", "commit.gpgsign")

    project.write({"messages.py": "# my own\n"})
    before = standing(project)
    document = go_on(parked, "resume").document
    assert (document.get("reason"), document["_code"]) == ("worktree_changed", 4), document
    assert "messages.py" in document["note"]
    assert standing(project) == before
    assert (project.root / "messages.py").read_text(encoding="utf-8") == "# my own\n"
    (project.root / "messages.py").unlink()

    project.write({"greet.py": "# edited\n", "notes.txt": "mine, edited\n"})
    before = standing(project)
    document = go_on(parked, "resume").document
    assert document.get("reason") == "worktree_changed", document
    assert "greet.py" in document["note"]
    assert standing(project) == before
    assert (project.root / "greet.py").read_text(encoding="utf-8") == "# edited\n"
    project.git("checkout", "--quiet", "--", "greet.py")

    issue = project.root / "TODO" / "GAL-1.md"
    ours = issue.read_text(encoding="utf-8")
    issue.write_text(ours + "\nA thought of mine.\n", encoding="utf-8")
    document = go_on(parked, "resume").document
    assert document.get("reason") == "worktree_changed", document
    assert "TODO/GAL-1.md" in document["note"]
    assert issue.read_text(encoding="utf-8").endswith("A thought of mine.\n")
    issue.write_text(ours, encoding="utf-8")

    project.git("commit", "--quiet", "--message", "mine", "--only", "--", "notes.txt")
    project.write({"notes.txt": "mine, edited again\n"})
    document = go_on(parked, "resume").document
    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document
    assert parked.subjects() == ["mine", "fix: reject empty names", "chore(todo): close GAL-1"]
    assert (project.root / "notes.txt").read_text(encoding="utf-8") == "mine, edited again\n"
    assert project.git("status", "--porcelain") == "M notes.txt", "an edit elsewhere is in nobody's way"
    assert "status: Done" in issue.read_text(encoding="utf-8")
    assert len([line for line in project.journal() if line["kind"] == "publish_intended"]) == 2
