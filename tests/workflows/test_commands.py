"""`redfirst recipes` as a person or a program meets it: where recipes are, what is said of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from kit import make_project
from workflows.test_check import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

ASKS = "name: {0}\ndescription: {1}\nsteps: [{{id: a, agent: check, prompt: p}}]\n"


def test_check_04_problems_are_told_to_people_and_programs(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(EXAMPLES[1], encoding="utf-8")
    bad.write_text(EXAMPLES[1].replace("agent: check", "agent: chek"), encoding="utf-8")
    project = make_project(tmp_path)
    both = project.redfirst("recipes", "lint", str(good), str(bad))
    assert both.returncode == 2
    assert both.stdout == f"{bad}:5:17: 'chek' is not known as agent; did you mean 'check'? [unknown_role]\n"
    document = json.loads(project.redfirst("recipes", "lint", str(good), str(bad), "--json").stdout)
    assert [file["ok"] for file in document["files"]] == [True, False]
    told = project.redfirst("recipes", "show", str(good), "code=src")
    assert told.returncode == 0
    assert "3. fix: @make, reviewed by @check\n   sees cause\n   may write src\n" in told.stdout
    assert told.stdout.endswith("At most 16 dispatches; the limit is 80. Nobody was asked.\n")
    refused = json.loads(project.redfirst("recipes", "show", str(bad), "--json").stdout)
    assert refused["error"]["kind"] == "recipe_invalid"
    assert refused["error"]["details"]["problems"][0]["rule"] == "unknown_role"
    unknown = json.loads(project.redfirst("recipes", "show", "research", "topci=x", "--json").stdout)
    assert (unknown["error"]["kind"], unknown["error"]["message"].count("did you mean 'topic'?")) == (
        "input_invalid",
        1,
    )
    assert not (project.root / ".workflow").exists()


def test_of_one_name_the_repositorys_counts_once_it_is_committed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    own = project.home / "config" / "redfirst" / "recipes"
    own.mkdir(parents=True)
    (own / "triage.yaml").write_text(ASKS.format("triage", "Mine."), encoding="utf-8")
    (own / "mine.yaml").write_text(ASKS.format("other", "Mine."), encoding="utf-8")
    (own / "broken.yaml").write_bytes(b"name: \xff")
    theirs = {".redfirst/recipes/triage.yaml": ASKS.format("triage", "Theirs.")}
    project.write(theirs)
    assert "Mine." in project.redfirst("recipes", "list").stdout
    missing = project.redfirst("recipes", "show", "trage")
    assert (missing.returncode, 'Did you mean "triage"?' in missing.stderr) == (2, True)
    project.commit()
    listed = json.loads(project.redfirst("recipes", "list", "--json").stdout)["recipes"]
    triage = [(one["origin"], one["path"], one["counts"]) for one in listed if one["name"] == "triage"]
    assert triage == [
        ("repository", ".redfirst/recipes/triage.yaml", True),
        ("user", "~/config/redfirst/recipes/triage.yaml", False),
        ("builtin", "builtin:triage", False),
    ]
    assert {one["name"]: one["ok"] for one in listed if one["origin"] == "user"} == {
        "broken": False, "mine": False, "triage": True,
    }  # fmt: skip
    assert "1. open:" in project.redfirst("recipes", "show", "builtin:triage").stdout
    assert "the recipe is called 'other', and its file 'mine'" in project.redfirst("recipes", "lint", "mine").stdout
    uncommitted = {".redfirst/recipes/late.yaml": ASKS.format("late", "Late.")}
    project.write(uncommitted)
    late = project.redfirst("recipes", "show", "late")
    assert "not committed" in " ".join(late.stderr.split())
    assert project.redfirst("recipes", "show", "./.redfirst/recipes/late.yaml").returncode == 0


def test_the_schema_and_the_reader_accept_the_same_keys(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    schema = json.loads(project.redfirst("schema", "recipe").stdout)
    assert {"Recipe", "Extension", "Step", "Edit"} <= set(schema["$defs"])
    assert "with" in schema["$defs"]["Step"]["properties"]
