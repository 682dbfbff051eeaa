"""The flags of a run count for every later command on it; what is different since it was last driven is said."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import SUMS_HONEST, sums_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

GATES = ("--approve", "plan,commit")


def make(tmp_path: Path) -> tuple[Project, list[str]]:
    """Return a project of sums, and the flags that let every role be played from a script named from its top."""
    project = sums_project(tmp_path)
    project.configure("")
    project.env["REDFIRST_SANDBOX"] = "none"
    script = project.script(SUMS_HONEST)
    return project, ["--set", "agents.backend=scripted", "--set", f"agents.script=../home/{script.name}"]


def changes(project: Project) -> list[dict[str, Any]]:
    return [line["data"] for line in project.journal() if line["kind"] == "config_changed"]


def said(document: dict[str, Any], word: str) -> list[str]:
    return [line.strip() for line in document["_stderr"].splitlines() if word in line]


def test_the_flags_of_a_run_count_for_each_later_command_and_only_differences_are_said(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    parked = project.run(*flags, "--set", "limits.plan_review=3", *GATES)
    assert parked["reason"] == "approval", parked["_stderr"]
    below = project.root / "TODO"  # a relative path of a flag starts where that flag was given
    project.root, top = below, project.root
    again = project.document("approve", "GAL-1")
    project.root = top
    assert (again["outcome"], again["reason"]) == ("parked", "approval"), again["_stderr"]
    assert (changes(project), [line for line in said(again, " -> ") if line[0] != "["]) == ([], [])
    done = project.document("approve", "GAL-1", "--set", "limits.plan_review=5", "--agent", "simplify=off")
    assert done["outcome"] == "completed", done["_stderr"]
    assert said(done, "(--") == [
        "agents.simplify.backend: not set -> off (--agent)",
        "limits.plan_review: 3 -> 5 (--set)",
    ]
    (changed,) = changes(project)
    assert changed["limits"] == {"plan_review": 5}
    log = project.redfirst("show", "GAL-1", "--log").stdout
    assert "limits.plan_review: 3 -> 5 (--set)" in log


@pytest.mark.broad
def test_a_file_and_a_variable_that_changed_are_said_and_a_flag_beats_them(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    project.configure("[limits]\nseam = 2\n")
    project.env["REDFIRST_LIMITS__REASK"] = "3"
    project.run(*flags, "--set", "limits.make_retry=4", *GATES)
    project.configure("[limits]\nseam = 1\nmake_retry = 1\n")
    del project.env["REDFIRST_LIMITS__REASK"]
    document = project.document("approve", "GAL-1")
    assert document["reason"] == "approval", document["_stderr"]
    config = project.home / "config" / "redfirst" / "config.toml"
    told = [line for line in said(document, "limits.") if "->" in line]
    assert told == ["limits.reask: 3 -> 1 (default)", f"limits.seam: 2 -> 1 ({config}:2)"]
    assert said(project.document("approve", "GAL-1"), "limits.") == []
    assert len(changes(project)) == 1


@pytest.mark.broad
def test_a_file_of_the_repository_that_changed_since_the_run_began_is_said_to_be_for_new_runs(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    project.write({"redfirst.toml": "[limits]\nseam = 2\n"})
    project.commit("configured")
    project.run(*flags, *GATES)
    assert said(project.document("approve", "GAL-1"), "redfirst.toml") == []
    project.write({"redfirst.toml": "[limits]\nseam = 1\n"})
    project.commit("configured otherwise")
    (line,) = said(project.document("reject", "GAL-1", "--feedback", "no"), "redfirst.toml")
    assert line.startswith("redfirst.toml says something else than when this run began"), line


@pytest.mark.broad
def test_an_issue_that_was_edited_while_its_run_was_parked_is_todo_again_when_that_is_abandoned(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    assert project.run(*flags, *GATES)["reason"] == "approval"
    issue = project.root / "TODO" / "GAL-1.md"
    issue.write_text(issue.read_text() + "\nOne more thought.\n")
    document = project.document("abandon", "GAL-1")
    assert said(document, "Todo again"), document["_stderr"]
    assert issue.read_text().endswith("\nOne more thought.\n")
    assert project.redfirst("issue", "lint").returncode == 0
    project.commit("a thought")
    assert project.run(*flags, *GATES)["reason"] == "approval", "what abandon advises works"


@pytest.mark.broad
def test_a_limit_that_is_raised_with_a_rejection_counts_for_it(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    project.run(*flags, "--set", "limits.plan_rework=0", *GATES)
    document = project.document("reject", "GAL-1", "--feedback", "smaller", "--set", "limits.plan_rework=2")
    assert document.get("reason") != "loops_exhausted", document["_stderr"]
    assert said(document, "limits.") == ["limits.plan_rework: 0 -> 2 (--set)"]


@pytest.mark.broad
def test_a_value_that_may_be_a_secret_is_not_kept_and_is_asked_for_again(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    secret, key = "sw0rdfish-of-ada", "agents.make.env.SHOP_TOKEN"
    project.env["OTHER_TOKEN"] = "another-secret-of-ada"
    argv = 'agents.argv=["x", "--key", "another-secret-of-ada"]'
    project.run(*flags, "--set", f"{key}={secret}", "--set", argv, *GATES)
    refused = project.document("approve", "GAL-1")
    assert (refused["_code"], refused["error"]["kind"]) == (2, "config")
    assert f"--set {key}=VALUE" in refused["error"]["message"]
    again = project.document("approve", "GAL-1", "--set", f"{key}={secret}", "--set", argv)
    assert again["reason"] == "approval", again["_stderr"]
    assert changes(project) == []
    other = project.document("approve", "GAL-1", "--set", f"{key}=something-else", "--set", argv)
    assert other["outcome"] == "completed", other["_stderr"]
    assert said(other, "values are not kept") == ["env: a variable of an agent has another value (values are not kept)"]
    kept = "".join((project.run_folder() / name).read_text() for name in ("run.json", "journal.jsonl"))
    for value in (secret, "another-secret-of-ada", "something-else"):
        assert value not in kept


def test_flags_in_a_run_folder_that_was_not_made_here_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    project.run(*flags, *GATES)
    shutil.rmtree(project.home / "state")  # as where the folder was unpacked from an archive
    before = project.journal()
    refused = project.document("approve", "GAL-1")
    assert (refused["_code"], refused["error"]["kind"]) == (2, "untrusted"), refused
    assert "--set agents.backend=scripted" in refused["error"]["message"]
    assert refused["error"]["safe_next_actions"] == ["redfirst show run-GAL-1"]
    assert "GAL-1" in project.redfirst("show", "run-GAL-1").stdout
    assert project.journal() == before
    script = flags[-1].partition("=")[2]
    again = project.document("approve", "GAL-1", "--set", "agents.backend=scripted", "--set", f"agents.script={script}")
    assert again["reason"] == "approval", again["_stderr"]


@pytest.mark.broad
def test_a_run_of_an_earlier_version_has_no_flags_and_goes_on(tmp_path: Path) -> None:
    project, flags = make(tmp_path)
    project.run(*flags, *GATES)
    record = project.run_folder() / "run.json"
    info = json.loads(record.read_text())
    del info["flags"]
    record.write_text(json.dumps(info))
    script = project.home / "script.yaml"
    project.configure(f'[agents]\nbackend = "scripted"\nscript = "{script}"\n')
    assert project.document("approve", "GAL-1")["reason"] == "approval"
