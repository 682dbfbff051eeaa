"""`redfirst agents try`: one dispatch, judged, nothing applied, and an exit code that says how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import GREET_DONE, HONEST, MAKE, TEST_GREET, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

TRY = ("agents", "try", "make", "--kind", "implement", "--issue", "GAL-1", "--write", "greet.py")


def tried(tmp_path: Path, entry: Entry) -> Project:
    project = make_project(tmp_path)
    project.use_script([entry])
    return project


SEES = (
    "env | grep -v -e ^REDFIRST_ -e ^PWD= | sort; command -v pytest; ls -A; "
    "python -m pytest -q -p no:cacheprovider 2>&1 | tail -n 1 | cut -d ' ' -f 2"
)
"""What tells one box from another: variables, programs, ignored files, what `setup` made, and whether tests run."""


@pytest.mark.broad
def test_the_agent_has_what_it_has_in_a_run(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({".worktreeinclude": "local.cfg\n", ".gitignore": "local.cfg\n.workflow\n"})
    project.commit()
    project.write({"local.cfg": "ours\n"})
    project.env["REDFIRST_TRUST"] = "1"
    seen = {**MAKE, "run": ["sh", "-c", SEES]}
    project.use_script(
        [seen if entry is MAKE else entry for entry in HONEST],
        '[toolchains.pytest]\nsetup = ["touch", "made-by-setup"]\n',
    )
    tried = project.document(*TRY)
    assert tried.get("gate") == "admitted", tried
    assert project.run()["outcome"] == "completed"
    ran = next(project.run_folder().glob("dispatches/*-implement-make/stdout.log")).read_text(encoding="utf-8")
    assert tried["log"] == ran
    assert "local.cfg" in ran
    assert ran.endswith("\npassed\n")


@pytest.mark.broad
def test_what_counts_as_a_test_is_known_as_in_a_run(tmp_path: Path) -> None:
    document = tried(tmp_path, {**MAKE, "files": {"greet.py": GREET_DONE, "tests/test_greet.py": TEST_GREET + "\n"}})
    told = document.document(*TRY, "--write", "tests/test_greet.py")
    assert (told["_code"], told["ok"], told["gate"]) == (4, False, "rejected")
    assert [one["rule"] for one in told["violations"]] == ["test-file"]
    assert "put back" not in told["report_error"]


@pytest.mark.broad
def test_where_no_run_could_begin_nobody_is_asked(tmp_path: Path) -> None:
    project = tried(tmp_path, MAKE)
    project.write({"tests/conftest.py": "import not_installed_anywhere\n"})
    project.commit()
    told = project.document(*TRY)
    assert (told["_code"], told["error"]["kind"]) == (2, "baseline_impossible")


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
@pytest.mark.broad
def test_one_that_does_not_count_ends_otherwise(tmp_path: Path, entry: Entry, gate: str, says: str) -> None:
    project = tried(tmp_path, entry)
    document = project.document(*TRY)
    assert (document["_code"], document["ok"], document["gate"]) == (4, False, gate)
    assert says in document["report_error"]
    done = project.redfirst(*TRY)
    assert done.returncode == 4
    assert "does not count" in done.stdout
