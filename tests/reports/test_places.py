"""Paths that no agent could write where a draft names them: behind a link, and one name twice."""

from __future__ import annotations

import json

import pytest

from pipeline.judge.reports.fields import FileChange
from pipeline.judge.reports.problems import misplaced

LINKS = {
    "app/core": "../shared",
    "app/again": "core",
    "one.py": "shared/greet.py",
    "out": "/etc",
    "up": "../elsewhere",
    "loop": "loop",
}
TREE = {"shared/greet.py", "src/Greet.py", "README.md", *LINKS}


def told(*changes: tuple[str, str] | tuple[str, str, str]) -> dict[str, str]:
    named = [
        FileChange.model_validate_json(
            json.dumps({"path": path, "action": action, **({"from": origin[0]} if origin else {})})
        )
        for action, path, *origin in changes
    ]
    return {path: f"{one.rule}: {one.message}" for path, one in misplaced(named, TREE, LINKS, LINKS.__getitem__)}


@pytest.mark.parametrize("action", ["modify", "create", "delete"])
@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "app/core/greet.py",
            "is a symbolic link; files are changed where they are, so name shared/greet.py, which is there: modify",
        ),
        ("app/again/new.py", "so name shared/new.py, which is not there yet: create it"),
        ("one.py", "one.py is a symbolic link; files are changed where they are, so name shared/greet.py"),
        ("out/passwd", "leads out of the repository"),
        ("up/x.py", "leads out of the repository"),
        ("loop/x.py", "leads out of the repository"),
    ],
)
def test_a_path_behind_a_link_is_told_with_the_place_it_leads_to(action: str, path: str, says: str) -> None:
    found = told((action, path))
    assert found.keys() == {path}
    assert found[path].startswith("H023: ")
    assert says in found[path]


@pytest.mark.parametrize(
    ("path", "other"),
    [("src/greet.py", "src/Greet.py"), ("SRC/new.py", "src"), ("readme.md", "README.md"), ("Shared/x.py", "shared")],
)
def test_a_new_name_that_differs_in_case_only_is_told_with_the_other(path: str, other: str) -> None:
    found = told(("create", path))
    assert found.keys() == {path}
    assert found[path].startswith("H024: ")
    assert f"write {other}, or choose another name" in found[path]


def test_two_new_names_that_are_one_elsewhere_are_told_of_the_second() -> None:
    assert told(("create", "lib/a.py"), ("create", "lib/A.py")).keys() == {"lib/A.py"}


@pytest.mark.parametrize(
    "changes",
    [
        [("modify", "src/Greet.py"), ("create", "src/new.py"), ("create", "shared/greet2.py")],
        [("delete", "src/Greet.py"), ("create", "src/greet.py")],
        [("rename", "src/greet.py", "src/Greet.py")],
        [("create", "lib/a.py"), ("modify", "lib/a.py")],
    ],
)
def test_what_can_be_written_where_it_is_named_is_not_spoken_of(changes: list[tuple[str, str]]) -> None:
    assert told(*changes) == {}
