"""What somebody sees at approval point commit: what agents did wrong, and changes that take comments on their lines."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest
from console.browsing import SIZES, let_in, needs_chromium, violations
from console.served import opened
from console.test_acts import at_home
from people.ground import CODE, SCRIPT, waiting
from people.test_questions import PLAN, asking, begun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.served import Browser
    from e2e.lanes import Played
    from kit import Entry

pytestmark = [pytest.mark.slow, pytest.mark.broad]

RUN = "/runs/run-GAL-1"


def clumsy() -> list[Entry]:
    """Return a script whose @make writes a test, then wrong code, before it does what it should."""
    made = next(number for number, entry in enumerate(SCRIPT) if entry["when"].get("kind") == "implement")
    bad = {**SCRIPT[made], "files": {**CODE, "greet.check": "nothing: greet 0 = 1\n"}}
    wrong = {**SCRIPT[made], "files": {"greet.sum": "greet n = n * 3\n"}}
    why = {"diagnosis": "production_logic", "notes": "Thrice is not twice."}
    judged = {"when": {"kind": "judge", "question": "diagnose"}, "report": why}
    return [*SCRIPT[:made], bad, wrong, judged, *SCRIPT[made:]]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Return a run that waits at approval point commit."""
    found = waiting(tmp_path, "commit", clumsy())
    at_home(found.project, monkeypatch)
    return found


@pytest.fixture
def browser(played: Played) -> Iterator[Browser]:
    with opened(played.project.root) as found:
        yield found


def test_what_agents_did_wrong_stands_at_its_task_and_at_the_gate_with_what_shows_it(browser: Browser) -> None:
    for page in (browser.get(RUN).text, browser.get(f"{RUN}/packet").text):
        wrong = re.findall(r'<ul class="mistakes">.*?</ul>', page, re.DOTALL)
        assert len(wrong) == 1, page
        told = wrong[0]
        for words in (
            "changed what it may not change; that was put back",
            "VIOLATION",
            "said that the code is done, but tests of the task fail",
            "NOT_GREEN",
            "<strong>@make</strong>",
        ):
            assert words in told, words
        leads = re.findall(r'href="([^"]+)"', told)
        assert [link.split("/")[3] for link in leads] == ["dispatches", "files", "dispatches"]
        for link in leads:
            assert browser.get(link).status_code == 200, link
    refused = browser.get(leads[0]).text
    assert "What it made of greet.check, which was refused" in refused
    assert "nothing: greet 0 = 1" in refused


def test_comments_on_lines_of_the_changes_become_feedback_and_are_never_lost(played: Played, browser: Browser) -> None:
    page = browser.get(f"{RUN}/packet").text
    names = re.findall(r'<textarea name="(comment \d[^"]+)"[^>]*aria-label="([^"]+)"', page)
    new, old = (
        next(name for name, label in names if label == f"Comment on line {line} of greet.sum")
        for line in ("1", "1 as it was")
    )
    fields = browser.hidden(f"{RUN}/packet")
    said = {
        "feedback": "Not so.",
        new: "Why\r\n<twice>?",
        old: "This was right.",
        "comment 99+1": "no",
        "comment 0+999": "no",
    }
    feedback = (
        "Not so.\n\ngreet.sum, line 1: Why\n<twice>?\n\n> +greet n = n * 2\n\n"
        "greet.sum, line 1 as it was: This was right.\n\n> -greet n = n"
    )

    stale = browser.post(f"{RUN}/reject", {**fields, **said, "seen": "0" * 64})
    assert (stale.status_code, "not what you looked at any more" in stale.text) == (409, True)
    assert written(stale.text, "feedback") == feedback
    wrong = browser.post(f"{RUN}/reject", {**fields, **said, "to": "nowhere"})
    assert (wrong.status_code, written(wrong.text, "feedback")) == (400, feedback)

    proof = {"proof": "one: greet 1 = 1\r\n", "proof_path": "TODO/one.check"}
    refused = browser.post(f"{RUN}/reject", {**fields, **said, **proof})
    assert (refused.status_code, "The proof cannot be used" in refused.text) == (400, True)

    assert browser.post(f"{RUN}/reject", {**fields, **said}).status_code == 303
    played.project.redfirst("watch", "GAL-1")
    assert feedback in (played.project.run_folder() / "feedback-1.md").read_text()

    late = browser.post(f"{RUN}/reject", {**fields, "feedback": "Too late."})
    assert late.status_code in {400, 409}
    assert "Too late." in late.text


def test_an_answer_to_a_question_that_does_not_count_stays_in_its_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = begun(tmp_path, [asking(PLAN, "Is it 2?"), *SCRIPT]).project
    at_home(project, monkeypatch)
    with opened(project.root) as browser:
        said = {**browser.hidden(f"{RUN}/packet"), "answer": "It is 2.", "seen": "0" * 64}
        stale = browser.post(f"{RUN}/answer", said)
        assert (stale.status_code, written(stale.text, "answer")) == (409, "It is 2.")


@needs_chromium
@pytest.mark.parametrize("scripts", [True, False])
def test_a_line_of_the_changes_takes_a_comment_with_and_without_javascript(played: Played, scripts: bool) -> None:
    with let_in(played.project.root, java_script_enabled=scripts) as (page, access):
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{access.origin}{RUN}/packet")
            page.get_by_label("Comment on line 1 of greet.sum").first.click()
            comment = page.get_by_role("textbox", name="Comment on line 1 of greet.sum")
            assert (comment.bounding_box() or {"width": 0})["width"] > width * 0.4
            comment.fill("Say why.")
            assert not scripts or violations(page) == [], width
            page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Send it back").click()
        page.wait_for_url(f"**{RUN}")
    assert "greet.sum, line 1: Say why.\n\n> +greet n = n * 2" in (played.folder / "feedback-1.md").read_text()


def written(page: str, field: str) -> str:
    """Return what stands in a field of a form, as a browser reads it."""
    found = re.search(rf'<textarea id="{field}"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])
