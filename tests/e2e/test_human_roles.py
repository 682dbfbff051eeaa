"""A whole run in which people play roles: `redfirst hand-in` from another terminal while `redfirst run` waits."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kit import (
    GREET,
    GREET_DONE,
    HONEST,
    NEW_ID,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    REDFIRST,
    SPLIT,
    TEST_GREET,
    TEST_GREET_NEW,
    TESTS,
    make_project,
)
from waiting import wait_until

from pipeline.agents.backends.desk import desks_of
from pipeline.agents.backends.layout import Difference
from pipeline.app.human_answer import ReportForm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kit import Project

    from pipeline.agents.backends.desk import Asked, Desk

pytestmark = pytest.mark.slow

PEOPLE = ("--agent", "check=human", "--agent", "make=human", "--agent", "simplify=off")


def begin(project: Project, *argv: str) -> subprocess.Popen[str]:
    with log_of(project).open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [str(REDFIRST), *argv, "--json"],
            cwd=project.root,
            env=project.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def log_of(project: Project) -> Path:
    return project.home / "driver.log"


def wait_for(project: Project, words: str) -> None:
    wait_until(lambda: words in log_of(project).read_text(encoding="utf-8"), words)


def turns(project: Project, driver: subprocess.Popen[str], *, within_s: float = 240) -> Iterator[tuple[Desk, Asked]]:
    """Yield each desk at which it is a person's turn, until the driver ends."""
    end = time.monotonic() + within_s
    while driver.poll() is None:
        assert time.monotonic() < end, "the run neither ends nor asks"
        for desk in desks_of(project.run_folder(), project.home / "state"):
            asked = desk.asked()
            if asked is not None and not desk.report.exists():
                yield desk, asked
        time.sleep(0.05)


def hand_in(project: Project, asked: Asked, *argv: str) -> dict[str, Any]:
    shown = project.redfirst("desk", asked.run_id, "--role", asked.role)
    assert asked.dispatch in shown.stdout, shown
    return project.document("hand-in", asked.run_id, "--role", asked.role, *argv)


def result(driver: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = driver.communicate(timeout=240)
    document: dict[str, Any] = json.loads(out)
    return document


TWO_CRITERIA = {**SPLIT["report"]["tasks"][0], "acceptance_criteria": ['greet("") raises', 'greet("Ada") still greets']}
SHOWN = [{"id": "C1", "tests": [NEW_ID]}, {"id": "C2", "reason": "an old test shows it"}]


def test_people_check_and_make_and_the_same_gate_judges_them(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    changed = {
        "split": {"tasks": [TWO_CRITERIA]},
        "write-tests": {**TESTS["report"], "criteria": SHOWN},
    }
    project.use_script([{**entry, "report": changed.get(entry["when"]["kind"], entry["report"])} for entry in HONEST])
    driver = begin(project, "run", "GAL-1", *PEOPLE)
    asked_of: list[str] = []
    for desk, asked in turns(project, driver):
        if not asked_of:
            assert "waits for you at a desk" in project.redfirst().stdout
        asked_of.append(f"{asked.role} {asked.kind}{' again' if asked.reask else ''}")
        if asked.role == "check":
            tried = subprocess.run([desk.tests], check=False, capture_output=True)
            assert tried.returncode == 0, "who reviews can try the tests, too"
            assert hand_in(project, asked, "--verdict", "ACCEPTABLE")["waiting"] is True
        else:
            assert subprocess.run([desk.tests], check=False, capture_output=True).returncode == 1, "RED as measured"
            (desk.files / "greet.py").write_text(GREET_DONE)
            done = subprocess.run([desk.tests], check=False, capture_output=True, text=True)
            assert "2 passed" in done.stdout, done
            assert "`run-tests` beside this file" in desk.prompt.read_text(encoding="utf-8")
            assert "REDFIRST_REPORT" not in desk.prompt.read_text(encoding="utf-8"), "the form is for people"
            (desk.files / "tests/test_greet.py").write_text(TEST_GREET)  # not @make's to change
            told = hand_in(project, asked, "--verdict", "complete")
            assert [one["rule"] for one in told["error"]["details"]["refused"]] == ["test-file"]
            shell = ["sh", "-c", told["error"]["details"]["refused"][0]["put_back"]]
            subprocess.run(shell, cwd=desk.files, check=True, capture_output=True)
            wrong = tmp_path / "wrong.json"
            wrong.write_text('{"result": "COMPLETE", "sumary": "x"}')
            assert "sumary" in hand_in(project, asked, "--report", str(wrong))["error"]["message"]
            assert not desk.report.exists()
            (desk.files / "target").mkdir()
            (desk.files / "target/CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
            told = hand_in(project, asked, "--verdict", "COMPLETE")
            assert {one["path"] for one in told["changes"]} == {"greet.py"}
            assert told["built"] == [".pytest_cache/", "target/"]
    document = result(driver)
    assert document.get("outcome") == "completed", document
    assert asked_of == [
        "check review-plan",
        "check review-split",
        "make implement",
        "check review-result",
    ]
    assert project.git("show", "HEAD~1:greet.py") == GREET_DONE.strip()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "ended", "killed"])
@pytest.mark.broad
def test_when_the_driver_goes_the_desk_is_offered_again(tmp_path: Path, how: signal.Signals) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    driver = begin(project, "run", "GAL-1", "--agent", "make=human")
    desk, asked = next(turns(project, driver))
    assert (desk.files / "greet.py").read_text() == GREET
    (desk.files / "greet.py").write_text(GREET_DONE)
    driver.send_signal(how)
    if how is not signal.SIGKILL:
        stopped = result(driver)
        assert (stopped["outcome"], stopped["note"]) == ("cancelled", f"the desk of {asked.dispatch} stays as it is")
    else:
        driver.communicate(timeout=300)
    unseen = project.document("hand-in", "--verdict", "COMPLETE")
    assert "was not shown to you yet" in unseen["error"]["message"]
    told = hand_in(project, asked, "--verdict", "COMPLETE")
    assert (told["dispatch"], told["waiting"]) == (asked.dispatch, False)
    document = project.document("resume", "GAL-1")
    assert document.get("outcome") == "completed", document
    assert project.git("show", "HEAD~1:greet.py") == GREET_DONE.strip()
    begun = [line["data"] for line in project.journal() if line["kind"] == "dispatch_started"]
    assert [one["dispatch"] for one in begun if one.get("offered_again")] == [asked.dispatch]
    shown = project.document("show", "GAL-1")
    (counter,) = (one for one in shown["counters"] if one["loop"] == "dispatches")
    assert counter["spent"] == len({one["dispatch"] for one in begun})
    assert shown["spent"].startswith(f"{counter['spent']} dispatches")


@pytest.mark.broad
def test_a_plan_that_comes_back_is_in_the_form_that_its_author_opens(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    hole = {"severity": "HIGH", "title": "No edge case", "problem": "None is not looked at."}
    sent_back = {**PLAN_ACCEPTED, "report": {"verdict": "NEEDS WORK", "findings": [hole]}}
    accepted = {
        **PLAN_ACCEPTED,
        "report": {**PLAN_ACCEPTED["report"], "prior": [{"id": "plan-1-01", "status": "resolved"}]},
    }
    project.use_script([sent_back, PLAN_SIMPLE, accepted, *HONEST[2:]])
    driver = begin(project, "run", "GAL-1", "--agent", "orchestrator=human")
    opened: list[dict[str, Any]] = []

    def refused(asked: Asked, report: dict[str, Any]) -> tuple[str, str]:
        given = desk.folder / "report.json"  # who fills one in there has not handed it in
        given.write_text(json.dumps(report))
        error = hand_in(project, asked, "--report", str(given))["error"]
        return error["message"].removeprefix("Nothing was handed in. ").partition(". ")[0], error["pointer"]

    for desk, asked in turns(project, driver):
        form = ReportForm(desk, asked, Difference((), (), {}, {}))
        form.opened()
        opened.append(form.read()[1].report)
        gone = [{"path": "gone.py", "action": "modify"}]
        why = "gone.py does not exist; accepted for a new file is the action create (H007)"
        if asked.kind == "split":
            task = SPLIT["report"]["tasks"][0]
            assert refused(asked, {"tasks": [{**task, "files": gone}]}) == (f"task 1: {why}", "/tasks/0/files/0/path")
        else:
            assert refused(asked, {**PLAN["report"], "files": [*PLAN["report"]["files"], *gone]}) == (
                why,
                "/files/1/path",
            )
            vague = {**PLAN["report"], "risks": ["none", "TODO"]}
            assert refused(asked, vague)[1] == "/risks/1"
        given = desk.folder / "report.json"
        given.write_text(json.dumps(SPLIT["report"] if asked.kind == "split" else opened[-1] or PLAN["report"]))
        assert hand_in(project, asked, "--report", str(given))["ok"] is True
    document = result(driver)
    assert document.get("outcome") == "completed", document
    assert opened == [{}, PLAN["report"], {}]
    assert not [line for line in project.journal() if line["data"].get("signal") == "HYGIENE"]


@pytest.mark.broad
def test_a_trial_of_a_person_is_handed_in_at_the_desk(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([])
    words = ("agents", "try", "make", "--kind", "implement", "--issue", "GAL-1", "--write", "greet.py")
    driver = begin(project, *words, "--agent", "make=human")
    wait_for(project, "your desk: cd ")
    folder = log_of(project).read_text(encoding="utf-8").partition("your desk: cd ")[2].partition("\n")[0]
    (Path(folder) / "greet.py").write_text(GREET_DONE)
    told = project.redfirst("hand-in", "--verdict", "COMPLETE", cwd=Path(folder))
    assert told.returncode == 0, told.stderr
    assert "changed greet.py" in told.stdout
    document = result(driver)
    assert (document["gate"], document["report"]) == ("admitted", {"result": "COMPLETE"})
    assert [change["path"] for change in document["changes"]] == ["greet.py"]


@pytest.mark.broad
def test_a_second_hand_in_of_tests_says_what_changed_since_the_first(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    judge = {"when": {"kind": "judge", "question": "tests"}}
    found = {"severity": "HIGH", "problem": "ada is not greeted", "evidence": "one name", "concern": "test"}
    refused = {**judge, "report": {"verdict": "NEEDS WORK", "findings": [found]}}
    accepted = {**judge, "report": {"verdict": "ACCEPTABLE"}}
    others = [entry for entry in HONEST if entry["when"]["kind"] != "write-tests"]
    project.use_script([*others, refused, accepted])
    driver = begin(project, "run", "GAL-1", "--agent", "test=human")
    told: list[list[dict[str, str]]] = []
    asks = {"verdict": "TESTS_READY", "escalate_to_check": True, "escalation_reason": "is that all?"}
    report = tmp_path / "report.json"
    report.write_text(json.dumps(asks))
    for desk, asked in turns(project, driver):
        test = desk.files / "tests/test_greet.py"
        test.write_text(TEST_GREET_NEW if not told else test.read_text() + "\n\n# and no more\n")
        document = hand_in(project, asked, "--report", str(report))
        told.append(document["changes"])
    assert result(driver)["outcome"] == "completed"
    assert told == [[{"path": "tests/test_greet.py", "kind": "changed"}]] * 2
