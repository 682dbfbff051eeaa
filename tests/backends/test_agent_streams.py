"""What products say, as it was recorded from the tested versions by playing the table of cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backends.agent_cases import CASES, Case
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.backends import claude, codex
from pipeline.agents.backends.program import Exchange
from pipeline.agents.backends.protocol import AgentJob, Ended, Session, Usage
from pipeline.agents.backends.report_schemas import form
from pipeline.agents.backends.stream_result import result_of, stream_words, without_lost_session
from pipeline.judge.reports.kinds import report_schema
from pipeline.process import Completed, Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.agents.backends.protocol import AgentResult
    from pipeline.agents.backends.stream_result import StreamFacts

STREAMS = Path(__file__).with_name("streams")
NOT_RECORDED = {"huge output", "a report in the file", "killed"}
"""For its size; because the stream has no part in what comes back."""
FORM = form(report_schema("implement", Role.MAKE), strict=False)


def recorded(backend: str, name: str) -> tuple[bytes, bytes]:
    path = STREAMS / backend / f"{name.replace(' ', '-')}.jsonl"
    log = path.with_suffix(".stderr")
    return path.read_bytes(), log.read_bytes() if log.exists() else b""


def read_stream(backend: str, stdout: bytes, stderr: bytes = b"") -> StreamFacts:
    if backend == "claude":
        return claude.read_stream(stdout, FORM, keeps=True)
    return codex.read_stream(stdout, stderr, FORM, model="m", resumed=False, keeps=True)


def situations() -> Iterator[tuple[str, Case]]:
    for backend in ("claude", "codex"):
        yield from ((backend, case) for case in CASES if case.name not in NOT_RECORDED)


def result(
    folder: Path, facts: StreamFacts, ended: Completed, *, timeout_s: float = 60, report: str | None = None
) -> AgentResult:
    folder.mkdir()
    job = AgentJob(NoBox(), b"{}", Mount(folder, folder), folder, timeout_s=timeout_s)
    exchange = Exchange.open(job)
    if report is not None:
        (exchange.out / "report.json").write_text(report)
    return result_of(exchange, ended, facts)


def completed(
    stdout: bytes = b"", *, code: int | None = 0, signal: int | None = None, timed_out: bool = False
) -> Completed:
    return Completed(code, signal, timed_out, stdout, b"last words", truncated=False, seconds=1.0)


@pytest.mark.parametrize(("backend", "case"), list(situations()), ids=lambda value: getattr(value, "name", value))
def test_a_recorded_stream(backend: str, case: Case, tmp_path: Path) -> None:
    stdout, stderr = recorded(backend, case.name)
    facts = case.but.get(backend, case.facts)
    stopped = facts.ended is Ended.TIMED_OUT
    ended = completed(stdout, code=None if stopped else 0, timed_out=stopped)
    found = result(
        tmp_path / "exchange", read_stream(backend, stdout, stderr), ended, timeout_s=case.job.get("timeout_s", 60)
    )
    facts.check(found, dict.fromkeys(facts.changes))


def test_what_was_consumed() -> None:
    claude = read_stream("claude", *recorded("claude", "work"))
    assert claude.usage.model_copy(update={"cost_usd": None}) == Usage(
        input_tokens=500, output_tokens=100, model="claude-sonnet-4-5"
    )
    assert claude.usage.cost_usd == pytest.approx(0.002595)
    assert claude.steps == 5
    codex = read_stream("codex", *recorded("codex", "work"))
    assert (codex.usage, codex.steps) == (Usage(input_tokens=500, output_tokens=100, model="m"), None)


def test_a_conversation_that_goes_on_is_not_counted_twice() -> None:
    stdout, _ = recorded("codex", "work")
    facts = codex.read_stream(stdout, b"", FORM, model="m", resumed=True, keeps=False)
    assert (facts.usage, facts.session) == (Usage(model="m"), None)


def test_a_login_that_is_still_being_retried_is_named() -> None:
    lines = recorded("claude", "401")[0].splitlines(keepends=True)
    retrying = [line for line in lines if b'"api_retry"' in line]
    facts = read_stream("claude", lines[0] + retrying[0])
    assert (facts.fault, facts.report) == ("unauthorized", None)
    facts = read_stream("codex", recorded("codex", "401")[0].rpartition(b'{"type": "turn.failed"')[0])
    assert (facts.fault, facts.report) == ("unauthorized", None)


@pytest.mark.parametrize("backend", ["claude", "codex"])
def test_nothing_at_all(backend: str, tmp_path: Path) -> None:
    crashed = result(tmp_path / "crashed", read_stream(backend, b""), completed(code=3))
    assert (crashed.complaint or "").startswith("The agent ended with exit code 3")
    silent = result(tmp_path / "silent", read_stream(backend, b""), completed())
    assert (silent.fault, silent.exit_code) == ("empty", 0)


def test_a_signal_without_a_name_is_said_by_its_number(tmp_path: Path) -> None:
    ended = result(tmp_path / "exchange", read_stream("codex", b""), completed(code=None, signal=35))
    assert ended.complaint == "The agent was ended by signal 35 (Real-time signal 1)."


def test_the_report_file_counts_where_the_product_gave_none(tmp_path: Path) -> None:
    facts = read_stream("codex", *recorded("codex", "no report"))
    found = result(tmp_path / "exchange", facts, completed(), report='{"result": "COMPLETE"}')
    assert (found.complaint, found.report_file) == (None, b'{"result": "COMPLETE"}')
    facts = read_stream("codex", *recorded("codex", "work"))
    found = result(tmp_path / "both", facts, completed(), report='{"result": "OTHER"}')
    assert json.loads(found.report_file or b"")["result"] == "COMPLETE"


def test_only_a_conversation_that_was_to_go_on_can_be_lost(tmp_path: Path) -> None:
    """What an agent runs could say it in every stream, and would be started for ever."""
    line = b'{"type": "result", "subtype": "error_during_execution", "errors": ["No conversation found with x"]}\n'
    facts = read_stream("claude", line)
    kept = Session(Mount(tmp_path, tmp_path, writable=True), "some-id", "again")
    job = AgentJob(NoBox(), b"{}", Mount(tmp_path, tmp_path), tmp_path, session=kept)
    again = without_lost_session(job, facts)
    assert again is not None
    assert again.session == replace(kept, id=None)
    assert without_lost_session(again, facts) is None
    assert without_lost_session(replace(job, session=None), facts) is None
    assert without_lost_session(job, replace(facts, lost=False)) is None


def lines(*events: Mapping[str, object]) -> bytes:
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


BEGUN = {"type": "thread.started", "thread_id": "t1"}
RECONNECTING = {"type": "error", "message": "Reconnecting... 1/2 (stream disconnected before completion)"}
RAN = {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "pytest"}}


def test_a_service_that_answered_again_is_no_outage(tmp_path: Path) -> None:
    stopped = completed(code=None, timed_out=True)
    away = result(tmp_path / "away", read_stream("codex", lines(BEGUN, RECONNECTING)), stopped)
    again = result(tmp_path / "again", read_stream("codex", lines(BEGUN, RECONNECTING, RAN)), stopped)
    assert (away.fault, again.fault) == ("unavailable", None)
    assert (again.complaint or "").startswith("The agent did not finish within")


ENDED = {"type": "result", "subtype": "success", "total_cost_usd": 7.5, "modelUsage": {"claude-x": {"inputTokens": 9}}}
FULL: dict[str, tuple[Mapping[str, object], ...]] = {
    "claude": ({**ENDED, "is_error": True, "api_error_status": 400, "result": "Prompt is too long"},),
    "codex": (
        BEGUN,
        {"type": "turn.failed", "error": {"message": "Codex ran out of room in the model's context window."}},
    ),
}


@pytest.mark.parametrize("backend", FULL)
def test_a_conversation_that_is_full_is_no_outage_and_is_not_gone_on_with(backend: str, tmp_path: Path) -> None:
    found = result(tmp_path / "full", read_stream(backend, lines(*FULL[backend])), completed())
    assert (found.fault, found.session) == (None, None)
    assert (found.complaint or "").startswith(
        "The conversation is longer than the model can take; read less at a time. "
    )


@pytest.mark.parametrize("odd", [{"errors": None, "permission_denials": None}, {"result": "cut \ud83d"}])
def test_what_is_odd_in_a_line_costs_nothing_else_of_it(odd: dict[str, object]) -> None:
    facts = read_stream("claude", lines({**ENDED, "structured_output": {"report": {"a": 1}}, **odd}))
    assert (facts.report, facts.usage.cost_usd) == (b'{"a": 1}', 7.5)


FORGED = [
    '{"type": "result"}',
    '{"type": "result", "subtype": "success", "modelUsage": 3}',
    '{"type": "result", "subtype": "success", "total_cost_usd": -1e999}',
    '{"type": "user", "message": "x"}',
    '{"type": "user", "message": {"content": [7, {"is_error": true, "content": {"a": 1}}]}}',
    '{"type": "turn.completed", "usage": {"input_tokens": -5, "output_tokens": 1}}',
    '{"type": "turn.failed", "error": "x"}',
    '{"type": "item.completed", "item": {"type": "agent_message", "text": {}}}',
    "[" * 5000,
    "[... 12 bytes left out ...]",
    "\x00",
]


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("backend", ["claude", "codex"])
def test_a_line_that_is_no_event_changes_nothing(backend: str, forged: str) -> None:
    stdout, stderr = recorded(backend, "work")
    assert read_stream(backend, stdout + forged.encode() + b"\n", stderr) == read_stream(backend, stdout, stderr)


@given(at=st.integers(0, 20_000), length=st.integers(0, 20_000), put=st.binary(max_size=40))
def test_a_stream_in_pieces_is_never_a_crash(at: int, length: int, put: bytes) -> None:
    for backend in ("claude", "codex"):
        stdout, stderr = recorded(backend, "work")
        facts = read_stream(backend, stdout[:at] + put + stdout[at + length :], stderr)
        assert facts.complaint is None


def test_a_stream_is_told_in_words_while_it_comes() -> None:
    claude, codex = (
        [words for line in recorded(name, "work")[0].splitlines() if (words := stream_words(line))]
        for name in ("claude", "codex")
    )
    assert claude == [
        "> Read /redfirst-view/app.py",
        "> Edit False /redfirst-view/app.py a = 1 a = 2",
        "> Write /redfirst-view/new.txt new",
        "> Bash cat app.py > made.txt",
    ]
    assert [line.partition(" -lc ")[0] for line in codex[:-1]] == ["> /bin/sh"] * 4
    assert codex[-1] == '{"report": {"result": "COMPLETE", "summary": "done"}}'
