"""`redfirst routes` and `redfirst simulate`, through the parser and the error handler that the program has."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest
import typer

from pipeline.faces.cli.errors import run_guarded, wants_json
from pipeline.faces.cli.routes import routes, simulate
from pipeline.matrix.routing.matrix import MATRIX

if TYPE_CHECKING:
    from pathlib import Path

WALK = '[OK, CLAIMED, DRAFTED, ACCEPTABLE, {signal: DRAFTED, tasks: [{id: "1"}]}, ACCEPTABLE, RED, GREEN]'


def run(*args: str) -> int:
    app = typer.Typer()
    app.command()(routes)
    app.command()(simulate)
    return run_guarded(lambda: app(list(args), standalone_mode=False), json=wants_json(args))


@pytest.fixture
def signals(tmp_path: Path) -> Path:
    path = tmp_path / "signals.yaml"
    path.write_text(WALK, encoding="utf-8")
    return path


def test_the_table_is_what_one_gets_without_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("routes") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "SANITY (1)"
    assert lines[1].split() == ["OK", "to", "ISSUE", "(2)"]
    assert max(map(len, lines)) < 140


@pytest.mark.parametrize("args", [("--format", "json"), ("--json",)])
def test_json_is_one_document(args: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("routes", *args) == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["rows"]) == len(MATRIX)
    assert captured.err == ""


def test_all_diagrams_come_as_markdown_and_one_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("routes", "--format", "mermaid") == 0
    assert capsys.readouterr().out.count("```mermaid\n") == 3
    assert run("routes", "--format", "mermaid", "--diagram", "phase7") == 0
    assert capsys.readouterr().out.startswith("stateDiagram-v2\n")


def test_a_diagram_needs_the_format_that_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("routes", "--diagram", "issue") == 2
    assert "--diagram issue needs --format mermaid" in capsys.readouterr().err


def test_a_walk_is_one_document_with_json(signals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "--signals", str(signals), "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["step"] == "final-review"
    assert captured.err == ""


def test_an_unknown_gate_is_refused(signals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "--signals", str(signals), "--approve", "plan,deploy") == 2
    assert "--approve: deploy is no approval point. Accepted: plan, split, commit." in capsys.readouterr().err


def test_an_entry_that_cannot_be_taken_is_an_error_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "signals.yaml"
    path.write_text("[OK, RED]", encoding="utf-8")
    assert run("simulate", "--signals", str(path), "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["path"], error["pointer"]) == ("usage", str(path), "/1/signal")
    assert "ISSUE (2) cannot take RED, only: CLAIMED" in error["message"]
    assert "CLAIMED" in error["details"]["accepted"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not UTF-8"])
def test_a_file_that_cannot_be_read_is_an_error(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "signals.yaml"
    if content is not None:
        path.write_bytes(content)
    assert run("simulate", "--signals", str(path)) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_example_of_the_help_works(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = (simulate.__doc__ or "").split("'")[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode()), encoding="utf-8"))
    assert run("simulate", "--signals", "-") == 0
    assert "plan_review 1/2" in capsys.readouterr().out
