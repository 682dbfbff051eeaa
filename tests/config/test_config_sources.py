from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import keys
from pipeline.config.load import load
from pipeline.config.sources import RepositoryFile, parse_repository, repository_file
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def at_start(**files: bytes) -> Callable[[str], bytes | None]:
    return {name.replace("_", "."): content for name, content in files.items()}.get


def test_a_tracked_file_is_read_from_the_start_commit(tmp_path: Path) -> None:
    (tmp_path / "redfirst.toml").write_text('sandbox = "none"')
    found = repository_file(tmp_path, at_start(redfirst_toml=b'sandbox = "auto"'))
    assert found == RepositoryFile("redfirst.toml", b'sandbox = "auto"', tracked=True)


def test_an_untracked_file_is_read_from_the_worktree(tmp_path: Path) -> None:
    (tmp_path / "redfirst.toml").write_bytes(b"[limits]")
    assert repository_file(tmp_path, at_start()) == RepositoryFile("redfirst.toml", b"[limits]", tracked=False)


def test_a_repository_that_says_nothing_has_no_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert repository_file(tmp_path, at_start()) is None


def test_a_table_in_pyproject_is_read_with_its_lines(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf[project]\nname = "x"\n\n[tool.redfirst]\nbase = "trunk"\n[tool.redfirst.limits]\nseam = 7\n'
    found = repository_file(tmp_path, at_start(pyproject_toml=text))
    assert found is not None
    loaded = load(tmp_path, environ={"HOME": str(tmp_path)}, repo_file=found)
    assert (loaded.config.base, loaded.config.limits.seam) == ("trunk", 7)
    assert str(loaded.origins["base"]) == "pyproject.toml:5"
    assert str(loaded.origins["limits.seam"]) == "pyproject.toml:7"


def test_both_files_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "redfirst.toml").write_text("")
    with pytest.raises(UserError, match="Keep one") as caught:
        repository_file(tmp_path, at_start(pyproject_toml=b"[tool.redfirst]\n"))
    assert caught.value.reason is Reason.CONFIG


def test_a_broken_pyproject_without_our_table_is_left_alone(tmp_path: Path) -> None:
    assert repository_file(tmp_path, at_start(pyproject_toml=b"[project\n")) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("redfirst.toml", b"a = \n", "not valid TOML"),
        ("redfirst.toml", b"a = 1\na = 2\n", "not valid TOML"),
        ("redfirst.toml", b"\xff\xfe", "not UTF-8"),
        ("pyproject.toml", b"[tool.redfirst]\n[", "not valid TOML"),
        ("pyproject.toml", b"[tool]\nredfirst = 3\n", "is not a table"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_repository(RepositoryFile(name, content, tracked=True), tmp_path)
    assert caught.value.path == name


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "redfirst.toml").mkdir()
    with pytest.raises(UserError, match="cannot read"):
        repository_file(tmp_path, at_start())


def test_the_line_of_a_key_is_found_in_each_entry_of_a_list(tmp_path: Path) -> None:
    text = b"""sandbox = "auto"
[[quarantine]]
id = "a"
[[ quarantine ]]  # another
id = "b"
[limits]
"""
    document = parse_repository(RepositoryFile("redfirst.toml", text, tracked=True), tmp_path)
    paths = [("quarantine", "0"), ("quarantine", "0", "id"), ("quarantine", "1", "id"), ("quarantine", "1", "owner")]
    assert [document.line_of(path) for path in paths] == [2, 3, 5, 4]


def test_the_line_of_a_key_is_found_in_every_spelling(tmp_path: Path) -> None:
    text = b"""# sandbox = "none"
agents.make.timeout_s = 3
sandbox = "auto"
[ agents . "check" ]  # ours
read = [
  "/opt",
]
'timeout_s' = 4
[limits]
"""
    document = parse_repository(RepositoryFile("redfirst.toml", text, tracked=True), tmp_path)
    places = {
        key: document.line_of(keys.from_dotted(key))
        for key in ("sandbox", "agents.make.timeout_s", "agents.check.read", "agents.check.timeout_s", "limits.seam")
    }
    assert places == {
        "sandbox": 3,
        "agents.make.timeout_s": 2,
        "agents.check.read": 5,
        "agents.check.timeout_s": 8,
        "limits.seam": 9,
    }


@pytest.mark.parametrize("path", list(keys.LEAVES))
def test_every_key_has_a_variable_that_leads_back_to_it(path: tuple[str, ...]) -> None:
    assert keys.from_variable(keys.variable(path)) == path
    assert keys.find(path) is not None


@given(st.text(max_size=40))
def test_a_value_as_text_is_one_toml_value_or_refused(text: str) -> None:
    try:
        value = keys.parse_text(("limits", "seam"), text)
    except ValueError:
        return
    assert tomllib.loads(f"value = {text}") == {"value": value}
