"""What keeps others out, and texts from being more than texts, in the browser that people have."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from console.browsing import SIZES, chromium, heard, let_in, needs_chromium, violations
from console.hostile import TEXTS
from console.served import listening
from console.test_acts import at_home, played_at
from people.ground import FAST, SCRIPT, make
from people.test_questions import PLAN, asking, begun
from runs.real import begin, event, make_repository

from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Dialog, Page

    from pipeline.faces.console.guard import Access

pytestmark = [pytest.mark.slow, pytest.mark.broad, needs_chromium]

RUN = "/runs/run-GAL-1"
PATHS = ("/", RUN, f"{RUN}/packet", f"{RUN}/diff", f"{RUN}/log", "/issues", "/queue", "/runs/none")
ELSEWHERE = """<!doctype html><title>Elsewhere</title>
<iframe id="frame" src="{origin}/"></iframe>
<img src="{origin}/static/icon.svg">
<form id="form" method="post" action="{origin}/runs/run-GAL-1/approve" target="there"></form>
<iframe name="there"></iframe>
<script>
document.getElementById("form").submit();
window.read = async (how) => {{
  try {{ const got = await fetch("{origin}/", how); return got.status + " " + (await got.text()).length; }}
  catch (error) {{ return "refused"; }}
}};
</script>
"""


@contextmanager
def another_site(text: str) -> Generator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002  (its name there)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()


def is_page(url: str, access: Access) -> bool:
    return access.name in url and "/static/" not in url


def test_check_29_pages_of_others_get_nothing_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = played_at(tmp_path, monkeypatch).project
    before = project.journal()
    with let_in(project.root) as (page, access), another_site(ELSEWHERE.format(origin=access.origin)) as site:
        assert page.goto(access.origin).status == 200  # pyright: ignore[reportOptionalMemberAccess]
        page.goto("about:blank")  # what our own page asked for has been answered
        answers: list[int] = []
        page.on("response", lambda answer: answers.append(answer.status) if is_page(answer.url, access) else None)
        page.goto(site)
        page.wait_for_timeout(500)
        assert set(answers) <= {401, 403}, "the cookie goes along with none of it"
        for how in ("{}", '{credentials: "include"}', '{mode: "no-cors", credentials: "include"}'):
            assert page.evaluate(f"read({how})") in {"refused", "0 0"}, how
        frame = page.frames[1]
        assert "Runs" not in frame.content(), "no frame has a page of ours"
        for host in (f"127.0.0.1:{access.port}", f"localhost:{access.port}", f"evil.localhost:{access.port}"):
            assert page.goto(f"http://{host}/").status == 421  # pyright: ignore[reportOptionalMemberAccess]
        assert page.context.cookies(f"http://localhost:{access.port}") == []
    assert project.journal() == before


def test_check_29_a_link_from_another_site_does_not_act_and_the_code_still_lets_in(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    with listening(repository.worktree) as access, chromium() as browser:
        page = browser.new_page()
        with another_site(f'<a href="{access.link}">open</a>') as site:
            page.goto(site)
            page.click("a")
            page.wait_for_url(f"{access.origin}/")
            page.get_by_role("heading", name="Runs", exact=True).wait_for()


def test_check_30_texts_of_strangers_are_texts_and_axe_finds_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    assert len(TEXTS) == 60
    for number, text in enumerate(TEXTS, 1):
        run = begin(repository, f"run-H-{number}")
        title = text.replace("\n", " ")[:2000]
        (run.folder / "issue.md").write_text(
            f"---\nid: H-{number}\nstatus: Todo\n---\n# H-{number}: {title}\n", encoding="utf-8"
        )
        run.decide(event(Signal.OK, note=text[:100_000]))
    with let_in(repository.worktree) as (page, access):
        said, asked = heard(page.context), list[str]()
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        for number in range(1, len(TEXTS) + 1):
            for path in (f"/runs/run-H-{number}", f"/runs/run-H-{number}/log"):
                page.goto(access.origin + path)
                assert page.evaluate("window.owned") is None, TEXTS[number - 1]
                assert page.locator("main script, main iframe, main img, main object, main [onerror]").count() == 0
        page.goto(f"{access.origin}/?all")
        assert said == []
        assert [url for url in asked if not url.startswith((access.origin, "data:"))] == []
        assert not {char for char in page.inner_text("body") if char in "\u202e\u2066\u200b\x1b"}
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            for path in ("/", "/runs/run-H-1", "/runs/run-H-1/log", "/issues", "/queue"):
                page.goto(access.origin + path)
                assert violations(page) == [], (path, width)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plan_is_edited_with_the_mouse_and_axe_finds_nothing_in_the_form_or_on_an_issue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    project = played_at(tmp_path, monkeypatch).project
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    with let_in(project.root, color_scheme=scheme) as (page, access):
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{access.origin}/issues")
            page.get_by_role("link", name="Reject empty names").click()
            page.wait_for_url("**/issues/GAL-1")
            assert violations(page) == [], width
            page.get_by_role("link", name="run-GAL-1").click()
            page.get_by_role("link", name="Review and answer").first.click()
            page.get_by_label("Comment on line 1 of plan.md").first.click()
            comment = page.get_by_role("textbox", name="Comment on line 1 of plan.md")
            comment.wait_for()
            assert (comment.bounding_box() or {"width": 0})["width"] > width / 2
            page.wait_for_function("document.activeElement.name === 'comment plan.md 1'")
            page.keyboard.type("Not sent yet.")
            page.once("dialog", refuse)
            page.get_by_role("link", name="Edit it here").click()
            assert asked.pop() == "beforeunload"
            assert comment.input_value() == "Not sent yet."
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("link", name="Edit it here").click()
            page.wait_for_url("**/edit?file=plan.md")
            assert violations(page) == [], width
            text = page.get_by_label("plan.md").input_value()
            page.get_by_label("plan.md").fill(text.replace("## Approach", "## Aproach"))
            page.get_by_role("button", name="Save").click()
            page.get_by_text("Nothing was saved").wait_for()
            assert violations(page) == [], width
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            page.get_by_label("plan.md").fill(f"{text.rstrip()} \n")
            page.get_by_role("button", name="Save").click()
            page.get_by_role("button", name="Approve").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_check_30_axe_finds_nothing_where_something_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    project = played_at(tmp_path, monkeypatch, "commit").project
    with let_in(project.root, color_scheme=scheme) as (page, access):
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            for path in PATHS:
                page.goto(access.origin + path)
                page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
                assert violations(page) == [], (path, width)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)


def press_until(page: Page, name: str, most: int = 80) -> None:
    """Press Tab until what has the name has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if name in page.evaluate("document.activeElement.innerText + (document.activeElement.ariaLabel || '')"):
            return
    pytest.fail(f"{name} is not reached by keyboard")


@pytest.mark.parametrize("scripts", [True, False])
def test_check_31_by_keyboard_and_without_javascript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: bool
) -> None:
    project = played_at(tmp_path, monkeypatch).project
    with let_in(project.root, java_script_enabled=scripts) as (page, access):
        if scripts:
            press_until(page, "To the content")
            press_until(page, "GAL-1")
            page.keyboard.press("Enter")
            page.wait_for_url(f"**{RUN}")
            press_until(page, "Review and answer")
            page.keyboard.press("Enter")
            page.wait_for_url("**/packet")
            press_until(page, "Comment on line 1 of plan.md")
            page.keyboard.press("Enter")
            page.wait_for_function("document.activeElement.name === 'comment plan.md 1'")
            page.keyboard.type("By keyboard.")
            press_until(page, "Send it back", 200)
            page.keyboard.press("Enter")
        else:
            page.goto(f"{access.origin}{RUN}/packet")
            page.get_by_label("Comment on line 1 of plan.md").first.click()
            page.get_by_role("textbox", name="Comment on line 1 of plan.md").fill("By keyboard.")
            page.get_by_role("button", name="Send it back").click()
        page.wait_for_url(f"**{RUN}")
        project.redfirst("watch", "GAL-1")
    assert "plan.md, line 1: By keyboard." in (project.run_folder() / "feedback-1.md").read_text()


def test_check_15_a_run_is_stopped_on_its_page_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = played_at(tmp_path, monkeypatch).project
    project.use_script([{**entry, "sleep_s": 4} for entry in SCRIPT], FAST)
    with let_in(project.root) as (page, access):
        page.goto(f"{access.origin}{RUN}/packet")
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("button", name="Stop it").click(timeout=20_000)
        page.get_by_role("button", name="Go on").click(timeout=30_000)
        page.get_by_text("It is done: 2 commits").wait_for(timeout=90_000)


def test_a_question_is_answered_and_the_result_landed_with_the_mouse_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [asking(PLAN, "Is it <b>2</b>?"), *SCRIPT]
    project = begun(tmp_path, script).project
    at_home(project, monkeypatch)
    with let_in(project.root) as (page, _):
        page.get_by_role("link", name="GAL-1").click()
        page.get_by_role("link", name="Read and answer").click()
        page.get_by_text("Is it <b>2</b>?").first.wait_for()
        page.get_by_label("Answer", exact=True).fill("It is 2.")
        page.get_by_role("button", name="Answer").click()
        page.get_by_role("button", name="Put it onto main").click(timeout=60_000)
        page.get_by_text("and main has them").wait_for(timeout=60_000)
        assert "It is 2." in (project.run_folder() / "answer-1.md").read_text()
    assert project.git("log", "--format=%s", "main").count("GAL-1") == 1


def test_an_issue_is_queued_among_the_issues_and_worked_on_from_the_page_of_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make(tmp_path)
    project.use_script(SCRIPT, FAST)
    at_home(project, monkeypatch)
    with let_in(project.root) as (page, _):
        page.get_by_role("link", name="Issues", exact=True).click()
        page.get_by_role("link", name="Queue it").click()
        page.get_by_role("button", name="Queue it").click()
        page.get_by_role("button", name="Drop").click()
        page.get_by_label("Issues to run").fill("GAL-1")
        page.get_by_label("plan").check()
        page.get_by_role("button", name="Queue", exact=True).click()
        page.get_by_text("asks you at plan").wait_for()
        page.get_by_role("button", name="Start a worker").click()
        page.get_by_text("A worker was started").wait_for()
        page.get_by_role("heading", name="Waits for you").wait_for(timeout=60_000)
        page.get_by_role("link", name="Review and answer").click()
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("link", name="Queue").click()
        page.get_by_text("completed").first.wait_for(timeout=90_000)
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("link", name="GAL-1").click()
        page.get_by_text("It is done: 2 commits").wait_for()
