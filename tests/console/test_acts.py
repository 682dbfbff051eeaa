"""What a person does on a page: it is what the command does, to what they saw, and only from a page of ours."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from console.served import opened
from kit import HONEST, make_project
from landing.finished import make_fleet
from people.ground import make, waiting
from waiting import wait_until
from workflows.test_gates_and_commands import answer, asks, left
from workflows.test_gates_and_commands import make as make_recipe

if TYPE_CHECKING:
    from e2e.lanes import Played
    from kit import Project

pytestmark = pytest.mark.slow

RUN = "/runs/run-GAL-1"
TESTS = Path(__file__).parents[1]
FIFTH = (
    f"import sys; sys.path[:0] = ['{TESTS}', '{TESTS.parent}']; from languages.sums import add_to_table; add_to_table()"
)
"""What puts the language of sums into the table of a driver that the console starts."""


def at_home(project: Project, patched: pytest.MonkeyPatch) -> None:
    """Let this process, and what it starts, be the user's."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "REDFIRST_"))]:
        patched.delenv(name)
    start = project.home / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(FIFTH, encoding="utf-8")
    for name, value in {**project.environment(), "PYTHONPATH": str(start)}.items():
        patched.setenv(name, value)


def played_at(tmp_path: Path, patched: pytest.MonkeyPatch, gates: str = "plan") -> Played:
    tmp_path.mkdir(exist_ok=True)
    played = waiting(tmp_path, gates)
    at_home(played.project, patched)
    return played


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return waiting(tmp_path_factory.mktemp("parked")).project


@pytest.fixture
def unanswered(parked: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with a run at approval point plan, for tests that change nothing of it."""
    at_home(parked, monkeypatch)
    return parked


def history(project: Project) -> str:
    return project.git("log", "--format=%s%n%b%T", "main..work").replace(str(project.root), "")


@pytest.mark.broad
def test_check_10_what_is_approved_on_a_page_becomes_the_same_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "typed").mkdir()
    typed = waiting(tmp_path / "typed")
    assert typed.project.document("approve", "GAL-1")["outcome"] == "completed"
    clicked = played_at(tmp_path / "clicked", monkeypatch)
    with opened(clicked.project.root) as browser:
        fields = browser.hidden(f"{RUN}/packet")
        done = browser.post(f"{RUN}/approve", fields)
        assert (done.status_code, done.headers["location"]) == (303, RUN)
        assert "completed: done" in clicked.project.redfirst("watch", "GAL-1").stdout
        assert "It is done: 2 commits" in browser.get(RUN).text
        assert browser.post(f"{RUN}/approve", fields).status_code == 400, "check 12: there is nothing to approve again"
    assert history(clicked.project) == history(typed.project)
    (answered,) = (line["data"] for line in clicked.project.journal() if line["kind"] == "gate_answered")
    assert (answered["actor"], answered["via"]) == ("Ada", "console")


@pytest.mark.broad
def test_check_11_what_changed_since_it_was_seen_is_not_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = played_at(tmp_path, monkeypatch).project
    before = project.journal()
    with opened(project.root) as browser:
        fields = browser.hidden(f"{RUN}/packet")
        plan = project.run_folder() / "plan.md"
        plan.write_text(plan.read_text().replace("ValueError", "KeyError"), encoding="utf-8")
        for what, words in (("approve", ""), ("reject", "No.")):
            refused = browser.post(f"{RUN}/{what}", {**fields, "feedback": words})
            assert (refused.status_code, "Look again" in refused.text) == (409, True)
        assert "not what you see below any more" in browser.get(f"{RUN}/packet?seen={fields['seen']}").text
        assert browser.post(f"{RUN}/approve", {**fields, "seen": ""}).status_code == 409
        assert browser.post(f"{RUN}/abandon", {**fields, "seen": "1 running"}).status_code == 409
    assert project.journal() == before


def test_check_29_only_a_form_of_this_session_changes_anything(unanswered: Project) -> None:
    before = unanswered.journal()
    with opened(unanswered.root) as browser:
        fields = browser.hidden(f"{RUN}/packet")
        port = browser.access.port
        for origin in ("null", "http://evil.example", f"http://localhost:{port}", f"https://{browser.access.host}", ""):
            assert browser.post(f"{RUN}/approve", fields, origin=origin).status_code == 403, origin
        for token in ("", "guess", fields["token"][:-1]):
            assert browser.post(f"{RUN}/approve", {**fields, "token": token}).status_code == 403, token
        assert browser.get(f"{RUN}/approve").status_code == 405
        assert browser.post(f"{RUN}/delete", fields).status_code == 404
        browser.client.cookies.clear()
        assert browser.post(f"{RUN}/approve", fields).status_code == 401
    assert unanswered.journal() == before


@pytest.mark.broad
def test_comments_on_lines_go_along_as_feedback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = played_at(tmp_path, monkeypatch).project
    plan = (project.run_folder() / "plan.md").read_text().split("\n")
    number = 1 + next(at for at, line in enumerate(plan) if line.startswith("## Problem"))
    with opened(project.root) as browser:
        said = {"feedback": "Not yet.", f"comment plan.md {number}": "Which\r\nproblem?", "comment ../x 1": "no"}
        done = browser.post(f"{RUN}/reject", {**browser.hidden(f"{RUN}/packet"), **said})
        assert done.status_code == 303, done.text
    project.redfirst("watch", "GAL-1")
    feedback = (project.run_folder() / "feedback-1.md").read_text()
    assert f"Not yet.\n\nplan.md, line {number}: Which\nproblem?\n\n> ## Problem" in feedback
    assert "no\n" not in feedback


def test_check_32_a_console_that_only_reads_has_no_forms_and_takes_none(unanswered: Project) -> None:
    with opened(unanswered.root) as browser:
        fields = browser.hidden(f"{RUN}/packet")
    with opened(unanswered.root, read_only=True) as browser:
        for path in ("/", RUN, f"{RUN}/packet", f"{RUN}/diff", "/issues"):
            found = browser.get(path)
            assert (found.status_code, "<button" in found.text, 'name="token"' in found.text) == (200, False, False)
        token = browser.access.token_for(browser.client.cookies["redfirst"])
        for what in ("approve", "reject", "stop", "resume", "abandon"):
            assert browser.post(f"{RUN}/{what}", {**fields, "token": token}).status_code == 404, what
    assert unanswered.journal()[-1]["kind"] == "run_parked"


def test_orders_are_placed_held_and_dropped_on_the_page_of_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make(tmp_path)
    at_home(project, monkeypatch)
    with opened(project.root) as browser:
        token = browser.hidden("/queue")["token"]
        assert 'name="gate-plan"' in browser.get("/issues/GAL-1").text
        said = {"token": token, "names": "GAL-1", "gate-plan": "on"}
        assert browser.post("/queue", {**said, "token": ""}).status_code == 403
        assert browser.post("/queue", said).headers["location"] == "/queue"
        assert "asks you at plan" in browser.get("/queue").text
        for what, state in (("hold", "held"), ("release", "queued"), ("drop", "dropped")):
            assert browser.post("/queue", {"token": token, "names": "GAL-1", "do": what}).status_code == 303
            (order,) = browser.json("/queue")["orders"]
            assert (order["state"], order["via"]) == (state, "console")
        assert browser.json("/queue") == {
            key: value for key, value in project.document("queue", "list").items() if not key.startswith("_")
        }
        wrong = browser.post("/queue", {"token": token, "names": "GAL-77"})
        assert (wrong.status_code, "GAL-77" in wrong.text) == (404, True)


@pytest.mark.broad
def test_check_13_a_console_sees_to_gates_that_nobody_answers_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST, 'sandbox = "none"\n[gates]\ntimeout = "1h"\non_timeout = "abandon"\n')
    assert project.run("--approve", "plan")["reason"] == "approval"
    at_home(project, monkeypatch)
    journal = project.run_folder() / "journal.jsonl"
    for read_only, outcome in ((True, "parked"), (False, "cancelled")):
        text = journal.read_text("utf-8")
        journal.write_text(re.sub(r'"at":"\d{4}', '"at":"2001', text), "utf-8")  # a long time has passed
        with opened(project.root, read_only=read_only) as browser:
            wait_until(lambda browser=browser, outcome=outcome: browser.json(RUN)["outcome"] == outcome, outcome)


@pytest.mark.broad
def test_gates_of_a_recipe_are_answered_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_recipe(
        tmp_path,
        [answer("draft", "Long."), answer("use", "Used.")],
        asks("draft"),
        {"id": "which", "gate": "ask", "prompt": "Which of {{steps.draft.output}}?", "depends_on": ["draft"]},
        {"id": "ok", "gate": "approve", "depends_on": ["draft"], "back_to": "draft"},
        asks("use", "Use {{steps.which.output}}", depends_on=["which", "ok"]),
    )
    assert project.document("run", "own")["reason"] == "approval"
    at_home(project, monkeypatch)
    with opened(project.root) as browser:
        text = browser.get("/runs/run-own").text
        assert ("It waits for you at which" in text, "It waits for you at ok" in text) == (True, True)
        assert browser.get("/runs/run-own/edit?file=plan.md").status_code in {400, 409}, "it has no drafts"
        for gate in ("which", "ok"):
            review = f"/runs/run-own/packet?gate={gate}"
            said = {**browser.hidden(review), "answer": "The long one." if gate == "which" else ""}
            assert browser.post("/runs/run-own/approve", said).status_code == 303, gate
        project.redfirst("watch", "run-own")
        assert browser.json("/runs/run-own")["outcome"] == "completed"
        file = browser.json("/runs/run-own")["steps"][0]["outcome"]
        assert 'href="/runs/run-own"' in browser.get(f"/runs/run-own/files/{file}").text
    assert left(project, "which").strip() == "The long one."


@pytest.mark.broad
def test_a_result_that_does_not_land_is_told_with_what_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_fleet(tmp_path, 1)
    fleet.run(1)
    at_home(fleet.project, monkeypatch)
    mine = fleet.project.root / "f1.sum"
    whole = mine.read_text("utf-8")
    with opened(fleet.project.root) as browser:
        mine.write_text("of mine, not committed\n", "utf-8")
        refused = browser.post(f"{RUN}/land", browser.hidden(RUN))
        assert (refused.status_code, "f1.sum" in refused.text) == (409, True), refused.text
        mine.write_text(whole, "utf-8")
        assert browser.post(f"{RUN}/land", browser.hidden(RUN)).status_code == 303
        text = re.sub("<[^>]+>", "", browser.get(RUN).text)
        assert "and main has them" in text
        was, now = fleet.project.git("rev-parse", "main@{1}", "main").split()
        branch = browser.json(RUN)["branch"]
        landed = f"landed: main has the 2 commits of {branch}, put onto {was[:12]}; the last one is {now[:12]}"
        assert "did not land" not in text.partition(landed)[0], "the newest first"
        assert landed in " ".join(fleet.project.redfirst("explain", "GAL-1").stdout.split())
        late = browser.get(f"{RUN}/packet").text
        assert ("redfirst show run-GAL-1" in late, "redfirst resume" in late, f'href="{RUN}"' in late) == (
            True,
            False,
            True,
        )
