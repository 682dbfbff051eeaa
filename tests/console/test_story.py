"""A plan is looked at and approved with the mouse, and the page follows the run to its commits by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from console.browsing import let_in, needs_chromium
from console.test_acts import history, played_at
from people.ground import waiting

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_chromium]


def test_check_10_from_the_link_to_commits_with_the_mouse_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "typed").mkdir()
    typed = waiting(tmp_path / "typed").project
    assert typed.document("approve", "GAL-1")["outcome"] == "completed"
    project = played_at(tmp_path / "clicked", monkeypatch).project
    with let_in(project.root, reduced_motion="reduce") as (page, _):
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.get_by_role("link", name="GAL-1").click()
        page.get_by_role("link", name="Review and answer").first.click()
        page.get_by_label("Comment on line 1 of plan.md").first.click()
        page.get_by_role("textbox", name="Comment on line 1 of plan.md").fill("Good.")
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("Nothing was answered").wait_for()  # an approval takes no words along
        complaints.clear()  # the browser's own, of the refusal
        page.get_by_label("What is to be different").fill("")
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("It is done: 2 commits").wait_for(timeout=60_000)
        assert page.get_by_role("img", name="Where the run stands").is_visible()
        page.get_by_role("link", name="Changes").click()
        row = page.locator("tr.add", has_text="two: greet 2 = 4")
        assert (row.get_by_text("RED", exact=True).count(), row.get_by_text("GREEN", exact=True).count()) == (1, 1)
        assert complaints == []
    assert history(project) == history(typed), "the same commits as from a terminal"
