"""`redfirst demo`: what it promises to show is in the journal, the commits and the tracker that it leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from console.browsing import chromium, needs_chromium, serving

from pipeline.faces.demo.command import EXPLAINED
from pipeline.matrix.routing.matrix import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterable

README = Path(__file__).parents[2] / "README.md"
REDFIRST = Path(sys.executable).with_name("redfirst")
SHOWN = {
    "review-plan/NEEDS_WORK",
    "write-tests/DISPUTED",
    "check-tests/ACCEPTABLE",
    "write-tests/ILLEGAL_RED",
    "implement/NOT_GREEN",
    "diagnose/PRODUCTION_LOGIC",
    "implement/NEEDS_FILE",
    "diagnose/AMENDED",
    "any/VIOLATION",
    "final-review/FIX",
    "split/DRAFTED[drafting fix tasks]",
    "publish/PUBLISHED",
}


def hostile_home(tmp_path: Path) -> Path:
    """Return a home whose configuration, of git and of redfirst, makes everything fail that reads it."""
    home = tmp_path / "home"
    (home / ".config" / "redfirst").mkdir(parents=True)
    (home / ".config" / "redfirst" / "config.toml").write_text("this is no TOML")
    (home / ".gitconfig").write_text("[this is no git config")
    return home


def demo(tmp_path: Path, *argv: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    """Run the demo as somebody who has configured nothing that helps."""
    env = {
        "PATH": path,
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path),
        "GIT_AUTHOR_NAME": "Somebody Else",
        "GIT_DIR": "/nowhere",
        "REDFIRST_SANDBOX": "nonsense",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        [str(REDFIRST), "demo", *argv],
        cwd="/",
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def git(repository: Path, *argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *argv], cwd=repository, env=env, check=True, capture_output=True, text=True).stdout


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def in_order(wanted: Iterable[str], text: str) -> bool:
    at = 0
    for words in wanted:
        at = text.find(words, at) + 1
        if not at:
            return False
    return True


@pytest.mark.slow
def test_the_demo_tells_a_whole_run_and_leaves_it_in_a_new_folder(tmp_path: Path) -> None:
    home = hostile_home(tmp_path)
    before = files_below(home)
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_below(home) == before
    assert done.stderr == ""

    (folder,) = tmp_path.glob("redfirst-demo-*")
    repository = folder / "shop"
    lines = done.stdout.splitlines()
    assert "SCRIPTED" in lines[0]
    assert "SCRIPTED" in lines[-1]
    assert str(folder) in lines[-2]
    assert "\x1b" not in done.stdout
    assert f"  {REDFIRST} explain" in done.stdout  # who started it by its path finds the same one
    assert in_order(
        [
            "[4] review-plan: NEEDS_WORK",
            "[6] write-tests task 1: DISPUTED",
            "[7] implement task 1: NOT_GREEN",
            EXPLAINED["implement/NOT_GREEN"],
            "GATE: rejected: 'tests/test_cart.py'",
            "asked again",
            "[7] diagnose task 2: AMENDED",
            "[8] final-review: FIX",
            "[9] publish: PUBLISHED",
            "$ git log --stat",
            "shop/discount.py",
            "# run-SHOP-1",
            "Where to look next",
            "redfirst verify SHOP-1",
        ],
        done.stdout,
    )
    advised = next(line for line in lines if line.endswith("verify SHOP-1"))
    programs = tmp_path / "bin"  # a machine whose Python has no pytest
    programs.mkdir()
    for found in filter(None, map(shutil.which, ("git", "env", "sh", "bwrap", "unshare"))):
        (programs / Path(found).name).symlink_to(found)
    bare = {"PATH": str(programs), "HOME": str(home)}
    verified = subprocess.run(["/bin/sh", "-c", advised], cwd=repository, env=bare, capture_output=True, check=False)
    assert b"Verified: what these commits claim was measured again" in verified.stdout, (advised, verified)

    shown = README.read_text(encoding="utf-8").partition("```console\n")[2].partition("```")[0]
    assert in_order(shown.splitlines(keepends=True), done.stdout)

    subjects = git(repository, "log", "--reverse", "--format=%an %s", "main..shop-1").splitlines()
    assert subjects == [
        "redfirst demo feat: reduce an amount by a percentage",
        "redfirst demo feat: take a discount code at the till",
        "redfirst demo fix: name an unknown discount code",
        "redfirst demo chore(todo): close SHOP-1",
    ]
    assert git(repository, "status", "--porcelain") == ""
    assert "status: Done" in (repository / "TODO" / "SHOP-1.md").read_text()
    assert "label" in (repository / "TODO" / "SHOP-1.1.md").read_text()
    rows = [
        line["data"]["row"]
        for text in (repository / ".workflow" / "run-SHOP-1" / "journal.jsonl").read_text().splitlines()
        if (line := json.loads(text))["kind"] == "decision"
    ]
    assert set(rows) >= SHOWN
    suite = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=repository,
        capture_output=True,
        check=False,
    )
    assert suite.returncode == 0, suite.stdout


@pytest.mark.slow
@pytest.mark.broad
def test_without_bubblewrap_the_demo_says_that_it_uses_no_box_and_its_document_is_all_of_stdout(tmp_path: Path) -> None:
    hostile_home(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "git")
    place = tmp_path / "a new place" / "demo"
    done = demo(tmp_path, str(place), "--json", path=str(programs))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING: NO SANDBOX. Agents cannot be isolated here: bubblewrap (bwrap) is not installed" in done.stderr
    assert "The demo goes on without one, because its agents are prepared." in done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["schema"] == "redfirst.demo/1"
    assert document["ok"] is True
    assert document["scripted"] is True
    assert document["folder"] == str(place)
    assert set(document["rows"]) >= SHOWN
    assert document["seconds"] < 240
    run = document["run"]
    assert (run["outcome"], run["sandbox"]["backend"]) == ("completed", "none")
    assert [task["id"] for task in run["tasks"]] == ["1", "2", "fix-1"]
    assert run["follow_ups"] == ["SHOP-1.1"]
    assert run["commits"] == git(place / "shop", "log", "--reverse", "--format=%H", "main..shop-1").split()
    assert not list(tmp_path.glob("redfirst-*"))


def test_what_cannot_be_a_demo_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("mine")
    done = demo(tmp_path, str(taken), "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "usage"
    assert error["path"] == str(taken)
    assert files_below(taken) == {"mine.txt"}
    done = demo(tmp_path, str(tmp_path / "demo"), "--console", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "usage"), "a console has no document"
    assert not (tmp_path / "demo").exists()


def test_every_explanation_belongs_to_a_row_of_the_matrix() -> None:
    assert EXPLAINED.keys() <= {row.id for row in MATRIX}


@pytest.mark.slow
@pytest.mark.broad
@needs_chromium
def test_the_demo_is_begun_followed_answered_and_landed_by_clicks_alone(tmp_path: Path) -> None:
    home = hostile_home(tmp_path)
    before = files_below(home)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmp_path), "LC_ALL": "C.UTF-8"}
    argv = [str(REDFIRST), "demo", str(tmp_path / "demo"), "--console"]
    shop = tmp_path / "demo" / "shop"
    with serving(argv, env) as (served, link), chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(300_000)
        try:
            page.goto(link)
            page.get_by_role("link", name="Issues", exact=True).click()
            page.get_by_role("link", name="Discount codes at the till").click()
            for gate in ("plan", "commit"):
                page.get_by_text(gate, exact=True).click()
            page.get_by_role("button", name="Queue it").click()
            assert "asks you at plan, commit" in page.inner_text("main")
            page.get_by_role("button", name="Start a worker").click()
            page.get_by_role("link", name="run-SHOP-1", exact=True).first.click()
            page.get_by_role("link", name="Review and answer").first.click()
            page.get_by_role("link", name="Edit it here").click()
            page.get_by_role("button", name="Save").click()
            page.get_by_role("button", name="Approve").click()
            page.get_by_role("link", name="Review and answer").first.click()
            page.get_by_text("test_an_unknown_code_is_named").first.wait_for()
            page.get_by_role("button", name="Approve").click()
            page.get_by_role("button", name="Put it onto main").click()
            page.get_by_text("and main has them").wait_for()
        except BaseException as error:
            error.add_note(f"{page.url} showed:\n{page.inner_text('body')}")
            raise
        served.send_signal(signal.SIGINT)
        told, _ = served.communicate(timeout=300)
    assert served.returncode == 0
    assert f"cd {shop} && env HOME=" in told
    assert "status: Done" in git(shop, "show", "main:TODO/SHOP-1.md")
    assert files_below(home) == before
