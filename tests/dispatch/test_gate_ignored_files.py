"""What tools leave behind and the project ignores is dropped and named; it is no violation of the agent's."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pipeline.dispatch.gate import GateResult, Policy, inspect
from pipeline.dispatch.prompt import instruction_files
from pipeline.git import Repository
from pipeline.policy.characters import hidden_places
from pipeline.policy.roles import Writes
from pipeline.policy.scope import Action, Grant
from pipeline.views.view import ShadowView

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CODE = "greet.py"


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def ruled(folder: Path, base: Mapping[str, str], written: Mapping[str, str], *, excluded: str = "") -> GateResult:
    project = folder / "project"
    put(project, {CODE: "", **base})
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / ".git/info/exclude").write_text(excluded)
    repository = Repository.find(project)
    policy = Policy(
        Writes.TASK,
        (Grant(CODE, Action.MODIFY), Grant("build/wanted.py", Action.CREATE)),
        ignored=lambda paths: repository.ignored_paths(project, paths),
    )
    view = ShadowView.open(
        lambda root: put(root, {CODE: "", **base}), folder / "view", workspace=folder / "w", writable=True
    )
    put(view.host, written)
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
        "docs (.gitignore: /docs/_made/)",
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


def test_instructions_are_looked_for_on_the_way_to_the_files_of_the_task() -> None:
    found = instruction_files(["packages/greet/src/a.py", "top.py"])
    assert found[:4] == ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"]
    assert [name for name in found if name.endswith("/AGENTS.md")] == [
        "packages/AGENTS.md",
        "packages/greet/AGENTS.md",
        "packages/greet/src/AGENTS.md",
    ]


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("", "a = 1\nb = '\u202e\u2066x'\n", ("2:6 U+202E", "2:7 U+2066")),
        ("x\u200by\n", "new\nx\u200by\n", ()),
        ("", "\ufeffa\tb\r\n", ()),
        ("", "ok \U000e0041", ("1:4 U+E0041",)),
        ("", "na\u00efve \u2764\ufe0f", ()),
    ],
)
def test_characters_that_are_not_seen_are_named_by_place_where_a_line_is_new(
    before: str, after: str, places: tuple[str, ...]
) -> None:
    assert hidden_places(before, after) == places
