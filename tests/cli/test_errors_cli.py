from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import pytest
import typer

from pipeline.errors import UserError
from pipeline.faces.cli.errors import run_guarded, wants_json
from pipeline.faces.cli.schema import ErrorDocument, ErrorFacts
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = UserError(
    "The tree is dirty.",
    Reason.DIRTY_TREE,
    path="a.py",
    pointer="/x",
    details={"files": ["a.py"]},
    actions=("git stash", "git commit"),
)

app = typer.Typer()


@app.command()
def greet(name: Annotated[str, typer.Argument()], times: int = 1, code: int = 0) -> None:
    typer.echo(name * times)
    raise typer.Exit(code)


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def facts(text: str) -> ErrorFacts:
    return ErrorDocument.model_validate_json(text).error


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_what_a_person_can_mend_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(REFUSED), json=False) == 2
    assert capsys.readouterr() == ("", "redfirst: The tree is dirty.\n  - git stash\n  - git commit\n")


def test_with_json_stdout_is_the_error_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(REFUSED), json=True) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert facts(out) == ErrorFacts(
        kind=Reason.DIRTY_TREE,
        message="The tree is dirty.",
        path="a.py",
        pointer="/x",
        details={"files": ["a.py"]},
        safe_next_actions=("git stash", "git commit"),
    )


def test_a_lone_refusal_in_a_group_is_that_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    nested = ExceptionGroup("tasks", [ExceptionGroup("tasks", [REFUSED])])
    assert run_guarded(raising(nested), json=True) == 2
    assert facts(capsys.readouterr().out).kind is Reason.DIRTY_TREE


@pytest.mark.parametrize("json", [True, False])
def test_an_interrupt_exits_130(capsys: pytest.CaptureFixture[str], json: bool) -> None:
    for error in (KeyboardInterrupt(), typer.Abort()):
        assert run_guarded(raising(error), json=json) == 130
        out, err = capsys.readouterr()
        assert facts(out).kind is Reason.INTERRUPTED if json else "Interrupted" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name"),
        (["Ada", "--time", "2"], "--time"),
        (["Ada", "--times", "two"], "--times"),
        (["Ada", "Bob"], "Bob"),
    ],
)
def test_a_wrong_command_line_is_usage(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert run_guarded(lambda: app(words, standalone_mode=False), json=True) == 2
    told = facts(capsys.readouterr().out)
    assert told.kind is Reason.USAGE
    assert message in told.message
    assert told.safe_next_actions[0].endswith("--help")
    assert run_guarded(lambda: app(words, standalone_mode=False), json=False) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 3, 75])
def test_a_command_chooses_its_exit_code(capsys: pytest.CaptureFixture[str], code: int) -> None:
    assert run_guarded(lambda: app(["Ada", "--code", str(code)], standalone_mode=False), json=True) == code
    assert capsys.readouterr() == ("Ada\n", "")


def test_a_bug_leaves_a_private_log_and_says_where(
    capsys: pytest.CaptureFixture[str], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["redfirst", "run", "--set", "agents.env.KEY=s3cret", "--set=agents.test.env.A=s3cret"]
    )
    assert run_guarded(raising(ZeroDivisionError("by nought")), json=True) == 1
    told = facts(capsys.readouterr().out)
    assert told.kind == "internal"
    assert "ZeroDivisionError: by nought" in told.message
    (log,) = (state / "redfirst" / "log").iterdir()
    assert told.path == str(log)
    assert log.stat().st_mode & 0o777 == 0o600
    text = log.read_text()
    for fact in ("redfirst 0.", "python 3.", "pydantic 2.", "'--set'", "agents.env.KEY=***", "Traceback", "in call"):
        assert fact in text
    assert "s3cret" not in text


def test_a_bug_without_a_place_for_its_log_prints_the_trace(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    state.write_text("a file where the folder should be")
    assert run_guarded(raising(RuntimeError("oops")), json=True) == 1
    out, err = capsys.readouterr()
    assert facts(out).path is None
    assert "Traceback" in err


def test_a_full_disk_is_no_bug(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/journal.jsonl")
    assert run_guarded(raising(error), json=True) == 2
    told = facts(capsys.readouterr().out)
    assert (told.kind, told.path) == (Reason.DISK, "/x/journal.jsonl")
    assert not state.exists()


def test_a_reader_that_leaves_is_no_error() -> None:
    script = """
import sys
from pipeline.faces.cli.errors import run_guarded
def call():
    for number in range(100000):
        print("line", number)
sys.exit(run_guarded(call, json=False))
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line 0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show", "--json"], True),
        (["show"], False),
        (["explain", "make", "--", "tool", "--json"], False),
        (["--json", "--", "tool"], True),
    ],
)
def test_json_is_seen_before_any_parsing(words: list[str], expected: bool) -> None:
    assert wants_json(words) is expected
