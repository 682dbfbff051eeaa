"""`redfirst agents try`: one dispatch, judged, nothing applied, and an exit code that says how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import GREET_DONE, MAKE, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

TRY = ("agents", "try", "make", "--kind", "implement", "--issue", "GAL-1", "--write", "greet.py")


def tried(tmp_path: Path, entry: Entry) -> Project:
    project = make_project(tmp_path)
    project.use_script([entry])
    return project


def test_an_answer_that_counts_is_shown_and_not_applied(tmp_path: Path) -> None:
    project = tried(tmp_path, MAKE)
    start = project.git("rev-parse", "HEAD")
    document = project.document(*TRY)
    assert (document["_code"], document["ok"], document["gate"]) == (0, True, "admitted")
    assert [change["path"] for change in document["changes"]] == ["greet.py"]
    assert document["agent"]["product"] == "scripted"
    assert project.untouched_since(start)
    assert not (project.root / ".workflow").exists()


@pytest.mark.parametrize(
    ("entry", "gate", "says"),
    [
        ({**MAKE, "files": {"greet.py": GREET_DONE, "other.py": "x = 1\n"}}, "rejected", "other.py"),
        ({"when": {}, "report": {"result": "PERFECT"}}, "admitted", "result"),
        ({"when": {}, "exit": 3}, "admitted", "exit code 3"),
    ],
    ids=["violation", "schema", "exit"],
)
@pytest.mark.broad(but_first=1)
def test_one_that_does_not_count_ends_otherwise(tmp_path: Path, entry: Entry, gate: str, says: str) -> None:
    project = tried(tmp_path, entry)
    document = project.document(*TRY)
    assert (document["_code"], document["ok"], document["gate"]) == (4, False, gate)
    assert says in document["report_error"]
    done = project.redfirst(*TRY)
    assert done.returncode == 4
    assert "does not count" in done.stdout
