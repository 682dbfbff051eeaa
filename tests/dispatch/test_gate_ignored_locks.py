"""A lock file that a tool writes unasked, and that the project ignores, is no part of the work: it is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view

from pipeline.dispatch.gate import GateResult, Policy, inspect
from pipeline.policy.paths import ignored_by
from pipeline.policy.roles import Writes
from pipeline.policy.scope import Action, Grant

if TYPE_CHECKING:
    from collections.abc import Mapping

CODE = "src/lib.rs"
TASK = Policy(Writes.TASK, (Grant(CODE, Action.MODIFY),))


def ruled(folder: Path, base: Mapping[str, str], written: Mapping[str, str], policy: Policy = TASK) -> GateResult:
    def fill(root: Path) -> None:
        put(root, {CODE: "", **base})

    view = open_view(fill, folder / "view", workspace=Path("/view"), writable=True)
    put(view.host, written)
    try:
        return inspect(view, policy)
    finally:
        view.close()


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_an_ignored_lock_is_dropped_and_the_work_admitted(tmp_path: Path) -> None:
    result = ruled(tmp_path, {".gitignore": "target/\nCargo.lock\n"}, {CODE: "fn a() {}", "Cargo.lock": "version = 4"})
    assert result.admitted
    assert [change.path for change in result.changes] == [CODE]
    assert result.dropped == ("Cargo.lock (.gitignore)",)


@pytest.mark.parametrize(
    ("base", "written"),
    [
        ({}, {"Cargo.lock": ""}),
        ({}, {"Cargo.lock": "", ".gitignore": "Cargo.lock\n"}),
        ({".gitignore": "# Cargo.lock\n"}, {"Cargo.lock": ""}),
        ({".gitignore": "*.lock\n!Cargo.lock\n"}, {"Cargo.lock": ""}),
        ({".gitignore": "/Cargo.lock\n"}, {"inner/Cargo.lock": ""}),
        ({".gitignore": "*.lock\n", "inner/.gitignore": "!Cargo.lock\n"}, {"inner/Cargo.lock": ""}),
        ({".gitignore": "Cargo.lock\n", "Cargo.lock": "version = 3"}, {"Cargo.lock": "version = 4"}),
        ({".gitignore": ".env\n"}, {".env": "X=1"}),
    ],
)
def test_what_is_not_ignored_is_tracked_or_is_no_lock_is_judged(
    tmp_path: Path, base: dict[str, str], written: dict[str, str]
) -> None:
    result = ruled(tmp_path, base, written)
    assert not result.admitted
    assert result.dropped == ()


def test_a_lock_that_the_task_names_is_judged(tmp_path: Path) -> None:
    policy = Policy(Writes.TASK, (Grant("Cargo.lock", Action.CREATE),))
    result = ruled(tmp_path, {".gitignore": "Cargo.lock\n"}, {"Cargo.lock": ""}, policy)
    assert [change.path for change in result.changes] == ["Cargo.lock"]


@pytest.mark.parametrize(
    ("path", "patterns", "ignored"),
    [
        ("Cargo.lock", b"Cargo.lock", True),
        ("a/b/Cargo.lock", b"**/Cargo.lock\r\n", True),
        ("a/Cargo.lock", b"*.lock\n", True),
        ("a/Cargo.lock", b"a/Cargo.lock\n", None),
        ("Cargo.lock", b"\n\n", None),
        ("Cargo.lock", b"\xff\xfe", None),
        ("Cargo.lock", b"Cargo.lock\n!Cargo.lock\n", False),
    ],
)
def test_what_a_gitignore_says_of_a_name(path: str, patterns: bytes, ignored: bool | None) -> None:
    assert ignored_by(path, patterns) is ignored
