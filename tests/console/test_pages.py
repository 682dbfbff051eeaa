"""The pages of the console: what each command prints is there, and its own document where JSON is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from console.served import opened
from e2e.shapes import answers, done
from e2e.test_fifth_language import CODE, FILES, TESTS, make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.served import Browser
    from kit import Project

pytestmark = pytest.mark.slow

RUN = "/runs/run-GAL-1"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose one run has come to commits."""
    made = make(tmp_path_factory.mktemp("pages"))
    made.use_script(answers(FILES, TESTS, CODE))
    done(made)
    return made


@pytest.fixture(scope="module")
def browser(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    patched = pytest.MonkeyPatch()
    patched.setenv("XDG_STATE_HOME", project.environment()["XDG_STATE_HOME"])
    with opened(project.root) as found:
        yield found
    patched.undo()


def test_json_is_what_the_command_prints(project: Project, browser: Browser) -> None:
    for path, words in (
        (RUN, ("show", "GAL-1")),
        (f"{RUN}/diff", ("diff", "GAL-1")),
        (f"{RUN}/log", ("show", "GAL-1", "--log")),
        ("/issues", ("issue", "list")),
    ):
        told = project.document(*words)
        assert browser.json(path) == {key: value for key, value in told.items() if not key.startswith("_")}, path
    (line,) = browser.json("/")["runs"]
    assert (line["name"], line["status"]) == ("run-GAL-1", "completed")


def test_a_run_explains_itself(browser: Browser) -> None:
    text = browser.get(RUN).text
    for words in (
        "Reject empty names",
        "What redfirst is doing here",
        "It is done: 2 commits",
        "greet.check::two",
        '<span class="mark red">RED</span><span class="mark green">GREEN</span>',
        "<desc",
        "7 Implement: done",
        "GREEN measured, nothing else broke",
        f"{RUN}/files/plan.md",
    ):
        assert words in text, words


def test_red_and_green_stand_beside_the_test_in_the_changes(browser: Browser) -> None:
    text = browser.get(f"{RUN}/diff").text
    row = next(part for part in text.split("<tr") if "two: greet 2 = 4" in part)
    assert 'class="add"' in row
    assert "mark red" in row
    assert "mark green" in row


def test_files_lead_back_to_their_run_and_are_only_those_of_the_run(browser: Browser) -> None:
    plan = browser.get(f"{RUN}/files/plan.md?raw")
    assert plan.headers["content-type"] == "text/plain; charset=utf-8"
    assert plan.text.startswith("# ")
    assert browser.get(f"{RUN}/files/plan.md", accept="*/*").text == plan.text
    page = browser.get(f"{RUN}/files/plan.md").text
    assert f'<a class="mono" href="{RUN}">run-GAL-1</a>' in page
    assert '<div class="line h1' in page
    for name in ("run.json", "../../redfirst.toml", "..%2F..%2Fgreet.sum", "nothing.md", "dispatches/x/prompt.md"):
        assert browser.get(f"{RUN}/files/{name}").status_code == 404, name


def test_what_an_agent_was_asked_and_answered_is_opened_from_its_run(browser: Browser) -> None:
    found = re.findall(rf'href="({RUN}/dispatches/[^"]+)"', browser.get(RUN).text)
    assert len(found) == len(browser.json(RUN)["dispatches"])
    asked = next(path for path in found if "implement" in path)
    page = browser.get(asked).text
    for words in (f'href="{RUN}"', "@make was asked to implement, task 1", "greet.sum", "prompt.md", "report.raw"):
        assert words in page, words
    assert "COMPLETE" in page
    assert browser.get(f"{RUN}/dispatches/000-none").status_code == 404


def test_what_is_not_there_is_said(browser: Browser) -> None:
    for path in ("/runs/GAL-2", "/runs/GAL-2/diff", "/runs/x~y"):
        found = browser.get(path)
        assert (found.status_code, "is not a run of this repository" in found.text) == (404, True)
    assert browser.get("/runs/GAL-1").headers["location"] == RUN


def test_the_board_has_the_issue_in_its_column(browser: Browser) -> None:
    text = browser.get("/issues").text
    assert "GAL-1" in text.partition(">Done ")[2]
