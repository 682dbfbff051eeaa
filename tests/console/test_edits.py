"""Plans and tasks that a person edits on a page: checked as in an editor, of what they saw, and never lost."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest
from console.hostile import TEXTS
from console.served import opened
from console.test_acts import at_home
from people.ground import waiting

from pipeline.runs.lease import FileLease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.served import Browser
    from e2e.lanes import Played

pytestmark = pytest.mark.slow

RUN = "/runs/run-GAL-1"
PLAN = f"{RUN}/edit?file=plan.md"


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Return a run that waits at gate plan."""
    found = waiting(tmp_path)
    at_home(found.project, monkeypatch)
    return found


@pytest.fixture
def browser(played: Played) -> Iterator[Browser]:
    with opened(played.project.root) as found:
        yield found


def written(page: str) -> str:
    """Return what stands in the field of a form, as a browser reads it."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])


def test_an_edit_is_checked_written_and_counts(played: Played, browser: Browser) -> None:
    file = played.project.run_folder() / "plan.md"
    assert f'href="{PLAN}"' in browser.get(f"{RUN}/packet").text
    text = written(browser.get(PLAN).text)
    assert text == file.read_text()
    said = browser.hidden(PLAN)

    misspelt = text.replace("## Problem", "## Problme")
    wrong = browser.post(f"{RUN}/edit", {**said, "text": misspelt.replace("\n", "\r\n")})
    assert wrong.status_code == 400
    assert "Nothing was saved" in wrong.text
    assert "Problme" in written(wrong.text)
    assert file.read_text() == text

    better = text.replace("## Approach\n", "## Approach\n\nTwice is added.\n", 1)
    done = browser.post(f"{RUN}/edit", {**said, "text": better.replace("\n", "\r\n")})
    assert (done.status_code, done.headers["location"]) == (303, f"{RUN}/packet")
    assert file.read_text() == better
    assert "Twice is added." in browser.get(f"{RUN}/packet").text
    assert "counts as you edited it" in played.project.redfirst("approve", "--no-drive").stderr


def test_an_edit_of_what_has_changed_is_refused_and_kept_on_the_page(played: Played, browser: Browser) -> None:
    file = played.project.run_folder() / "plan.md"
    before, said = file.read_text(), browser.hidden(PLAN)
    theirs = before.replace("## Approach\n", "## Approach\n\nIn an editor.\n", 1)
    file.write_text(theirs)
    ours = before.replace("## Approach\n", "## Approach\n\nOn the page.\n", 1)
    late = browser.post(f"{RUN}/edit", {**said, "text": ours})
    assert (late.status_code, file.read_text()) == (409, theirs)
    assert written(late.text) == ours
    assert "In an editor." in late.text
    again = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', late.text))
    assert browser.post(f"{RUN}/edit", {**again, "text": ours}).status_code == 303
    assert file.read_text() == ours


def test_an_edit_after_the_answer_is_refused_and_kept_on_the_page(played: Played, browser: Browser) -> None:
    said = browser.hidden(PLAN)
    played.project.redfirst("approve", "--no-drive")
    late = browser.post(f"{RUN}/edit", {**said, "text": "my words"})
    assert late.status_code == 409
    assert written(late.text) == "my words"
    assert "<button" not in late.text.partition("<main")[2]
    assert browser.get(PLAN).status_code == 409


def test_what_is_no_draft_is_not_edited_and_a_driven_run_neither(played: Played, browser: Browser) -> None:
    said, folder = browser.hidden(PLAN), played.project.run_folder()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    for name in ("issue.md", "run.json", "../run-GAL-1/plan.md", "/etc/passwd", ""):
        assert browser.get(f"{RUN}/edit?file={name}").status_code in {400, 409}, name
        assert browser.post(f"{RUN}/edit", {**said, "file": name, "text": "x"}).status_code in {400, 409}, name
    lease = FileLease.take(folder)
    driven = browser.post(f"{RUN}/edit", {**said, "text": "my words"})
    lease.release()
    assert (driven.status_code, written(driven.text)) == (400, "my words")
    assert browser.post(f"{RUN}/edit", {**said, "token": "", "text": "x"}).status_code == 403
    assert before == {path: path.read_bytes() for path in before}
    (folder / "plan.md").write_text((folder / "plan.md").read_text() + "\x1b[2J\n")
    assert "is edited in an editor" in browser.get(PLAN).text


def test_a_program_gets_the_packet_and_lines_end_as_they_did(played: Played, browser: Browser) -> None:
    file = played.project.run_folder() / "plan.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    said, text = browser.hidden(PLAN), written(browser.get(PLAN).text)
    assert "\r" not in text
    better = text.replace("## Approach\n", "## Approach\n\nTwice is added.\n", 1)
    done = browser.post(f"{RUN}/edit", {**said, "text": better}, accept="application/json").json()
    assert done["schema"] == "redfirst.packet/1"
    assert file.read_bytes() == better.replace("\n", "\r\n").encode()


def test_an_issue_has_a_page_on_which_hostile_words_do_nothing(played: Played, browser: Browser) -> None:
    page = browser.get("/issues/gal-1")
    assert page.status_code == 200
    assert f'href="{RUN}"' in page.text
    assert 'href="/issues/GAL-1"' in browser.get("/issues").text
    told = played.project.document("issue", "show", "GAL-1")
    assert browser.json("/issues/GAL-1") == {key: value for key, value in told.items() if not key.startswith("_")}
    none = browser.get("/issues/GAL-77")
    assert (none.status_code, "There is no issue GAL-77" in none.text) == (404, True)
    file = played.project.root / "TODO" / "GAL-1.md"
    file.write_text(file.read_text() + "\n\n".join(text for text in TEXTS if len(text) < 5_000 and "\x00" not in text))
    body = browser.get("/issues/GAL-1").text.partition('<div class="markdown">')[2].partition("</section>")[0]
    assert set(re.findall(r"<(\w+)", body)) <= {"div", "span", "code", "strong"}
