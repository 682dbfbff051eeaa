"""Which toolchains measure a repository: marker files at the top, one project further down, and what is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from languages.direct import write

from pipeline.config.model import Toolchains
from pipeline.testing.languages.projects.combined import Projects, choose, folder_below, looked_for, projects_in
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.testing.languages.toolchain import Toolchain


def chosen(tmp_path: Path, *paths: str, **tables: Any) -> Toolchain | None:
    write(tmp_path, dict.fromkeys(paths, ""))
    return choose(tmp_path, Toolchains.model_validate(tables), paths)


def named(toolchain: Toolchain | None) -> list[str]:
    """Return the names, each with the folder if it has one."""
    assert toolchain is not None
    return [f"{one.name} in {one.folder}" if one.folder else one.name for one in projects_in(toolchain)]


@pytest.mark.parametrize(("mark", "name"), [("pyproject.toml", "pytest"), ("Cargo.toml", "cargo")])
def test_one_at_the_top_is_that_toolchain_itself(tmp_path: Path, mark: str, name: str) -> None:
    assert chosen(tmp_path, mark, "README.md") is LANGUAGES[name].toolchain


def test_every_language_has_marks_and_they_are_told() -> None:
    assert all(language.marks for language in LANGUAGES.values())
    assert "cargo: Cargo.toml" in looked_for()


def test_two_at_the_top_are_both_taken_in_the_order_of_the_table(tmp_path: Path) -> None:
    found = chosen(tmp_path, "Cargo.toml", "pyproject.toml")
    assert named(found) == ["pytest", "cargo"]
    assert isinstance(found, Projects)
    assert not any(part.asked for part in found.projects)


def test_use_says_which_and_in_which_order(tmp_path: Path) -> None:
    found = chosen(tmp_path, "Cargo.toml", "pyproject.toml", use=["cargo", "pytest", "cargo"])
    assert named(found) == ["cargo", "pytest"]
    assert isinstance(found, Projects)
    assert all(part.asked for part in found.projects)
    assert chosen(tmp_path, "Cargo.toml", "pyproject.toml", use=["cargo"]) is LANGUAGES["cargo"].toolchain


def test_a_second_language_further_down_is_found_beside_the_one_at_the_top(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "native/Cargo.toml")
    assert named(found) == ["pytest", "cargo in native"]


def test_the_configured_folder_counts_and_a_configured_part_is_asked_for(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "a/Cargo.toml", "b/Cargo.toml", cargo={"folder": "b"})
    assert named(found) == ["pytest", "cargo in b"]
    assert isinstance(found, Projects)
    assert [part.asked for part in found.projects] == [False, True]


def test_limits_of_several_are_those_of_each(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "Cargo.toml", cargo={"timeout_s": 5}, pytest={"test_timeout_s": 7})
    assert isinstance(found, Projects)
    assert [(one.table.timeout_s, one.table.test_timeout_s) for one in found.projects if one.table] == [
        (900, 7),
        (5, 60),
    ]
    tables = Toolchains.model_validate({"cargo": {"timeout_s": 5}, "pytest": {"test_timeout_s": 7}})
    assert (tables.settings_of(found.name).timeout_s, tables.settings_of(found.name).test_timeout_s) == (905, 60)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["web/package.json"], "web"),
        (["apps/web/package.json"], "apps/web"),
        (["a/b/c/package.json"], None),  # too far down
        (["web/package.json", "admin/package.json"], None),  # which of them?
        (["web/package.json", "web/packages/ui/package.json", "web/ui/package.json"], "web"),  # members of a workspace
        (["node_modules/x/package.json"], None),
        (["web/package.json", "node_modules/x/package.json"], "web"),
        (["tests/fixtures/package.json"], None),
        (["examples/demo/package.json"], None),
        (["docs/package.json"], None),
        ([".github/actions/package.json"], None),
        (["vendor/js/package.json"], None),
        (["Vendor/package.json"], None),
        (["package.json"], None),  # the top is not below the top
        (["web/package.json.bak", "web/xpackage.json"], None),
        ([], None),
    ],
)
def test_what_counts_as_a_project_further_down(paths: list[str], folder: str | None) -> None:
    assert folder_below("node", paths) == folder


def test_a_table_of_no_toolchain_is_refused() -> None:
    tables = Toolchains()
    for name in ("use", "maven", "pytest+maven", ""):
        with pytest.raises(KeyError):
            tables.settings_of(name)
