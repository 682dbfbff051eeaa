"""A run is one trace, the same whenever it is sent (docs/how-to/notices.md)."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import forked
import pytest
from cli import stories
from kit import REDFIRST
from notices.listener import listening
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from runs.real import BEGAN, alone, make_repository

from pipeline.app.events import export, spans_of
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import DecisionMade, RunStarted
from pipeline.run.folder import Tail
from pipeline.run.journal_kinds import DispatchStarted, MeasuredTests

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

pytestmark = pytest.mark.slow
_KINDS = (RunStarted, DispatchStarted, MeasuredTests)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


def test_06_a_run_that_is_sent_twice_is_one_trace(repository: Repository) -> None:
    run = stories.finished(repository)
    with listening() as listener:
        listener.status = 200
        document = export(run.folder, listener.url, os.environ)
        argv, environ = [str(REDFIRST), "export-traces", "--json"], {"OTEL_EXPORTER_OTLP_ENDPOINT": listener.url}
        done = forked.run(argv, cwd=repository.worktree, env={**os.environ, **environ}, timeout=300)
    assert json.loads(done.stdout) == document.model_dump(by_alias=True), done.stderr
    (path, _, first), (other, _, second) = listener.taken
    assert (path, first) == (other, second)
    assert path == "/v1/traces"
    (resource,) = ExportTraceServiceRequest.FromString(first).resource_spans
    spans = list(resource.scope_spans[0].spans)
    assert {one.trace_id.hex() for one in spans} == {document.trace}
    assert len({one.span_id for one in spans}) == len(spans) == document.spans
    assert {one.parent_span_id for one in spans} <= {b"", *(one.span_id for one in spans)}
    assert spans[0].start_time_unix_nano == round((BEGAN + timedelta(seconds=1)).timestamp()) * 10**9
    said = {one.key: one.value.string_value for one in spans[0].attributes}
    assert said == {"redfirst.run": "run-GAL-39", "redfirst.outcome": "completed", "redfirst.reason": "done"}


def test_each_dispatch_and_measurement_is_a_span_within_its_phase(repository: Repository) -> None:
    run = stories.finished(repository)
    lines = Tail(run.folder).lines()
    spans = {one.seq: one for one in spans_of(lines)}
    wanted = {line.seq for line in lines if isinstance(line.data, _KINDS)}
    phases = {one.seq: one for one in spans.values() if one.name.startswith("phase ")}
    assert spans.keys() - phases.keys() == wanted
    assert [one.name for one in phases.values()][:4] == ["phase 1", "phase 2", "phase 3", "phase 4"]
    decided = [line for line in lines if isinstance(line.data, DecisionMade)]
    for line in lines:
        if isinstance(line.data, DispatchStarted | MeasuredTests):
            inside = phases[spans[line.seq].inside or 0]
            after = next(one for one in decided if one.seq > line.seq)
            assert inside.seq <= after.seq
            assert inside.begun <= spans[line.seq].begun <= spans[line.seq].ended <= inside.ended
    assert all(one.begun <= one.ended for one in spans.values())
    assert spans_of(lines[:5])[0].ended <= spans_of(lines)[0].ended


def test_what_keeps_a_trace_from_being_sent_is_said(repository: Repository) -> None:
    run = stories.finished(repository)
    with pytest.raises(UserError, match="No collector is named"):
        export(run.folder, None, os.environ)
    with listening() as listener:
        listener.status = 400
        with pytest.raises(UserError, match="did not take the trace"):
            export(run.folder, listener.url, os.environ)


def test_neither_the_base_nor_a_run_imports_the_extra(tmp_path: Path) -> None:
    program = tmp_path / "asked.py"
    program.write_text("import sys, pipeline.app.events\nprint('opentelemetry.sdk' in sys.modules)\n")
    done = forked.run([str(program)], cwd=tmp_path, env=os.environ, timeout=300)  # everything of redfirst is imported
    assert done.stdout == "False\n", done.stderr
