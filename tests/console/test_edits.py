"""Plans and tasks that a person edits on a page: checked as in an editor, of what they saw, and never lost."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest
from console.hostile import TEXTS
from console.served import opened
from console.test_acts import at_home
from people.ground import SCRIPT, waiting

from pipeline.run.lease import FileLease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.served import Browser
    from e2e.lanes import Played
    from kit import Entry

pytestmark = pytest.mark.slow

RUN = "/runs/run-GAL-1"
PLAN = f"{RUN}/edit?file=plan.md"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return waiting(tmp_path_factory.mktemp("waiting"))


@pytest.fixture
def played(shared: Played, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    """Return a run that waits at approval point plan; a test may change its plan and its issue, but not answer it."""
    at_home(shared.project, monkeypatch)
    files = [shared.project.run_folder() / "plan.md", shared.project.root / "TODO" / "GAL-1.md"]
    before = [(file, file.read_bytes()) for file in files]
    yield shared
    for file, content in before:
        file.write_bytes(content)


@pytest.fixture
def browser(played: Played) -> Iterator[Browser]:
    with opened(played.project.root) as found:
        yield found


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Played, Browser]]:
    """Return a run that waits at approval point plan, to be answered, and who looks at it."""
    found = waiting(tmp_path)
    at_home(found.project, monkeypatch)
    with opened(found.project.root) as browser:
        yield found, browser


def written(page: str) -> str:
    """Return what stands in the field of a form, as a browser reads it."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the forms on a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def after(text: str, words: str) -> str:
    """Return a plan with words below its approach."""
    return text.replace("## Approach\n", f"## Approach\n\n{words}\n", 1)


def test_an_edit_is_checked_written_and_counts_until_it_was_answered(mine: tuple[Played, Browser]) -> None:
    played, browser = mine
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
    late = browser.post(f"{RUN}/edit", {**said, "text": "my words"})
    assert (late.status_code, written(late.text)) == (409, "my words"), "it was answered"
    assert "<button" not in late.text.partition("<main")[2]
    assert browser.get(PLAN).status_code == 409
    told = "plan.md counts as Ada edited it; as it was drafted it is plan-1.md"
    story = browser.get(RUN).text
    assert told in re.sub("<[^>]+>", "", story)
    assert f'href="{RUN}/files/plan-1.md">plan-1.md</a></p>' in story
    assert told in played.project.redfirst("show", "GAL-1", "--log").stdout
    assert told in " ".join(played.project.redfirst("explain", "GAL-1", "-v").stdout.split())


@pytest.mark.broad
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
    assert browser.post(f"{RUN}/edit", {**hidden(late.text), "text": ours}).status_code == 303
    assert file.read_text() == ours


def test_after_a_save_that_is_refused_for_itself_the_next_counts_for_what_was_seen_first(
    played: Played, browser: Browser
) -> None:
    folder = played.project.run_folder()
    file, said = folder / "plan.md", browser.hidden(PLAN)
    before = file.read_text()
    theirs, ours = after(before, "In an editor."), after(before, "On the page.")
    file.write_text(theirs)
    lease = FileLease.take(folder)
    refused = browser.post(f"{RUN}/edit", {**said, "text": ours})
    lease.release()
    assert hidden(refused.text) == said
    late = browser.post(f"{RUN}/edit", {**hidden(refused.text), "text": ours})
    assert (late.status_code, file.read_text()) == (409, theirs)
    assert "In an editor." in late.text


@pytest.mark.broad
@pytest.mark.parametrize(
    ("added", "why"),
    [
        (b"\x1b[2J\n", "characters that a page does not show"),
        (b"caf\xe9\n", "it cannot be read as text"),
        (b"one\r\n", "its lines end in two ways"),
        (b"one\rtwo\n", "characters that a page does not show"),
    ],
)
def test_what_a_page_cannot_give_back_is_edited_in_an_editor(
    played: Played, browser: Browser, added: bytes, why: str
) -> None:
    file, said = played.project.run_folder() / "plan.md", browser.hidden(PLAN)
    before = file.read_bytes()
    file.write_bytes(before + added)
    shown = browser.get(PLAN)
    assert shown.status_code == 400
    assert why in shown.text
    stale = browser.post(f"{RUN}/edit", {**said, "text": after(before.decode(), "Twice.")})
    assert stale.status_code == 409
    over = browser.post(f"{RUN}/edit", {**said, **hidden(stale.text), "text": after(before.decode(), "Twice.")})
    assert over.status_code in {400, 409}
    assert file.read_bytes() == before + added


def two_tasks() -> list[Entry]:
    """Return answers whose split has two tasks."""
    script = [dict(entry) for entry in SCRIPT]
    split = next(entry for entry in script if entry["when"]["kind"] == "split")
    (task,) = split["report"]["tasks"]
    other = {**task, "title": "Reject odd names", "depends_on": [1]}
    split["report"] = {"tasks": [task, other]}
    return script


@pytest.mark.broad
def test_a_task_is_edited_at_gate_split_and_a_problem_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = waiting(tmp_path, "split", two_tasks())
    at_home(played.project, monkeypatch)
    first, second = (played.project.run_folder() / f"task-{number}.md" for number in (1, 2))
    place = f"{RUN}/edit?file=task-1.md"
    with opened(played.project.root) as browser:
        assert f'href="{place}"' in browser.get(f"{RUN}/packet").text
        assert browser.get(PLAN).status_code == 409
        said, text = browser.hidden(place), written(browser.get(place).text)
        wrong = browser.post(f"{RUN}/edit", {**said, "text": text.replace("action: modify", "action: paint")})
        assert (wrong.status_code, first.read_text()) == (400, text)
        assert "Nothing was saved" in wrong.text
        assert "action: paint" in written(wrong.text)
        other = browser.post(f"{RUN}/edit", {**said, "text": text.replace("id: '1'", "id: '7'")})
        assert "task-1.md, line 2: its id is" in other.text
        better = text.replace("greet must refuse", "greet always must refuse")
        assert browser.post(f"{RUN}/edit", {**said, "text": better}).status_code == 303
        assert first.read_text() == better
        drafted = second.read_text()
        second.write_text(drafted.replace("- '1'", "- '9'"))
        blamed = browser.post(f"{RUN}/edit", {**browser.hidden(place), "text": text})
        assert (blamed.status_code, first.read_text()) == (400, better)
        assert "task-2.md, line" in blamed.text
        assert "task-1.md, line" not in blamed.text
    second.write_text(drafted)
    assert "task-1.md counts as you edited it" in played.project.redfirst("approve", "--no-drive").stderr


@pytest.mark.broad
def test_a_run_that_was_given_up_is_over(mine: tuple[Played, Browser]) -> None:
    played, browser = mine
    assert "It waits" in browser.get(RUN).text
    assert played.project.redfirst("abandon", "GAL-1").returncode == 0
    assert "It ended in" in browser.get(RUN).text
    assert "These can go on" not in browser.get("/").text


@pytest.mark.broad
def test_what_is_no_draft_is_not_edited_and_a_driven_run_neither(played: Played, browser: Browser) -> None:
    said, folder = browser.hidden(PLAN), played.project.run_folder()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    for name in ("issue.md", "run.json", "../run-GAL-1/plan.md", "/etc/passwd", ""):
        assert browser.get(f"{RUN}/edit?file={name}").status_code in {400, 409}, name
        assert browser.post(f"{RUN}/edit", {**said, "file": name, "text": "x"}).status_code in {400, 409}, name
    lease = FileLease.take(folder)
    driven = browser.post(f"{RUN}/edit", {**said, "text": "my words"})
    lease.release()
    assert (driven.status_code, written(driven.text)) == (409, "my words")
    assert "not what you looked at" not in driven.text
    assert browser.post(f"{RUN}/edit", {**said, "token": "", "text": "x"}).status_code == 403
    assert before == {path: path.read_bytes() for path in before}


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
