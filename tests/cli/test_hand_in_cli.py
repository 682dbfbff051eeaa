"""`redfirst hand-in`: which desk is meant, what is refused before anything is handed in, and what is said."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forked
import pytest
from cli import stories
from evidence.observed import observed
from runs.real import alone, begin, event, make_repository

from pipeline.agents.backends.desk import POINTER, Asked, Desk
from pipeline.agents.backends.layout import Difference, manifest_of
from pipeline.agents.dispatch.desk_gate import rules_of
from pipeline.agents.dispatch.gate import Policy
from pipeline.app.human_answer import ReportForm
from pipeline.config.user_folders import state_folder
from pipeline.judge.evidence.observation import Ended
from pipeline.judge.policy.rights import Action, Grant, TestScope, Writes
from pipeline.judge.reports.reviews import ToAnswer
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import Task
from pipeline.outcomes import Reason
from pipeline.progress import Activity
from pipeline.run.activity_file import write_now
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.info import DispatchRecord, DispatchResult
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.run.store import state_of_run
from pipeline.trees import remove_tree
from pipeline.vocabulary import Question, Role, Signal

if TYPE_CHECKING:
    from pipeline.repo import Repository

pytestmark = pytest.mark.slow

REDFIRST = Path(sys.executable).with_name("redfirst")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project", {"app.py": "a = 1\n"})
    monkeypatch.chdir(made.worktree)
    begin(made, "run-GAL-1")
    return made


def lay_out(
    repository: Repository,
    role: Role = Role.MAKE,
    kind: str = "implement",
    *,
    number: int = 3,
    question: Question | None = None,
    without: tuple[str, ...] = ("answers",),
    to_answer: tuple[ToAnswer, ...] = (),
) -> Desk:
    """Lay out a desk as the backend does for a dispatch of run-GAL-1 that waits."""
    dispatch = f"{number:03}-step-{role}"
    exchange = repository.worktree / ".workflow/run-GAL-1/dispatches" / dispatch / "exchange"
    exchange.mkdir(parents=True)
    desk = Desk(state_of_run(state_folder(os.environ), repository, "run-GAL-1") / "sessions" / dispatch)
    desk.files.mkdir(parents=True)
    (desk.files / "app.py").write_text("a = 1\n")
    desk.put(desk.base, json.dumps(manifest_of(desk.files)))
    asked = Asked(
        run_id="run-GAL-1",
        dispatch=dispatch,
        role=role,
        kind=kind,
        question=question,
        writable=role in {Role.MAKE, Role.TEST},
        token="t",
        base="b",
        exchange=str(exchange),
        without=without,
        to_answer=to_answer,
    )
    desk.ask(asked)
    desk.put(desk.shown, asked.token)
    (exchange / POINTER).write_text(str(desk.folder))
    return desk


def lay_rules(repository: Repository, desk: Desk, *paths: str) -> None:
    """Let @make change these paths only, over what lies at the desk now, `kept.py`, and a name that is no UTF-8."""
    (desk.files / "kept.py").write_text("k = 1\n")
    (desk.files / "caf\udce9.txt").write_text("x\n")
    desk.put(desk.base, json.dumps(manifest_of(desk.files)))
    asked = desk.asked()
    assert asked is not None
    desk.ask(asked.model_copy(update={"write": tuple(f"{path} (modify)" for path in paths)}))
    grants = tuple(Grant(path, Action.MODIFY if (desk.files / path).exists() else Action.CREATE) for path in paths)
    checkout = PrivateCheckout(repository, desk.folder)
    desk.put(
        desk.rules,
        rules_of(
            Policy(Writes.TASK, grants, TestScope(known=frozenset({"caf\udce9.txt"}))), repository, "HEAD", checkout
        ),
    )


def redfirst(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return forked.run([str(REDFIRST), *argv], cwd=cwd or Path.cwd(), env=os.environ, timeout=300)


def hand_in(*argv: str, cwd: Path | None = None, code: int = 0) -> dict[str, Any]:
    done = redfirst("hand-in", *argv, "--json", cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def message(*argv: str) -> str:
    return str(hand_in(*argv, code=2)["error"]["message"])


def next_of_show() -> list[str]:
    done = redfirst("show", "GAL-1")
    return [line.removeprefix("  next").strip() for line in done.stdout[done.stdout.index("  next") :].splitlines()]


@pytest.mark.broad
def test_what_changed_is_said_and_that_nobody_drives_the_run(repository: Repository) -> None:
    desk = lay_out(repository)
    (desk.files / "app.py").unlink()
    (desk.files / "new.py").write_text("x")
    assert next_of_show()[0] == "redfirst desk run-GAL-1 --role make"
    told = hand_in("--verdict", "COMPLETE")
    assert next_of_show()[0] == "redfirst resume run-GAL-1   # takes what is handed in"
    assert told["changes"] == [{"path": "new.py", "kind": "changed"}, {"path": "app.py", "kind": "removed"}]
    assert (told["ok"], told["waiting"], told["dispatch"]) == (True, False, "003-step-make")
    assert json.loads(desk.report.read_text()) == {"result": "COMPLETE"}


def ask_anew(desk: Desk, **changed: str | None) -> None:
    """Ask something else at a desk, as a run does that asks again."""
    asked = desk.asked()
    assert asked is not None
    desk.ask(asked.model_copy(update={"token": "another", **changed}))


@pytest.mark.parametrize("how", [(), ("--print",)])
def test_another_question_than_was_shown_is_not_answered(repository: Repository, how: tuple[str, ...]) -> None:
    desk = lay_out(repository, Role.CHECK, "judge", question=Question.TESTS)
    desk.put(desk.prompt, "# What is asked: judge\n\nLook.\n")
    ask_anew(desk, task="2")
    document = hand_in("--role", "check", "--verdict", "ACCEPTABLE", code=2)
    assert not desk.report.exists()
    assert document["error"]["message"] == (
        "Nothing was handed in: what is asked now was not shown to you yet. It is 003-step-check: judge (tests), "
        "task 2. Look at it, then hand in."
    )
    assert document["error"]["safe_next_actions"] == ["redfirst desk run-GAL-1 --role check"]
    assert redfirst("desk", "run-GAL-1", "--role", "check", *how).returncode == 0
    assert hand_in("--role", "check", "--verdict", "ACCEPTABLE")["dispatch"] == "003-step-check"


def test_who_stands_at_a_desk_has_seen_what_is_asked_there_until_it_is_asked_again(repository: Repository) -> None:
    desk = lay_out(repository)
    ask_anew(desk, reask="the report lacks a field")
    refused = hand_in("--verdict", "COMPLETE", cwd=desk.files, code=2)
    assert "implement, again, since the last answer did not count" in refused["error"]["message"]
    desk.shown.unlink()
    (desk.files / "app.py").write_text("a = 2\n")
    ask_anew(desk, reask=None)
    assert hand_in("--verdict", "COMPLETE", cwd=desk.files)["dispatch"] == "003-step-make"


@pytest.mark.parametrize("name", ["run-GAL-1", "GAL-1"])
def test_at_a_desk_its_run_may_be_named_as_the_prompt_does(repository: Repository, name: str) -> None:
    desk = lay_out(repository)
    told = hand_in("run-GAL-2", "--verdict", "COMPLETE", cwd=desk.files, code=2)["error"]["message"]
    assert "runs: none yet" not in told, "it is looked for where the run of the desk is"
    assert hand_in(name, "--role", "make", "--verdict", "COMPLETE", cwd=desk.files)["dispatch"] == "003-step-make"


def test_at_a_desk_each_other_command_is_about_its_run(repository: Repository) -> None:
    desk = lay_out(repository)
    for words in ([], ["show"]):
        assert "run-GAL-1" in redfirst(*words, cwd=desk.files).stdout, words


@pytest.mark.broad
def test_a_desk_whose_answer_was_taken_leads_back_to_the_run(repository: Repository) -> None:
    desk = lay_out(repository)
    lay_out(repository, number=4, role=Role.CHECK, kind="review-plan")
    (repository.worktree / ".workflow/run-GAL-1/dispatches/003-step-make/result.json").write_text("{}")
    refused = hand_in("--verdict", "ACCEPTABLE", cwd=desk.files, code=2)["error"]
    assert "003-step-make is answered: this desk is done" in refused["message"]
    (action,) = refused["safe_next_actions"]
    command = f"{action} --print".replace("redfirst desk", f"{REDFIRST} desk")
    done = subprocess.run(["sh", "-c", command], cwd=desk.files, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("004-step-check/desk")
    assert not desk.report.exists()
    named = hand_in("run-GAL-1", "--role", "check", "--verdict", "ACCEPTABLE", cwd=desk.files)
    assert named["dispatch"] == "004-step-check", "who names another role is at the wrong desk, and that is no matter"


@pytest.mark.broad
def test_a_desk_that_is_gone_is_named_with_what_brings_it_back(repository: Repository) -> None:
    remove_tree(lay_out(repository).folder)
    told = hand_in("--verdict", "COMPLETE", code=2)["error"]
    assert "The desk of 003-step-make is gone. To have it laid out again, go on with the run" in told["message"]
    assert told["safe_next_actions"] == ["redfirst resume run-GAL-1"]
    Run.load(repository.worktree / ".workflow/run-GAL-1", driving=True).decide(
        event(Signal.PRECONDITION, reason=Reason.DIRTY_TREE)
    )
    assert "Nothing waits for a person" in message("--verdict", "COMPLETE")


@pytest.mark.broad
def test_of_several_desks_one_must_be_named(repository: Repository) -> None:
    lay_out(repository, Role.CHECK, "review-plan")
    lay_out(repository, Role.SIMPLIFY, "review-plan", number=4)
    error = hand_in("--verdict", "BLOCK", code=2)["error"]
    assert error["safe_next_actions"] == [f"redfirst hand-in run-GAL-1 --role {role}" for role in ("check", "simplify")]
    assert hand_in("GAL-1", "--role", "check", "--verdict", "acceptable")["report"] == {"verdict": "ACCEPTABLE"}


@pytest.mark.parametrize(
    ("said", "verdict"), [("block", "BLOCK"), ("NEEDS_WORK", "NEEDS WORK"), ("Needs-work", "NEEDS WORK")]
)
@pytest.mark.broad
def test_a_verdict_is_known_by_its_words_and_refused_where_it_would_hold_nothing_up(
    repository: Repository, said: str, verdict: str, tmp_path: Path
) -> None:
    lay_out(repository, Role.CHECK, "review-plan")
    refused = message("--verdict", said)
    assert "would count as ACCEPTABLE" in refused
    assert f"{verdict} needs a finding" in refused
    assert '"evidence": "..."' in refused
    finding = {"severity": "HIGH", "title": "it fails", "location": "a.py:1", "problem": "x", "risk": "y"}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"verdict": said.upper(), "findings": [{**finding, "suggestion": "z"}]}))
    told = hand_in("--report", str(report))
    assert told["report"]["verdict"] == verdict
    assert told["remarks"] == ["'it fails' (HIGH) counts as MEDIUM: it has no evidence"]


@pytest.mark.broad
def test_a_re_review_answers_for_each_open_blocker(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository, Role.CHECK, "review-plan")
    asked = desk.asked()
    assert asked is not None
    folder = Path(asked.exchange).parent / "artifacts/open_findings"
    folder.mkdir(parents=True)
    (folder / "open.md").write_text("# Open findings\n\n### plan-1-01 [HIGH] It fails\n\n### plan-1-02 [LOW] A word\n")
    report = tmp_path / "report.json"
    report.write_text('{"verdict": "ACCEPTABLE"}')
    told = message("--report", str(report))
    assert "plan-1-01 has no answer in `prior`" in told
    assert "plan-1-02" not in told
    assert not desk.report.exists()
    resolved = [{"id": f"plan-1-0{number}", "status": "resolved"} for number in (1, 2)]
    assert hand_in("--verdict", "acceptable")["report"] == {"verdict": "ACCEPTABLE", "prior": resolved}


CRITERIA = (
    ToAnswer(task="1", id="C1", text="a"),
    ToAnswer(task="1", id="C2", text="b"),
    ToAnswer(task="1", id="faults", text="no test notices a fault in app"),
)


@pytest.mark.broad
def test_a_review_answers_for_what_it_is_asked_for_and_its_form_has_nothing_else(
    repository: Repository, tmp_path: Path
) -> None:
    first = lay_out(repository, Role.CHECK, "review-result", without=("prior",), to_answer=CRITERIA)
    form = form_of(first)
    assert "- task: 1\n    id: C2\n" in form
    assert "task 1, faults: no test notices" in form
    assert "prior:" not in form
    first.put(first.prompt, "# What is asked: review-result\n\nLook.\n")
    assert "`--verdict ACCEPTABLE` alone" not in desk_command().stdout
    assert "task 1, faults" in message("--verdict", "acceptable"), "nobody says for you why no test has to notice"
    again = lay_out(repository, Role.CHECK, "review-result", number=4, without=("criteria",))
    tasks = Path(asked_at(again).exchange).parent / "artifacts/tasks"
    tasks.mkdir(parents=True)
    body = "# Task 1\n\n## Acceptance Criteria\n\n- [ ] C1: a\n- [ ] C2: b\n"
    (tasks / "task-1.md").write_text(task_md(Task(id="1", title="t", files=(), test_files=(), body=body)))
    assert "criteria" not in form_of(again)
    report = tmp_path / "report.json"
    report.write_text('{"verdict": "ACCEPTABLE"}')
    assert hand_in("--report", str(report), cwd=again.files)["report"] == {"verdict": "ACCEPTABLE"}


def test_work_that_was_done_before_is_complete_with_nothing_more(repository: Repository) -> None:
    desk = lay_out(repository)
    lay_rules(repository, desk, "app.py")
    refused = "COMPLETE, and nothing is changed at the desk"
    assert refused in message("--verdict", "COMPLETE")
    lay_artifact(desk, "diagnosis", "# Diagnosis\n")
    assert hand_in("--verdict", "COMPLETE")["changes"] == []


def asked_at(desk: Desk) -> Asked:
    asked = desk.asked()
    assert asked is not None
    return asked


def form_of(desk: Desk) -> str:
    return ReportForm(desk, asked_at(desk), Difference((), (), {}, {})).opened()


@pytest.mark.broad
def test_what_the_gate_would_refuse_costs_no_try(repository: Repository) -> None:
    desk = lay_out(repository)
    lay_rules(repository, desk, "app.py")
    assert "COMPLETE, and nothing is changed at the desk" in message("--verdict", "COMPLETE")
    (desk.files / "app.py").write_text("a = 2\n")
    (desk.files / "test_app.py").write_text("x = 1\n")
    (desk.files / "kept.py").unlink()
    error = hand_in("--verdict", "COMPLETE", code=2)["error"]
    assert not desk.report.exists()
    told = {one["path"]: (one["rule"], one["put_back"]) for one in error["details"]["refused"]}
    assert told == {
        "test_app.py": ("test-file", "rm test_app.py"),
        "kept.py": ("deletion-not-named", "git checkout -- kept.py"),
    }
    done = redfirst("hand-in", "--verdict", "COMPLETE", cwd=desk.files)
    assert "no try is used up" in done.stderr
    assert "  - rm test_app.py   # test-file: " in done.stderr
    (desk.files / "test_app.py").unlink()
    (desk.files / "kept.py").write_text("k = 1\n")
    (desk.files / "new.py").write_text("n = 1\n")
    error = hand_in("--verdict", "COMPLETE", code=2)["error"]
    assert error["message"].endswith("say so in the report instead: its field `needs` asks for files.")
    assert [one["why"].rpartition(": ")[2] for one in error["details"]["refused"]] == ["app.py (modify)"]
    (desk.files / "new.py").unlink()
    assert [one["path"] for one in hand_in("--verdict", "COMPLETE")["changes"]] == ["app.py"]


@pytest.mark.broad
def test_what_tools_build_at_a_desk_is_not_handed_in(repository: Repository) -> None:
    desk = lay_out(repository)
    (desk.files / ".gitignore").write_text("/target\nnode_modules/\n*.log\n")
    desk.put(desk.base, json.dumps(manifest_of(desk.files)))
    lay_rules(repository, desk, "app.py", "named.log")
    built = ("target/debug/app", "lib/node_modules/a/index.js", "app.log", "__pycache__/app.pyc", "cache/blob")
    for name in (*built, "named.log"):
        (desk.files / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.files / name).write_text("built\n")
    (desk.files / "cache/CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    told = hand_in("--verdict", "COMPLETE")
    assert [one["path"] for one in told["changes"]] == ["named.log"]
    assert told["built"] == ["__pycache__/", "app.log", "cache/", "lib/", "target/"]


def test_a_run_that_asks_nobody_at_the_moment_is_told_to_be_at_work(repository: Repository) -> None:
    folder = repository.worktree / ".workflow/run-GAL-1"
    run = Run.load(folder, driving=False)
    write_now(folder, run.journal.epoch, [Activity("the tests before any change", 0.0, datetime.now(UTC))])
    with contextlib.ExitStack() as held:
        held.callback(FileLease.take(folder).release)
        told = hand_in("GAL-1", "--verdict", "COMPLETE", code=2)["error"]
    assert told["message"].startswith(
        "Nobody is asked at the moment: run-GAL-1 is at work at sanity (phase 1): the tests before any change."
    )
    assert told["safe_next_actions"] == ["redfirst desk run-GAL-1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "Cannot read"),
        ("{", "not JSON"),
        ('{"result": "INCOMPLETE"}', "blocking_issue"),
        ('{"result": "COMPLETE", "sumary": ""}', "sumary"),
        ('{"result": "FINISHED"}', "COMPLETE"),
        ('{"result": "INCOMPLETE", "blocking_issue": "..."}', "At /blocking_issue nothing is filled in"),
    ],
)
@pytest.mark.broad(but_first=1)
def test_a_report_that_is_wrong_is_not_handed_in(
    repository: Repository, tmp_path: Path, text: str | None, words: str
) -> None:
    desk = lay_out(repository)
    report = tmp_path / "report.json"
    if text is not None:
        report.write_text(text)
    assert words in message("--report", str(report))
    assert not desk.report.exists()


@pytest.mark.broad
def test_who_cannot_give_up_is_told_what_to_do(repository: Repository) -> None:
    lay_out(repository, Role.CHECK, "review-plan")
    assert "redfirst abandon" in message("--give-up", "why")
    assert "one of --report" in message("--give-up", "why", "--verdict", "BLOCK")


def test_what_a_role_may_not_change_is_left_out_and_named(repository: Repository) -> None:
    desk = lay_out(repository, Role.CHECK, "review-plan")
    (desk.files / "app.py").write_text("b = 1\n")
    told = hand_in("--verdict", "ACCEPTABLE")
    assert (told["changes"], told["left_out"]) == ([], ["app.py"])


@pytest.mark.broad
def test_what_no_run_can_take_over_is_named_before(repository: Repository) -> None:
    desk = lay_out(repository)
    os.mkfifo(desk.files / "pipe")
    assert "pipe (no file, folder or link)" in message("--verdict", "COMPLETE")
    assert not desk.report.exists()


def test_without_a_terminal_or_an_option_nothing_is_asked(repository: Repository) -> None:
    lay_out(repository)
    assert message().startswith("There is no terminal to ask you at, so no editor opens.")


def at_a_terminal(*argv: str, typed: bytes = b"", cwd: Path | None = None, **env: str) -> tuple[int, str]:
    """Run redfirst at a terminal of 80 columns; return its exit code and what it printed."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    os.write(ours, typed)
    seen = bytearray()
    with subprocess.Popen(
        [str(REDFIRST), *argv],
        cwd=cwd,
        env={**os.environ, "TERM": "xterm", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as program:
        os.close(theirs)
        with contextlib.suppress(OSError):  # nobody has the other end any more
            while chunk := os.read(ours, 4096):
                seen += chunk
    os.close(ours)
    return program.returncode, seen.decode().replace("\r\n", "\n")


def editor(tmp_path: Path, *edits: str) -> str:
    """Return a command that makes one of these edits (Python on `text`) each time, and keeps what it was shown."""
    script = tmp_path / "an editor.py"
    script.write_text(
        "import sys, pathlib\n"
        f"file, edits = pathlib.Path(sys.argv[1]), {edits!r}\n"
        f"seen = pathlib.Path({str(tmp_path)!r})\n"
        "number = len(list(seen.glob('seen-*')))\n"
        "text = file.read_text()\n"
        "(seen / f'seen-{number}').write_text(text)\n"
        "exec(edits[min(number, len(edits) - 1)])\n"
        "file.write_text(text)\n"
    )
    return shlex.join([sys.executable, str(script)])


def test_at_a_terminal_an_editor_opens_on_a_form_until_it_counts(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository)
    wrong = "text = text.replace('result:\\n', 'result: incomplete\\nattempts:\\n  - looked for it\\n', 1)"
    right = "text = text.replace('blocking_issue:\\n', 'blocking_issue: |-\\n  no seam:\\n  there is none\\n')"
    code, told = at_a_terminal("hand-in", EDITOR="false", VISUAL=editor(tmp_path, wrong, right))
    assert code == 0, told
    assert "is marked with #! in the form" in told
    assert "handed in 003-step-make" in told
    assert "#! this key is required\nblocking_issue:\n" in (tmp_path / "seen-1").read_text()
    assert json.loads(desk.report.read_text()) == {
        "result": "INCOMPLETE",
        "attempts": ["looked for it"],
        "blocking_issue": "no seam:\nthere is none",
    }


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("pass", "The form says nothing yet."),
        ("text = ''", "The form says nothing yet."),
        ("text = text.replace('result:\\n', 'result: done\\n')", "The form was left as it was"),
        ("sys.exit(3)", "The editor"),
    ],
)
@pytest.mark.broad
def test_a_form_that_says_nothing_hands_nothing_in(repository: Repository, tmp_path: Path, edit: str, why: str) -> None:
    desk = lay_out(repository)
    code, told = at_a_terminal("hand-in", VISUAL=editor(tmp_path, edit))
    assert code == 2
    assert f"Nothing was handed in. {why}" in " ".join(told.split())
    assert not desk.report.exists()


def test_a_form_that_was_left_says_again_what_is_wrong_in_it(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository)
    desk.form.write_text("result: incomplete\nattempts:\n  - looked: for it: here\n", encoding="utf-8")
    code, _ = at_a_terminal("hand-in", VISUAL=editor(tmp_path, "sys.exit(3)"))
    assert code == 2
    assert "#! this cannot be read: mapping values are not allowed" in desk.form.read_text(encoding="utf-8")


@pytest.mark.broad
def test_a_form_in_another_encoding_is_opened_again_and_kept(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository)
    theirs = b"result: incomplete\nblocking_issue: caf\xe9\n"
    desk.form.write_bytes(theirs)
    code, told = at_a_terminal("hand-in", VISUAL=editor(tmp_path, "sys.exit(3)"))
    assert code == 2, told
    assert "blocking_issue: caf\ufffd" in desk.form.read_text(encoding="utf-8")
    assert [path.read_bytes() for path in desk.folder.glob("form.old-*")] == [theirs]


@pytest.mark.broad
def test_open_findings_stand_in_the_form_and_files_are_judged_before(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository, Role.CHECK, "review-plan")
    asked = desk.asked()
    assert asked is not None
    folder = Path(asked.exchange).parent / "artifacts/open_findings"
    folder.mkdir(parents=True)
    (folder / "open.md").write_text("### plan-1-01 [HIGH] It fails\n")
    word = "text = text.replace('verdict:\\n', 'verdict: Acceptable\\n', 1)"
    answer = "text = text.replace('status:\\n', 'status: resolved\\n')"
    code, told = at_a_terminal("hand-in", VISUAL=editor(tmp_path, word, answer))
    assert code == 0, told
    shown = (tmp_path / "seen-0").read_text()
    assert "#   plan-1-01 [HIGH] It fails\nprior:\n  - id: plan-1-01\n    status:\n" in shown
    assert json.loads(desk.report.read_text())["prior"] == [{"id": "plan-1-01", "status": "resolved"}]

    desk = lay_out(repository, number=4)
    lay_rules(repository, desk, "app.py")
    (desk.files / "other.py").write_text("x = 1\n")
    code, told = at_a_terminal("hand-in", "--role", "make", VISUAL=editor(tmp_path, "sys.exit('not asked')"))
    assert (code, "no try is used up" in " ".join(told.split())) == (2, True)


def drafted(
    repository: Repository, number: int, kind: str, report: dict[str, Any] | None, role: Role = Role.ORCHESTRATOR
) -> None:
    """Let a draft of run-GAL-1 be over; without a report it counts for nothing."""
    run = Run.load(repository.worktree / ".workflow/run-GAL-1", driving=True)
    name = f"{number:03}-{kind}-{role}"
    record = DispatchRecord(
        dispatch=name,
        number=number,
        step="plan",
        visit=number,
        resumes=0,
        role=role,
        kind=kind,
        question=None,
        task=None,
        attempt=number,
        reask=None,
        base_tree="0" * 40,
        backend="human",
    )
    run.start_dispatch(record)
    signal = Signal.MALFORMED if report is None else None
    result = DispatchResult(dispatch=name, report=report, signal=signal, base_tree="0" * 40)
    folder = run.folder / "dispatches" / name
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(result.model_dump_json(by_alias=True))
    run.finish_dispatch(result)


def lay_artifact(desk: Desk, name: str, text: str = "# Plan\n", file: str = "plan.md") -> None:
    asked = desk.asked()
    assert asked is not None
    folder = Path(asked.exchange).parent / "artifacts" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)


SHOWS: dict[str, Any] = {
    "verdict": "TESTS_READY",
    "tests": [{"id": "tests/test_app.py::test_a"}],
    "criteria": [{"id": "C1", "tests": ["tests/test_app.py::test_a"]}],
}


@pytest.mark.broad
def test_tests_that_are_written_again_begin_with_the_last_report(repository: Repository, tmp_path: Path) -> None:
    drafted(repository, 1, "write-tests", SHOWS, Role.TEST)
    drafted(repository, 2, "write-tests", {"verdict": "BLOCKED", "problem": "no file"}, Role.TEST)
    desk = lay_out(repository, Role.TEST, "write-tests", number=3)
    body = "## Acceptance Criteria\n\n- [ ] C1: it is a\n- [ ] C2: it is b\n"
    lay_artifact(desk, "task", task_md(Task(id="1", title="a", files=(), test_files=(), body=body)))
    lay_artifact(desk, "findings", "# RED measurement of task 1: ILLEGAL_RED\n\n- refused: it errs\n")
    answer = "text = text.replace('      - \\n    reason:', '    reason: an old one')"
    code, told = at_a_terminal("hand-in", VISUAL=editor(tmp_path, answer))
    assert code == 0, told
    seen = (tmp_path / "seen-0").read_text()
    assert "# What led here:\n#   RED measurement of task 1: ILLEGAL_RED\n#   - refused: it errs\n" in seen
    assert "It began with the report of 001-write-tests-test" in seen, "what was no report of tests is none to revise"
    second = {"id": "C2", "reason": "an old one"}
    assert json.loads(desk.report.read_text()) == {**SHOWS, "criteria": [*SHOWS["criteria"], second]}


@pytest.mark.broad
def test_without_an_editor_the_report_is_to_come_as_a_file(repository: Repository) -> None:
    desk = lay_out(repository)
    code, told = at_a_terminal("hand-in", TERM="dumb", EDITOR="")
    assert (code, desk.report.exists()) == (2, False), told
    assert "set VISUAL or EDITOR, or give --report FILE" in " ".join(told.split())


def test_a_wrong_id_of_a_test_is_refused_before_it_costs_a_try(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository, Role.TEST, "write-tests")
    old = {f"tests/test_{file}.py::test_{name}": Ended.PASSED for file in "ab" for name in ("both", f"only_{file}")}
    asked = desk.asked()
    assert asked is not None
    baseline = asked.run_folder / "evidence/baseline-full.json"
    baseline.parent.mkdir(exist_ok=True)
    baseline.write_text(observed(old).model_dump_json(by_alias=True))
    (desk.files / "tests").mkdir()
    (desk.files / "tests/test_new.py").write_text("def test_refuses_empty(): assert False\n")
    report = tmp_path / "report.json"

    def hand(*tests: str, code: int = 2) -> dict[str, Any]:
        shown = [{"id": "C1", "tests": tests}]
        report.write_text(json.dumps({"verdict": "TESTS_READY", "criteria": shown}))
        return hand_in("--report", str(report), code=code)

    said = hand("tests/test_new.py::test_refuses_emtpy")["error"]
    assert "names near it in the files here: test_refuses_empty." in said["message"]
    assert said["pointer"] == "/criteria/0/tests"
    assert "2 tests end in it: tests/test_a.py::test_both" in hand("test_both")["error"]["message"]
    assert not desk.report.exists()
    # as every name could be made while tests are collected, the same again is left to the run
    assert hand("tests/test_new.py::test_refuses_emtpy")["ok"] is False
    assert hand("tests/test_new.py::test_refuses_emtpy", code=0)["ok"] is True


def test_where_a_driver_is_gone_the_desk_says_that_the_run_is_to_go_on(repository: Repository) -> None:
    stories.interrupted(repository)
    for told in (desk_command().stderr, message("--verdict", "COMPLETE")):
        assert "run-GAL-1 is to go on first: what was answered is kept." in told
    assert "redfirst resume run-GAL-1" in desk_command().stderr


def desk_command(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return redfirst("desk", *argv, cwd=cwd)


@pytest.mark.broad
def test_desk_says_where_it_is_and_what_is_asked(repository: Repository) -> None:
    assert "Nothing waits for a person here" in desk_command().stderr
    desk = lay_out(repository)
    listed = "* a: one\n  two\n  three\n* `red`: `artifacts/red/r.md`\n  to turn green.\n"
    asked = f"# What is asked: implement\n\nMake `A task`\nabove.\n\n{listed}\n# This request: x\n"
    desk.put(desk.prompt, f"who you are\n\n{asked}")
    assert desk_command("--print").stdout == f"{desk.files}\n"
    shell = subprocess.run(
        ["sh", "-c", f'cd "$({shlex.quote(str(REDFIRST))} desk --print)" && pwd -P'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == f"{desk.files.resolve()}\n"
    told = desk_command("GAL-1").stdout
    lay_artifact(desk, "diagnosis", "# Diagnosis\n\nround() takes half a cent\nto the even neighbour.\n")
    why = "What led here:\n  Diagnosis\n  round() takes half a cent\n  to the even neighbour.\n"
    assert desk_command("GAL-1").stdout == f"{told}\n{why}"
    lay_artifact(desk, "findings", "# The review\n")
    lay_artifact(desk, "findings", "# The advice\n", "plan-simplify.md")
    assert "What led here:\n  The review\n  The advice\n" in desk_command("GAL-1").stdout, "what decides comes first"
    assert told.startswith("003-step-make of run-GAL-1: you play @make\ndesk: ~/.local/state/redfirst/runs/")
    request = (
        "# What is asked: implement\n\nMake `A task` in `../PROMPT.md`.\n\n* a: one two three\n"
        "* `red`: `../artifacts/red/r.md`: to turn green.\n\n# This request: x\n"
    )
    assert f"{request}\nEntries of the report's lists (`?`: may be left out):\n\n* " in told
    assert '* needs: {"path": text, "action"?: "modify" | "create" | "delete", "why"?: text}\n' in told
    assert "counts as MEDIUM" not in told
    assert "the word that decides (result): COMPLETE, " in told
    review = lay_out(repository, Role.CHECK, "review-plan", number=4)
    review.put(review.prompt, asked)
    told = desk_command("--role", "check").stdout
    assert '\n* findings: {"severity"?: "BLOCK" | "HIGH" | "MEDIUM" | "LOW", ' in told
    assert told.endswith("A BLOCK or HIGH finding without `evidence` counts as MEDIUM.\n")
    assert all(word in told.partition("(verdict): ")[2] for word in ("ACCEPTABLE", "NEEDS WORK", "BLOCK"))
    shutil.rmtree(review.folder)
    ruling = lay_out(repository, Role.CHECK, "judge", number=5, question=Question.NOT_TESTABLE)
    ruling.put(ruling.prompt, asked)
    assert "the word that decides (accepted): yes, no\n" in desk_command("--role", "check").stdout
    several = desk_command()
    assert several.returncode == 2
    assert "  - redfirst desk run-GAL-1 --role check\n" in several.stderr
    assert desk_command("--role", "make", "--print").stdout == f"{desk.files}\n"
    assert "No such desk waits here" in desk_command("--role", "test").stderr


def test_of_two_desks_of_a_role_the_task_says_which(repository: Repository) -> None:
    for number, task in ((6, "1"), (7, "2")):
        desk = lay_out(repository, Role.TEST, "write-tests", number=number)
        asked = desk.asked()
        assert asked is not None
        desk.ask(asked.model_copy(update={"task": task}))
        desk.put(desk.prompt, "# What is asked: write-tests\n")
    several = redfirst("desk", "--role", "test")
    assert several.returncode == 2
    commands = re.findall("  - redfirst (desk .*)", several.stderr)
    assert commands == [f"desk run-GAL-1 --role test --task {task}" for task in ("1", "2")]
    assert [redfirst(*each.split(), "--print").stdout.split("/")[-2] for each in commands] == [
        "006-step-test",
        "007-step-test",
    ]
    assert "Several desks wait" in redfirst("hand-in", "--role", "test", "--verdict", "BLOCKED").stderr


def test_desk_opens_a_shell_there(repository: Repository, tmp_path: Path) -> None:
    desk = lay_out(repository)
    desk.put(desk.prompt, "# What is asked: implement\n\nMake it pass.\n")
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\necho "in $(pwd -P)"\nexec redfirst desk\n')
    shell.chmod(0o700)
    code, told = at_a_terminal("desk", SHELL=str(shell), PATH=f"{REDFIRST.parent}:{os.environ['PATH']}")
    assert code == 0, told
    assert f"in {desk.files.resolve()}\n" in told
    assert 'desk: cd "$(redfirst desk run-GAL-1 --role make --print)"\n' in told, "the path would be broken"
    assert "You are at this desk already." in told
    assert "Nothing is handed in yet" in told


@pytest.mark.parametrize("name", ["d", "d" * 8, "d" * 200], ids=len)
@pytest.mark.broad
def test_folders_without_end_are_named_and_nothing_is_handed_in(repository: Repository, name: str) -> None:
    desk = lay_out(repository, Role.CHECK, "review-plan")
    here = os.open(desk.files, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir(name, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    try:
        told = hand_in("--verdict", "ACCEPTABLE", cwd=desk.files, code=2)
    finally:
        remove_tree(desk.files / name)  # pytest cannot
    assert told["error"]["message"].startswith(f"Nothing was handed in. {name}")
    assert not desk.report.exists()


@pytest.mark.broad
def test_a_file_without_end_is_not_read(repository: Repository) -> None:
    reader, writer = lay_out(repository, Role.CHECK, "review-plan", number=2), lay_out(repository)
    for desk in (reader, writer):
        os.truncate(os.open(desk.files / "big", os.O_CREAT | os.O_WRONLY), 2 << 40)
    begin = time.monotonic()
    assert hand_in("--verdict", "ACCEPTABLE", cwd=reader.files)["left_out"] == []
    report = writer.folder / "mine.json"
    report.write_text(json.dumps({"result": "COMPLETE", "summary": "done"}))
    told = hand_in("--report", str(report), cwd=writer.files, code=2)
    assert "big (2199023255552 bytes" in told["error"]["message"]
    assert time.monotonic() - begin < 20
