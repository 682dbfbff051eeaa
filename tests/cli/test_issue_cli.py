from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from kit import REDFIRST
from typer.testing import CliRunner, Result

from pipeline.errors import UserError
from pipeline.faces.cli.issue import app
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "---\nid: GAL-39\ntitle: Reject empty names\nstatus: Todo # now\nlabels: [bug]\n---\n# GAL-39\n"
SECOND = '---\nid: GAL-40\ntitle: "Esc\\x1b[31m"\nstatus: Todo\nlabels: [bug, ui]\ndepends-on: [GAL-39]\n---\n'
README = "# Issues\n\n## Bugs\n- [ ] [GAL-39](GAL-39.md) Reject empty names\n- [ ] [GAL-40](GAL-40.md) Esc\n"


@dataclass(frozen=True)
class Repository:
    """A worktree with a tracker, and the command run in it."""

    root: Path

    def run(self, *arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, env={"SOURCE_DATE_EPOCH": "1795132800"})

    def out(self, *arguments: str, stdin: bytes | None = None) -> str:
        result = self.run(*arguments, stdin=stdin)
        assert result.exception is None, result.exception
        return result.stdout

    def document(self, *arguments: str) -> dict[str, Any]:
        return json.loads(self.out(*arguments))

    def refused(self, *arguments: str, stdin: bytes | None = None) -> UserError:
        before = self.files()
        error = self.run(*arguments, stdin=stdin).exception
        assert isinstance(error, UserError)
        assert self.files() == before
        return error

    def text(self, name: str) -> str:
        return (self.root / "TODO" / name).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    (tmp_path / "TODO").mkdir()
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    for name, text in (("GAL-39.md", FIRST), ("GAL-40.md", SECOND), ("README.md", README)):
        (tmp_path / "TODO" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "src" / "deep")
    return Repository(tmp_path)


def test_list_shows_one_line_for_each_issue(repository: Repository) -> None:
    assert repository.out("list") == (
        "GAL-39  Todo         Reject empty names  [bug]\nGAL-40  Todo         Esc\\x1b[31m  [bug, ui]\n"
    )


def test_list_as_json_is_one_document(repository: Repository) -> None:
    document = repository.document("list", "--json")
    assert document["schema"] == "redfirst.issue-list/1"
    assert document["ok"] is True
    assert document["issues"][0] == {
        "id": "GAL-39",
        "title": "Reject empty names",
        "status": "Todo",
        "parent": None,
        "labels": ["bug"],
        "depends_on": [],
        "path": "TODO/GAL-39.md",
        "claim": None,
    }
    assert [issue["id"] for issue in document["issues"]] == ["GAL-39", "GAL-40"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--label", "bug"], ["GAL-39", "GAL-40"]),
        (["--label", "bug", "--label", "ui"], ["GAL-40"]),
        (["--status", "todo", "--label", "ui"], ["GAL-40"]),
        (["--status", "In Progress"], []),
        (["--status", "in-progress"], []),
    ],
)
def test_list_is_narrowed(repository: Repository, arguments: list[str], expected: list[str]) -> None:
    found = repository.document("list", "--json", *arguments)["issues"]
    assert [issue["id"] for issue in found] == expected


def test_ready_follows_the_dependencies(repository: Repository) -> None:
    assert [issue["id"] for issue in repository.document("ready", "--json")["issues"]] == ["GAL-39"]
    repository.out("status", "GAL-39", "done")
    assert repository.out("ready").startswith("GAL-40 ")


def test_show_prints_the_file_and_as_json_its_parts(repository: Repository) -> None:
    assert repository.out("show", "GAL-39") == FIRST
    document = repository.document("show", "GAL-39", "--json")
    assert (document["schema"], document["ok"]) == ("redfirst.issue/1", True)
    assert (document["issue"]["id"], document["issue"]["body"]) == ("GAL-39", "# GAL-39\n")


def test_new_prints_the_id_and_nothing_else(repository: Repository) -> None:
    arguments = ["new", "--title", "Next", "--category", "Bugs", "--label", "bug", "--label", "ui", "--body", "-"]
    assert repository.out(*arguments, stdin="Süß.\n".encode()) == "GAL-41\n"
    assert repository.text("GAL-41.md") == (
        "---\nid: GAL-41\ntitle: Next\nstatus: Todo\nparent: null\nlabels: [bug, ui]\ndepends-on: []\n---\n"
        "# GAL-41: Next\n\nSüß.\n"
    )
    assert repository.text("README.md") == README + "- [ ] [GAL-41](GAL-41.md) Next\n"


def test_new_files_a_sub_issue_with_a_text_from_a_file(repository: Repository) -> None:
    (repository.root / "text.md").write_text("Why.")
    body = str(repository.root / "text.md")
    assert repository.out("new", "--title", "Sub", "--parent", "GAL-39", "--body", body) == "GAL-39.1\n"
    assert repository.text("GAL-39.1.md").endswith("# GAL-39.1: Sub\n\nWhy.\n")
    assert repository.text("GAL-39.md") == FIRST + "\n## Sub-issues\n- [ ] [GAL-39.1](GAL-39.1.md) Sub\n"
    assert repository.text("README.md") == README


def test_status_changes_file_and_index(repository: Repository) -> None:
    assert repository.out("status", "GAL-39", "in_progress") == ""
    assert repository.text("GAL-39.md") == FIRST.replace("Todo #", "In Progress #")
    assert repository.text("README.md") == README.replace("- [ ] [GAL-39]", "- [~] [GAL-39]")


def test_comment_is_dated_by_source_date_epoch(repository: Repository) -> None:
    repository.out("comment", "GAL-39", "one\ntwo")
    assert repository.text("GAL-39.md") == FIRST + "\n## Comments\n- 2026-11-20 - one\n  two\n"


def test_lint_leaves_with_two_when_there_are_problems(repository: Repository) -> None:
    (repository.root / "TODO" / "GAL-40.md").write_text(SECOND.replace("Todo", "Doing"))
    result = repository.run("lint")
    assert result.exit_code == 2
    assert result.stdout.startswith("TODO/GAL-40.md:4: broken-file: `Doing` is not a status.")
    result = repository.run("lint", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert [(found["path"], found["line"], found["rule"]) for found in document["problems"]] == [
        ("TODO/GAL-40.md", 4, "broken-file")
    ]


def test_the_repository_can_be_named(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "TODO").mkdir()
    assert repository.out("new", "--title", "t", "--id", "A-1", "--dir", str(other)) == "A-1\n"
    assert [issue["id"] for issue in repository.document("list", "--json", "--dir", str(other))["issues"]] == ["A-1"]


def test_outside_of_a_repository_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(app, ["list"]).exception
    assert isinstance(error, UserError)
    assert error.reason is Reason.USAGE
    assert "--dir" in error.message


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        (["show", "GAL-7"], Reason.ISSUE_NOT_FOUND, "GAL-7"),
        (["show", "../README"], Reason.USAGE, "not an issue id"),
        (["status", "GAL-7", "done"], Reason.ISSUE_NOT_FOUND, "GAL-7"),
        (["status", "GAL-39", "doing"], Reason.USAGE, "in-progress"),
        (["list", "--status", "doing"], Reason.USAGE, "in-progress"),
        (["comment", "GAL-39", "  "], Reason.USAGE, "text"),
        (["new", "--title", " "], Reason.USAGE, "title"),
        (["new", "--title", "t", "--id", "GAL-39"], Reason.USAGE, "already"),
        (["new", "--title", "t", "--id", "A-1", "--parent", "GAL-39"], Reason.USAGE, "not both"),
        (["new", "--title", "t", "--parent", "GAL-7"], Reason.ISSUE_NOT_FOUND, "GAL-7"),
        (["new", "--title", "t", "--body", "nowhere.md"], Reason.USAGE, "nowhere.md"),
    ],
)
def test_what_is_refused_changes_no_file(
    repository: Repository, arguments: list[str], reason: Reason, words: str
) -> None:
    error = repository.refused(*arguments)
    assert error.reason is reason
    assert words in error.message


def test_a_bad_source_date_epoch_is_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    error = CliRunner().invoke(app, ["comment", "GAL-39", "x"], env={"SOURCE_DATE_EPOCH": "yesterday"}).exception
    assert isinstance(error, UserError)
    assert "yesterday" in error.message
    assert repository.text("GAL-39.md") == FIRST


def test_a_broken_file_is_named_with_its_line(repository: Repository) -> None:
    (repository.root / "TODO" / "GAL-40.md").write_text(SECOND.replace("Todo", "Doing"))
    error = repository.refused("status", "GAL-40", "done")
    assert error.reason is Reason.TRACKER_INVALID
    assert (error.path, error.details) == ("TODO/GAL-40.md", {"line": 4})
    assert error.actions == ("redfirst issue lint",)
    for command in ("list", "ready"):  # the others are listed, and stderr names it
        listed = repository.run(command)
        assert (listed.exit_code, "GAL-39" in listed.output) == (0, True)
        assert "TODO/GAL-40.md is not listed: `Doing` is not a status" in listed.output


def test_there_is_no_tracker(repository: Repository) -> None:
    for path in (repository.root / "TODO").iterdir():
        path.unlink()
    (repository.root / "TODO").rmdir()
    for arguments in (["list"], ["lint"], ["show", "A-1"]):
        error = repository.refused(*arguments)
        assert (error.reason, error.path) == (Reason.TRACKER_MISSING, "TODO")
        assert error.actions == ("redfirst issue new --title TITLE",)
    (repository.root / "TODO").write_text("a file")
    assert repository.refused("new", "--title", "t", "--id", "A-1").reason is Reason.TRACKER_INVALID


def test_the_first_issue_makes_the_tracker(repository: Repository) -> None:
    for path in (repository.root / "TODO").iterdir():
        path.unlink()
    (repository.root / "TODO").rmdir()
    assert repository.refused("new", "--title", "t", "--id", "A/1").reason is Reason.USAGE
    assert not (repository.root / "TODO").exists()
    repository.run("new", "--title", "First", "--id", "A-1", "--category", "Core")
    assert "[A-1](A-1.md) First" in repository.text("README.md")


@pytest.mark.slow
def test_of_issues_that_are_filed_at_once_each_gets_a_number_and_a_line(repository: Repository) -> None:
    titles = [f"One of many {number}" for number in range(6)]
    filing = [subprocess.Popen([REDFIRST, "issue", "new", "--title", t], cwd=repository.root) for t in titles]
    assert [process.wait(timeout=300) for process in filing] == [0] * len(titles)
    filed = [repository.text(f"GAL-{number}.md") for number in range(41, 47)]
    assert all(any(f"title: {title}" in text for text in filed) for title in titles)
    assert all(f" {title}\n" in repository.text("README.md") for title in titles)


def test_an_id_is_taken_whatever_its_case_and_the_nearest_is_offered(repository: Repository) -> None:
    assert repository.document("show", "gal-39", "--json")["issue"]["id"] == "GAL-39"
    repository.run("status", "gal-39", "done")
    assert "status: Done" in repository.text("GAL-39.md")
    error = repository.refused("show", "GLA-39")
    assert (error.reason, error.message) == (Reason.ISSUE_NOT_FOUND, "There is no issue GLA-39. Did you mean GAL-39?")


def test_a_new_issue_has_an_id_of_its_own_and_room_for_criteria(repository: Repository) -> None:
    (repository.root / "TODO" / "README.md").write_text(README + "- [x] [GAL-44](GAL-44.md) Gone\n")
    assert repository.out("new", "--title", "Next", "--parent", "gal-40") == "GAL-40.1\n"
    assert repository.out("new", "--title", "Next") == "GAL-45\n"
    assert "\n## Acceptance criteria\n\n<!--" in repository.text("GAL-45.md")
    assert "GAL-45.md: unwritten" in repository.run("lint").stdout


def test_the_first_issue_is_named_after_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "my-shop"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    assert Repository(root).out("new", "--title", "First") == "MYSHOP-1\n"


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let the editor be a program that changes the file that it is given."""
    path = tmp_path / "an editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{path}' --wait")


def test_a_new_issue_is_filed_as_the_editor_left_it(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = """cp "$2" "$2~"; sed -i 's/title: Next/title: Better/; s/^labels: .*/labels: [ui]/' "$2" """
    editor(tmp_path, monkeypatch, script)
    assert repository.out("new", "--title", "Next", "--edit") == "GAL-41\n"
    assert "title: Better\n" in repository.text("GAL-41.md")
    assert "[GAL-41](GAL-41.md) Better" in repository.text("README.md")
    assert list(tmp_path.glob("redfirst-issue-*")) == []


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 3", "ended with exit code 3"),
        ("exit 0", "the template is as it was"),
        ("""rm "$2" """, "the editor left no GAL-41.md"),
        ("""sed -i 's/^status: .*/status: Soon/' "$2" """, "`Soon` is not a status"),
        ("""echo more >> "$2"; cp "$2" TODO_OF_THE_REPOSITORY""", "already an issue GAL-41"),
        ("""sed -i 's/^depends-on:/depend-on:/' "$2" """, "`depends-on` is meant"),
    ],
)
def test_what_cannot_be_filed_is_kept_for_the_person(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    editor(tmp_path, monkeypatch, script.replace("TODO_OF_THE_REPOSITORY", str(repository.root / "TODO")))
    before = repository.files().keys()
    error = repository.run("new", "--title", "Next", "--edit").exception
    assert isinstance(error, UserError)
    assert says in error.message
    kept = list(place.rglob("*.md"))
    assert [path.name for path in kept] == ([] if script.startswith(("exit", "rm")) else ["GAL-41.md"])
    theirs = {str(repository.root / "TODO" / "GAL-41.md")} if "already" in says else set[str]()
    assert repository.files().keys() - before == {str(path) for path in kept} | theirs


def test_an_issue_that_is_only_the_template_is_a_problem_until_it_says_something(repository: Repository) -> None:
    assert repository.out("new", "--title", "Next") == "GAL-41\n"
    found = repository.run("lint")
    assert (found.exit_code, "TODO/GAL-41.md: unwritten" in found.stdout + found.stderr) == (2, True), found.stdout
    path = repository.root / "TODO" / "GAL-41.md"
    path.write_text(path.read_text().replace("## Acceptance", "Names are empty.\n\n## Acceptance"))
    assert repository.run("lint").exit_code == 0


def test_an_issue_is_edited_in_place_and_its_line_follows(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, """sed -i 's/^status: Todo/status: Done/' "$2" """)
    assert repository.run("edit", "gal-39").exit_code == 0
    before = repository.text("README.md")
    line = next(line for line in before.splitlines() if "[GAL-39]" in line)
    assert line.startswith("- [x] [GAL-39]")
    title = line.partition(") ")[2]
    assert title
    editor(tmp_path, monkeypatch, """sed -i 's/^title:.*/title: "A better one"/' "$2" """)
    assert repository.run("edit", "GAL-39").exit_code == 0
    assert repository.text("README.md") == before.replace(f"GAL-39.md) {title}", "GAL-39.md) A better one")
    assert "- [x] [GAL-39](GAL-39.md) A better one" in repository.text("README.md")
    (repository.root / "TODO" / "README.md").write_text(before.replace(title, "as the user words it"))
    editor(tmp_path, monkeypatch, """sed -i 's/^title:.*/title: "Once more"/' "$2" """)
    assert repository.run("edit", "GAL-39").exit_code == 0
    assert "as the user words it" in repository.text("README.md")
    editor(tmp_path, monkeypatch, """sed -i 's/^labels:/lables:/' "$2" """)
    result = repository.run("edit", "GAL-40")
    assert result.exit_code == 2
    assert "TODO/GAL-40.md: misspelt-key" in result.stderr
    monkeypatch.delenv("VISUAL")
    monkeypatch.delenv("EDITOR", raising=False)
    assert "set VISUAL or EDITOR" in repository.refused("edit", "GAL-40").message
    assert "--body -" in repository.refused("new", "--title", "x", "--edit").message


def test_a_file_that_cannot_be_read_is_named(repository: Repository) -> None:
    (repository.root / "TODO" / "GAL-40.md").write_text("---\nid: GAL-40\n<<<<<<< mine\n---\n", encoding="utf-8")
    assert "TODO/GAL-40.md is not listed: The front matter is not YAML" in repository.run("list").output


def test_the_repository_names_the_folder_of_its_issues(repository: Repository) -> None:
    (repository.root / "TODO").rename(repository.root / "issues")
    (repository.root / "redfirst.toml").write_text('[tracker]\nfolder = "issues"\n')
    assert repository.out("new", "--title", "Third") == "GAL-41\n"
    assert (repository.root / "issues" / "GAL-41.md").is_file()
    assert [issue["path"] for issue in repository.document("list", "--json")["issues"]][-1] == "issues/GAL-41.md"
    assert repository.refused("show", "GAL-42").path == "issues/GAL-42.md"
    assert not (repository.root / "TODO").exists()
