"""What tools leave behind and the project ignores is dropped and named; it is no violation of the agent's."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view

from pipeline.agents.dispatch.gate import GateResult, Policy, inspect
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.judge.policy.roles import Writes
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CODE = "greet.py"
MAKE = (Grant(CODE, Action.MODIFY), Grant("build/wanted.py", Action.CREATE))
TESTS = TestScope((Grant("tests/test_greet.py", Action.MODIFY),), folders=("tests",))


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def ruled(
    folder: Path,
    base: Mapping[str, str],
    written: Mapping[str, str],
    *,
    excluded: str = "",
    script: str = "",
    writes: Writes = Writes.TASK,
) -> GateResult:
    project = folder / "project"
    put(project, {CODE: "", **base})
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / ".git/info/exclude").write_text(excluded)
    repository = Repository.find(project)
    policy = Policy(
        writes,
        MAKE if writes is Writes.TASK else (),
        TESTS,
        ignored=lambda paths: repository.ignored_paths(project, paths),
    )
    view = open_view(lambda root: put(root, {CODE: "", **base}), folder / "view", workspace=folder / "w", writable=True)
    put(view.host, written)
    subprocess.run(["bash", "-c", script], cwd=view.host, check=True)
    try:
        return inspect(view, policy)
    finally:
        view.close()


def test_a_build_folder_and_a_log_are_dropped_and_the_work_is_admitted(tmp_path: Path) -> None:
    built = {f"build/x/{number}.o": "o" for number in range(30)}
    result = ruled(
        tmp_path,
        {".gitignore": "build/\n*.log\n/docs/_made/\n"},
        {CODE: "x", "debug.log": "hi", "docs/_made/a/b.html": "<p>", **built},
    )
    assert result.violations == ()
    assert [change.path for change in result.changes] == [CODE]
    assert set(result.dropped) == {
        "build (.gitignore: build/)",
        "debug.log (.gitignore: *.log)",
        "docs/_made (.gitignore: /docs/_made/)",
    }


@pytest.mark.parametrize(
    ("base", "written", "excluded"),
    [
        ({}, {"other.py": ""}, ""),
        ({".gitignore": "*.log\n!kept.log\n"}, {"kept.log": ""}, ""),
        ({}, {"private.txt": ""}, "private.txt\n"),
        ({"debug.log": "old", ".gitignore": "*.log\n"}, {"debug.log": "new"}, ""),
        ({}, {"debug.log": "", ".gitignore": "*.log\n"}, ""),
    ],
    ids=["not ignored", "taken back", "only the user ignores it", "tracked", "ignored by the agent itself"],
)
def test_what_the_project_does_not_ignore_or_has_is_refused(
    tmp_path: Path, base: dict[str, str], written: dict[str, str], excluded: str
) -> None:
    result = ruled(tmp_path, base, written, excluded=excluded)
    assert {one.path for one in result.violations} == set(written)
    assert result.dropped == ()


def test_an_ignored_file_that_the_task_names_is_the_work(tmp_path: Path) -> None:
    result = ruled(tmp_path, {".gitignore": "build/\n"}, {"build/wanted.py": "x", "build/other.o": "o"})
    assert [change.path for change in result.changes] == ["build/wanted.py"]
    assert result.violations == ()


@pytest.mark.parametrize(
    "path",
    [
        *(".envrc", ".env", "conftest.py", "lib/conftest.py", "sitecustomize.py", "lib/extra.pth", "AGENTS.md"),
        *(".claude/settings.json", ".husky/pre-commit", "build/Makefile", "lib/.gitignore", ".vscode/tasks.json"),
        *("sub/.git/config", ".workflow/x", "TODO/GAL-1.md", "store/HEAD", "tests/conftest.py"),
    ],
)
def test_what_git_an_agent_or_a_tool_obeys_is_refused_though_it_is_ignored(path: str, tmp_path: Path) -> None:
    store = {"store/HEAD": "ref: refs/heads/x\n", "store/objects/x": "", "store/refs/x": ""}
    written = store if path.startswith("store") else {path: "x"}
    result = ruled(tmp_path, {".gitignore": "*\n!greet.py\n"}, written)
    assert [one.path for one in result.violations] == [path], result


def test_links_and_the_like_in_an_ignored_folder_are_dropped_with_it(tmp_path: Path) -> None:
    script = "mkdir -p out/bin out/empty; ln -s /etc/passwd out/bin/x; mkfifo out/pipe; echo x > out/a; ln out/a out/b"
    result = ruled(tmp_path, {".gitignore": "out/\n"}, {CODE: "x"}, script=script)
    assert (result.violations, result.dropped) == ((), ("out (.gitignore: out/)",))


@pytest.mark.parametrize("script", ["ln -s /etc/passwd a.log; ln greet.py b.log", "rm greet.py; ln -s x.log greet.py"])
def test_what_is_done_to_a_file_of_the_project_is_refused_whatever_is_ignored(script: str, tmp_path: Path) -> None:
    result = ruled(tmp_path, {".gitignore": "*.log\n"}, {}, script=script)
    assert [one.path for one in result.violations] == [CODE]


def test_an_agent_that_edits_the_rules_of_ignoring_gains_nothing(tmp_path: Path) -> None:
    base = {".gitignore": "*.log\n", "lib/a.py": ""}
    result = ruled(tmp_path, base, {".gitignore": "*.log\nevil.py\n", "lib/.gitignore": "*\n", "evil.py": "x"})
    assert {one.path for one in result.violations} == {".gitignore", "lib/.gitignore", "evil.py"}


def test_what_the_agent_no_longer_ignores_is_dropped_by_the_rules_that_it_was_given(tmp_path: Path) -> None:
    result = ruled(tmp_path, {".gitignore": "*.log\n"}, {".gitignore": "", "debug.log": "x"})
    assert ([one.path for one in result.violations], result.dropped) == (
        [".gitignore"],
        ("debug.log (.gitignore: *.log)",),
    )


def test_what_a_tool_leaves_among_the_tests_is_dropped_too(tmp_path: Path) -> None:
    base = {".gitignore": "*.log\n", "tests/test_greet.py": ""}
    written = {"tests/test_greet.py": "x", "tests/helper.py": "x", "tests/run.log": "x", "debug.log": "x"}
    result = ruled(tmp_path, base, written, writes=Writes.TESTS)
    assert result.violations == ()
    assert {change.path for change in result.changes} == {"tests/test_greet.py", "tests/helper.py"}
    assert set(result.dropped) == {"tests/run.log (.gitignore: *.log)", "debug.log (.gitignore: *.log)"}


def test_a_role_that_only_reads_leaves_nothing_behind(tmp_path: Path) -> None:
    result = ruled(tmp_path, {".gitignore": "*.log\n"}, {"debug.log": "x"}, writes=Writes.NOTHING)
    assert [one.rule for one in result.violations] == ["read-only-role"]


def test_a_path_that_git_does_not_take_hides_no_other(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    asked = ["a.log", "../outside.log", *(f"d{number}.txt" for number in range(20)), "b.log"]
    found = Repository.find(tmp_path).ignored_paths(tmp_path, asked)
    assert found == dict.fromkeys(["a.log", "b.log"], ".gitignore: *.log")
