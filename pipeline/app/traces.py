"""Sends a run as a trace of OpenTelemetry, built from its journal afterwards: the same spans whenever it is done.

A span is the run, a phase of it in one lane, a dispatch, or a measurement. It is named after the line that begins or
decides it, so that its id never changes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from pipeline.agents.backends.extras import install_command
from pipeline.app.documents import Document
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import DecisionMade, RunFinished, RunParked
from pipeline.outcomes import Reason
from pipeline.run.folder import Tail
from pipeline.run.journal_kinds import DispatchFinished, DispatchStarted, MeasuredTests
from pipeline.run.store import key_of_run
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line

_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PATH: Final = "/v1/traces"
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class TracesDocument(Document):
    """What `export-traces --json` prints."""

    schema_: Literal["redfirst.traces/1"] = Field(default="redfirst.traces/1", alias="schema")
    run_id: str
    trace: str
    spans: int


@dataclass
class Span:
    """A part of a run: `seq` is the line that it is named after, `inside` that of the part around it."""

    name: str
    seq: int
    begun: datetime
    ended: datetime
    inside: int | None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def spans_of(lines: list[Line]) -> list[Span]:
    """Return the parts of a run, as its journal has them; the first one is the run."""
    begun = datetime.fromisoformat(lines[0].at)
    run = Span("run", lines[0].seq, begun, datetime.fromisoformat(lines[-1].at), None)
    spans, asked, phases = [run], dict[str, Span](), dict[str, Span]()
    open_parts: list[tuple[str | None, Span]] = []
    decided = begun
    for line in lines:
        now = datetime.fromisoformat(line.at)
        match line.data:
            case DispatchStarted() as one:
                facts = {"task": one.task, "backend": one.backend, "model": one.model, "attempt": one.attempt}
                asked[one.dispatch] = Span(f"{one.role} {one.kind}", line.seq, now, now, run.seq, facts)
                open_parts.append((one.lane, asked[one.dispatch]))
            case DispatchFinished() as one if one.dispatch in asked:
                asked[one.dispatch].ended = now
                asked[one.dispatch].facts |= {"signal": one.signal, **dict(one.usage)}
            case MeasuredTests() as one:
                since = now - timedelta(seconds=one.seconds or 0)
                facts = {"state": one.state, **one.outcomes}
                open_parts.append((None, Span(f"measure: {one.what}", line.seq, since, now, run.seq, facts)))
            case DecisionMade() as one:
                name, phase = _phase(one.step), phases.get(one.lane)
                if phase is None or phase.name != name:
                    since = phase.ended if phase is not None else decided
                    phase = phases[one.lane] = Span(name, line.seq, since, now, run.seq, {"lane": one.lane})
                    spans.append(phase)
                phase.ended = decided = now
                for _, part in (here := [each for each in open_parts if each[0] in {None, one.lane}]):
                    part.inside = phase.seq
                    spans.append(part)
                open_parts = [each for each in open_parts if each not in here]
            case RunFinished() | RunParked() as one:
                run.facts |= {"outcome": one.outcome, "reason": one.reason}
            case _:
                pass
    return [*spans, *(part for _, part in open_parts)]


def _phase(step: str) -> str:
    known = next((one.phase for one in Step if one == step), "-")
    return step if known == "-" else f"phase {known}"


def export(folder: Path, endpoint: str | None, environ: Mapping[str, str]) -> TracesDocument:
    """Send the trace of a run to a collector.

    Args:
        folder: The run's.
        endpoint: The collector's address; None: as the variables of OpenTelemetry say.
        environ: The user's environment.

    Raises:
        UserError: the run is damaged, the extra is missing, there is no address, or the collector does not take it.
    """
    if endpoint is None and not any(map(environ.get, _VARIABLES)):
        raise UserError(
            f"No collector is named. Set otel.endpoint, or the variable {_VARIABLES[0]}.",
            Reason.CONFIG,
            actions=("redfirst config set --user otel.endpoint http://127.0.0.1:4318",),
        )
    lines = Tail(folder).lines()
    if not lines:
        raise UserError(f"{folder.name} has not begun yet.", Reason.USAGE)
    trace = f"{key_of_run(folder)}@{lines[0].at}"
    spans = spans_of(lines)
    try:
        is_taken = _is_sent(trace, folder.name, spans, endpoint)
    except ImportError:
        needed = install_command("otel")
        raise UserError("Traces need the extra `otel`. Install it:", Reason.USAGE, actions=(needed,)) from None
    if not is_taken:
        raise UserError("The collector did not take the trace. The lines above say why.", Reason.ENVIRONMENT)
    return TracesDocument(run_id=folder.name, trace=f"{_id(trace, 16):032x}", spans=len(spans))


def _id(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size])


def _is_sent(trace: str, run: str, spans: list[Span], endpoint: str | None) -> bool:
    # heavy, and an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
    from opentelemetry.trace import SpanContext  # noqa: PLC0415

    def context(seq: int | None) -> SpanContext | None:
        return None if seq is None else SpanContext(_id(trace, 16), _id(f"{trace}/{seq}", 8), is_remote=False)

    def moment(at: datetime) -> int:
        return (at - _EPOCH) // timedelta(microseconds=1) * 1000

    resource, scope = Resource({"service.name": "redfirst"}), InstrumentationScope("redfirst")
    found = [
        ReadableSpan(
            one.name,
            context(one.seq),
            context(one.inside),
            resource,
            {"redfirst.run": run, **{f"redfirst.{key}": said for key, said in one.facts.items() if said is not None}},
            start_time=moment(one.begun),
            end_time=moment(one.ended),
            instrumentation_scope=scope,
        )
        for one in spans
    ]
    whole = endpoint if endpoint is None or endpoint.endswith(_PATH) else f"{endpoint.rstrip('/')}{_PATH}"
    return OTLPSpanExporter(whole).export(found) is SpanExportResult.SUCCESS
