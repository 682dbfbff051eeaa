"""Steps that redfirst takes itself: commands, measurements and gates, in whole runs with scripted agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

GREEN = {"sums.project": "", "two.sum": "two n = n * 2\n", "two.check": "a: two 2 = 4\nb: two 3 = 6\n"}
RED = {"two.check": "a: two 2 = 4\nb: two 3 = 7\n"}


def answer(step: str, output: str, **more: Any) -> Entry:
    return {"when": {"step": step}, "report": {"result": "ANSWERED", "output": output, **more}}


def asks(id_: str, prompt: str = "p", **more: Any) -> dict[str, Any]:
    return {"id": id_, "agent": "explore", "prompt": prompt, **more}


def make(tmp_path: Path, script: list[Entry], *steps: dict[str, Any], **more: Any) -> Project:
    """Return a project whose user has the recipe `own` of these steps; its tests take no process."""
    project = make_project(tmp_path, GREEN)
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.use_script(script, 'sandbox = "none"\n')
    own = project.home / "config" / "redfirst" / "recipes" / "own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"name": "own", "steps": list(steps), **more}), encoding="utf-8")
    return project


def left(project: Project, step: str, kind: str = "md", run: str = "run-own") -> str:
    return (project.run_folder(run) / "steps" / step / f"{step}.{kind}").read_text(encoding="utf-8")


def test_check_29_a_value_is_one_word_of_a_command_and_stays_text(tmp_path: Path) -> None:
    values = {"a": "$(touch pwned)", "b": "--config=/etc/passwd", "c": "two\nlines", "d": "{{inputs.a}} `x`"}
    words = ["--", *(f"{{{{inputs.{name}}}}}" for name in values)]
    shows = "import sys, pathlib; pathlib.Path('two.sum').unlink(); print(ascii(sys.argv[1:]))"
    project = make(
        tmp_path,
        [],
        {"id": "say", "run": ["python3", "-c", shows, *words]},
        {"id": "bad", "run": ["python3", "-c", "import sys; print('x' * 99999); sys.exit('no')"]},
        {"id": "fails", "run": ["false"], "expect": "fail"},
        {"id": "none", "run": ["no-such-program"], "expect": "fail", "otherwise": "nothing-to-do"},
        inputs=[{"name": name} for name in values],
    )
    document = project.document("run", "own", *(f"{name}={value}" for name, value in values.items()))
    assert document["usable"] == ["say", "fails"]
    assert ascii(["--", *values.values()]) in left(project, "say"), "no shell, no second reading"
    assert not list(tmp_path.rglob("pwned"))
    assert project.git("status", "--porcelain") == "", "what a command writes is dropped with its copy"
    assert document["failed"] == ["bad", "none"], "what cannot be started has not failed as it was expected to"
    said = left(project, "bad")
    assert said.startswith("exit code 1: ")
    assert ("characters are left out" in said, len(said) < 40_000) == (True, True)
    assert "no-such-program on PATH was not found" in left(project, "none")


def test_a_command_that_reaches_the_repository_ends_the_run(tmp_path: Path) -> None:
    hook = tmp_path / "project" / ".git" / "hooks" / "post-commit"
    project = make(tmp_path, [], {"id": "out", "run": ["sh", "-c", f"mkdir -p {hook.parent}; echo true > {hook}"]})
    document = project.document("run", "own")
    assert (document["outcome"], document["reason"], document["_code"]) == ("failed", "escape", 6)
    assert "hooks/post-commit" in document["note"]


@pytest.mark.broad
def test_check_34_no_failing_test_leaves_nothing_to_do(tmp_path: Path) -> None:
    project = make(
        tmp_path,
        [answer("why", "It is 7.")],
        {"id": "red", "tests": "all", "expect": "fail", "otherwise": "nothing-to-do"},
        {"id": "good", "tests": ["two.check::a"], "depends_on": ["red"]},
        {"id": "bad", "tests": "two.check", "depends_on": ["red"]},
        {
            "id": "gone",
            "tests": ["two.check::z"],
            "expect": "fail",
            "otherwise": "nothing-to-do",
            "depends_on": ["red"],
        },
        asks("why", "Why? {{steps.red.output}}", depends_on=["red"]),
    )
    document = project.document("run", "own")
    assert (document["outcome"], document["reason"], document["_code"]) == ("completed", "nothing_to_do", 0)
    assert (document["usable"], document["dispatches"]) == (["red"], 0)
    project.write(RED)
    project.commit()
    document = project.document("run", "own")
    assert (document["usable"], document["failed"]) == (["red", "good", "why"], ["bad", "gone"])
    evidence = json.loads(left(project, "red", "json", "run-own@2"))
    assert (evidence["status"], evidence["passed"], evidence["failed"]) == ("failed", 1, 1)
    assert [one["id"] for one in evidence["tests"]] == ["two.check::b"]
    assert evidence["tree"] == project.git("rev-parse", "HEAD^{tree}")
    assert "no test is called two.check::z" in left(project, "gone", run="run-own@2")


@pytest.mark.broad
def test_check_20_gates_wait_together_and_a_rejection_asks_no_more_than_needed(tmp_path: Path) -> None:
    """And check 19: of two gates one is answered, and the run waits at the other."""
    project = make(
        tmp_path,
        [answer("draft", "Long."), answer("aside", "Aside."), answer("draft", "Short."), answer("use", "Used.")],
        asks("draft"),
        asks("aside"),
        {"id": "tell", "gate": "note", "prompt": "It says {{steps.aside.output}}", "depends_on": ["aside"]},
        {"id": "which", "gate": "ask", "prompt": "Which of {{steps.draft.output}}?", "depends_on": ["draft"]},
        {"id": "ok", "gate": "approve", "depends_on": ["draft", "aside"], "back_to": "draft"},
        asks("use", "Use {{steps.which.output}}", depends_on=["which", "ok"]),
        output="{{steps.which.output}}: {{steps.use.output}}",
    )
    document = project.document("run", "own")
    assert (document["outcome"], document["reason"], document["_code"]) == ("parked", "approval", 4)
    assert document["notes"] == [{"step": "tell", "text": "It says Aside."}]
    assert [(gate["step"], gate["asks"], gate["question"]) for gate in document["gates"]] == [
        ("which", True, "Which of Long.?"),
        ("ok", False, ""),
    ]
    assert "at approval points which, ok" in project.redfirst("runs").stdout
    shown = project.redfirst("show").stdout
    assert "  next: redfirst reject run-own --step ok --feedback" in shown
    assert "  which: waits for you\n" in shown
    assert "does draft again, from your feedback, then which, ok, use" in shown
    for words, why in (
        (["approve"], "waits at approval points which, ok. Say which one is answered"),
        (["approve", "--step", "use"], "not at use: nothing was answered"),
        (["approve", "--step", "which"], "asks a question"),
        (["approve", "--step", "which", "answer=..."], "asks a question"),
        (["approve", "--step", "ok", "answer=x"], "takes no value"),
        (["approve", "--gate", "plan"], "--gate can mean nothing here"),
        (["reject", "--step", "ok", "--feedback", "..."], "--feedback says nothing"),
        (["resume", "run-own"], "waits at approval points which, ok"),
    ):
        done = project.redfirst(*words)
        assert (done.returncode != 0, why in done.stderr) == (True, True), done.stderr
    document = project.document("approve", "--step", "which", "answer=the $(second) {{item}}")
    assert [gate["step"] for gate in document["gates"]] == ["ok"]
    document = project.document("reject", "--feedback", "Shorter, please.")
    assert (document["dispatches"], [gate["step"] for gate in document["gates"]]) == (3, ["which", "ok"])
    asked = project.run_folder("run-own") / "dispatches" / "003-draft-explore"
    assert "Shorter, please." in "".join(path.read_text() for path in (asked / "artifacts" / "feedback").iterdir())
    assert project.document("approve", "run-own", "--step", "ok")["_code"] == 4
    document = project.document("approve", "run-own", "answer=the first")
    assert (document["outcome"], document["_code"]) == ("completed", 0)
    assert document["output"] == "the first: Used.\n"
    request = project.run_folder("run-own") / "steps" / "use" / "request.md"
    assert "the first" not in request.read_text(), "what a person wrote is a file, and not a word of the request"
    assert project.redfirst("approve", "run-own").returncode == 2


@pytest.mark.broad
def test_check_33_simulate_equals_the_run(tmp_path: Path) -> None:
    project = make(
        tmp_path,
        [],
        {"id": "a", "run": ["true"]},
        {"id": "b", "run": ["false"]},
        {"id": "ok", "gate": "approve", "depends_on": ["a"], "back_to": "a"},
        {"id": "c", "run": ["true"], "depends_on": ["b"]},
    )
    for words in (["run", "own"], ["reject", "--feedback", "again"], ["approve"], ["resume"]):
        assert project.document(*words)["_code"] in {4, 8}
    entries: list[Any] = []
    decided: list[dict[str, Any]] = []
    for line in project.journal("run-own"):
        said = line["data"]
        if line["kind"] == "run_resumed":
            entries.append("RESUMED")
        elif line["kind"] == "decision" and "lane" in said:
            event = {key: value for key, value in said["event"].items() if key not in {"lane", "evidence"}}
            entries.append({**event, "step": said["lane"]})
            decided.append({key: said[key] for key in ("row", "action", "counters", "signal")} | {"step": said["lane"]})
    signals = tmp_path / "signals.json"
    signals.write_text(json.dumps(entries), encoding="utf-8")
    walk = project.document("simulate", "--recipe", "own", "--signals", str(signals))
    simulated = [{key: one[key] for key in decided[0]} for one in walk["decisions"] if "row" in one]
    assert simulated == decided
    assert "step_unsettled a" in project.redfirst("simulate", "--recipe", "own", "--signals", str(signals)).stdout
    shown = project.document("show", "run-own")
    assert (walk["outcome"], walk["exit_code"]) == (shown["outcome"], shown["exit_code"]) == ("partial", 8)
    assert walk["settled"] == {one["step"]: one["checkpoint"] for one in shown["steps"]}
