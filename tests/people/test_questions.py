"""Plan, split and diagnosis may ask a person; points are told and not waited for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from people.ground import FAST, SCRIPT, go_on, make, play

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry
    from people.ground import Played

pytestmark = pytest.mark.slow
PLAN, SPLIT = (next(one for one in SCRIPT if one["when"]["kind"] == kind) for kind in ("plan", "split"))


def asking(entry: Entry, text: str) -> Entry:
    """Return an answer that asks a person, beside what it would do without."""
    return {**entry, "report": {**entry["report"], "question": text}}


def begun(tmp_path: Path, script: list[Entry], *argv: str, questions: int = 3, more: str = "") -> Played:
    return play(make(tmp_path), script, *argv, extra=f"{FAST}[gates]\nquestions = {questions}\n{more}")


def events(played: Played, pattern: str) -> list[dict[str, Any]]:
    lines = played.project.redfirst("events", played.name, "--type", pattern).stdout.splitlines()
    return [json.loads(one) for one in lines]


def refusals(played: Played) -> None:
    """Look at the first question, and do with it what is refused."""
    packet = played.project.document("show", "GAL-1", "--packet")
    assert (packet["gate"], "Is it 1?" in packet["question"]) == ("question", True)
    assert '"greet.sum"' in packet["question"], "what is done without an answer"
    refused = go_on(played, "resume").document
    assert (refused["error"]["kind"], refused["_code"]) == ("input", 2)
    stale = go_on(played, "answer", "yes", "--seen", "0" * 64).document
    assert stale["error"]["kind"] == "stale"


@pytest.mark.broad
def test_check_14_questions_are_answered_and_the_fourth_is_refused(tmp_path: Path) -> None:
    script = [*(asking(PLAN, f"Is it {n}?\nOr not?") for n in range(1, 5)), *SCRIPT]
    played = begun(tmp_path, script, "--approve", "plan")
    for number in (1, 2, 3):
        document = played.document
        assert (document["outcome"], document["reason"], document["_code"]) == ("parked", "input", 4), document
        assert 'redfirst answer run-GAL-1 "..."' in document["safe_next_actions"]
        if number == 1:
            refusals(played)
        played = go_on(played, "answer", f"It is {number}.")
    assert (played.document["reason"], played.document["_code"]) == ("approval", 4), played.document["_stderr"]
    assert played.rows.count("plan/QUESTION") == 4
    assert played.counters("plan/QUESTION")["questions@run"] == 3
    second = played.asked("plan", 2)
    assert "Is it 1?" in second.text("answers")
    assert "It is 1." in second.text("answers")
    prompts = [one.document["prompt"] for one in played.dispatches("plan")]
    assert ["Questions left in this run: " in one for one in prompts] == [True, True, True, False, False]
    assert ["question" in one.document["report_schema"]["properties"] for one in played.dispatches("plan")] == [
        *[True] * 3,
        *[False] * 2,
    ]
    assert "No question is answered here" in prompts[4]
    assert [one["data"]["note"] for one in events(played, "input.requested")] == [
        f"Is it {n}? Or not?" for n in (1, 2, 3)
    ]
    assert [one["data"]["via"] for one in events(played, "input.given")] == ["cli"] * 3
    assert (played.folder / "answer-3.md").is_file()


@pytest.mark.broad
def test_a_question_of_the_split_is_answered_without_driving(tmp_path: Path) -> None:
    script = [*SCRIPT]
    script[script.index(SPLIT)] = asking(SPLIT, "One or two?")
    played = begun(tmp_path, [*script, *SCRIPT])
    assert played.document["reason"] == "input", played.document["_stderr"]
    document = go_on(played, "answer", "One.", "--no-drive").document
    assert (document["answer"], document["queued"]) == ("answered", True)
    assert played.project.document("runs")["runs"][0]["status"] == "queued"
    refused = go_on(played, "answer", "Two.").document
    assert "waits for no answer (queued)" in refused["error"]["message"]
    done = go_on(played, "resume").document
    assert (done["outcome"], done["_code"]) == ("completed", 0), done["_stderr"]
    assert "One." in played.asked("split", 2).text("answers")


def test_by_default_nothing_is_asked_and_nothing_said_of_it(tmp_path: Path) -> None:
    played = begun(tmp_path, [asking(PLAN, "May I?"), *SCRIPT], "--approve", "plan", questions=0)
    assert played.document["reason"] == "approval", played.document["_stderr"]
    first, second = played.dispatches("plan")
    assert "question`" not in first.document["prompt"]
    assert "question" not in first.document["report_schema"]["properties"]
    assert "No question is answered here" in second.document["prompt"]
    assert played.rows[2:4] == ["plan/QUESTION", "plan/DRAFTED"]


def test_points_are_told_and_not_waited_for(tmp_path: Path) -> None:
    played = begun(tmp_path, SCRIPT, "--approve", "split,commit", more='points = ["plan", "split"]\n')
    assert played.document["gate"] == "split", played.document["_stderr"]
    assert [one["data"]["point"] for one in events(played, "point.passed")] == ["plan"], "at a gate somebody looks"
    assert "point plan: run-GAL-1 goes on" in played.document["_stderr"]
