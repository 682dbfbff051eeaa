"""`redfirst agents`: the answers of list, lint and explain, as people and programs read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

from pipeline.agents.dispatch.roles import data_folder
from pipeline.errors import UserError
from pipeline.faces.cli.agents import app
from pipeline.outcomes import Reason
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = typer.Typer()
PROGRAM.add_typer(app)


def ask(*words: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(PROGRAM, ["agents", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == exit_code, result.output
    return result.output


def explain(*words: str) -> dict[str, Any]:
    head = words.index("--") if "--" in words else len(words)
    answer = json.loads(ask("explain", *words[:head], "--json", *words[head:]))
    assert set(answer) - {"note"} == {"allowed", "rule", "why"}
    assert answer["why"]
    return answer


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/cart.py").write_text("TOTAL = 0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_shows_every_role_with_its_permissions() -> None:
    answer = json.loads(ask("list", "--json"))
    assert [role["name"] for role in answer["roles"]] == list(Role)
    check = next(role for role in answer["roles"] if role["name"] == "check")
    assert (check["writes"], check["shell"]) == ("nothing", False)
    assert "prompt" not in check
    assert len(answer["prompts_sha256"]) == 64
    assert "orchestrator: writes nothing, no shell; plan, " in ask("list")


@pytest.mark.parametrize("role", list(Role))
def test_what_the_list_says_is_what_explain_says(shop: Path, role: Role) -> None:
    """A role that may write something has a path that it may write; who writes nothing is refused for that reason."""
    writes = next(one["writes"] for one in json.loads(ask("list", "--json"))["roles"] if one["name"] == role)
    grants = ("--task-file", "src/cart.py:modify", "--test-file", "tests/test_a.py")
    ruled = [explain(role, path, *grants) for path in ("TODO/GAL-1.md", "src/cart.py", "tests/test_a.py")]
    assert any(ruling["allowed"] for ruling in ruled) is (writes != "nothing")
    if writes == "nothing":
        assert {ruling["rule"] for ruling in ruled} == {"read-only-role"}


def test_the_shipped_files_have_no_problems() -> None:
    assert ask("lint") == "no problems\n"
    assert json.loads(ask("lint", "--json")) == {"schema": "redfirst.agents-lint/1", "ok": True, "problems": []}


def test_a_broken_role_file_is_told_with_its_line(tmp_path: Path) -> None:
    text = (data_folder("agents") / "check.md").read_text(encoding="utf-8")
    file = tmp_path / "check.md"
    file.write_text(text.replace("writes: nothing", "writes: task"))
    answer = json.loads(ask("lint", str(file), "--json", exit_code=2))
    assert answer["ok"] is False
    assert [(p["file"], p["line"]) for p in answer["problems"]] == [(str(file), 5)]
    assert f"{file}:5: writes: this role writes nothing" in ask("lint", str(file), exit_code=2)


def test_a_broken_template_is_told_with_its_line(tmp_path: Path) -> None:
    text = (data_folder("commands") / "implement.md").read_text(encoding="utf-8")
    file = tmp_path / "implement.md"
    file.write_text(text.replace("kind: implement", "kind: implemnt"))
    answer = json.loads(ask("lint", str(file), "--json", exit_code=2))
    assert answer["problems"][0]["line"] == 2
    file.write_text(text.replace("* `impacted_tests`", "* `impacted`"))
    answer = json.loads(ask("lint", str(file), "--json", exit_code=2))
    assert [p["message"] for p in answer["problems"]] == ["## Artifacts has a line for each artifact of the kind"]
    assert "impacted_tests" in answer["problems"][0]["accepted"]


def test_a_file_that_is_not_text_is_a_problem_of_that_file(tmp_path: Path) -> None:
    file = tmp_path / "make.md"
    file.write_bytes(b"---\n\xff")
    assert "not UTF-8 at byte 4" in ask("lint", str(file), exit_code=2)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Cannot read") as caught:
        ask("lint", str(tmp_path / "none.md"))
    assert caught.value.reason is Reason.USAGE


def test_the_change_decides_when_it_is_given(shop: Path) -> None:
    (shop / "old").write_text("a")
    (shop / "new").write_text("b")
    named = ("--task-file", "src/cart.py:modify")
    assert explain("make", "src/cart.py", *named, "--change", "old", "new")["allowed"]
    assert explain("make", "src/cart.py", *named, "--change", "old", "-")["rule"] == "deletion-not-named"
    assert explain("make", "src/cart.py", *named, "--change", "-", "new")["rule"] == "action-not-named"
    assert explain("make", "src/cart.py", "--change", "old", "old")["rule"] == "no-change"
    assert explain("make", "src/cart.py", "--task-file", "src/cart.py:delete", "--change", "old", "-")["allowed"]


def test_a_rename_grant_covers_both_its_ends(shop: Path) -> None:
    (shop / "old").write_text("a")
    grant = ("--task-file", "src/basket.py:rename:src/cart.py")
    assert explain("make", "src/cart.py", *grant, "--change", "old", "-")["allowed"]
    assert explain("make", "src/basket.py", *grant)["allowed"]


@pytest.mark.parametrize(
    ("role", "command", "allowed", "rule"),
    [
        ("check", ["ls"], False, "shell"),
        ("pm", ["git", "status"], False, "shell"),
        ("make", ["pytest", "-q", "tests/test_cart.py"], True, "listed-command"),
        ("test", ["pytest", "-p", "evil"], False, "option-not-listed"),
        ("make", ["pytest", "-k", "a or b"], True, "listed-command"),
        ("make", ["pytest", "-q", "--json"], False, "option-not-listed"),
        ("test", ["git", "commit", "-m", "x"], False, "program-not-listed"),
        ("make", ["/usr/bin/git", "push"], False, "program-path"),
        ("make", ["pytest -q"], False, "program-not-listed"),
        ("make", ["rg", "a;b", "src"], True, "listed-command"),
        ("make", ["cat", "--", "/etc/passwd"], False, "path"),
    ],
)
def test_a_command_is_ruled_as_the_argv_that_it_is(role: str, command: list[str], allowed: bool, rule: str) -> None:
    answer = explain(role, "--", *command)
    assert (answer["allowed"], answer["rule"]) == (allowed, rule)


def test_the_answer_on_a_command_says_whom_it_binds() -> None:
    assert "the command of any other agent runs in the box" in explain("make", "--", "pytest")["note"].lower()
    assert "throw-away repository" in explain("make", "--", "git", "diff")["note"]
    ruling, note = ask("explain", "test", "--", "pytest", "-p", "evil").splitlines()
    assert ruling.startswith("refused  option-not-listed: ")
    assert note.startswith("note     ")


def test_test_regions_are_measured_when_the_change_is_given(shop: Path) -> None:
    before = "fn one() -> u8 { 1 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn old() {}\n}\n"
    (shop / "old.rs").write_text(before)
    (shop / "inside.rs").write_text(before.replace("fn old() {}", "fn old() { super::one(); }"))
    (shop / "outside.rs").write_text(before.replace("{ 1 }", "{ 2 }"))
    assert explain("test", "src/lib.rs", "--change", "old.rs", "inside.rs")["rule"] == "test-region"
    refused = explain("test", "src/lib.rs", "--change", "old.rs", "outside.rs")
    assert (refused["allowed"], "line 1" in refused["why"]) == (False, True)
    assert not explain("make", "src/lib.rs", "--change", "old.rs", "inside.rs")["allowed"]
    assert not explain("test", "src/lib.py", "--change", "old.rs", "inside.rs")["allowed"]


@pytest.mark.parametrize(
    "words",
    [
        ["make"],
        ["make", "src/a.py", "--", "ls"],
        ["make", "--"],
        ["make", "/etc/passwd"],
        ["make", "../a"],
        ["make", "a", "--task-file", "a"],
        ["make", "a", "--task-file", "a:write"],
        ["make", "a", "--task-file", "a:rename"],
        ["make", "a", "--task-file", "a:modify:b"],
        ["make", "a", "--change", "missing", "-"],
        ["make", "--task-file", "a:modify", "--", "ls"],
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(shop: Path, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        ask("explain", *words)
    assert caught.value.reason is Reason.USAGE
