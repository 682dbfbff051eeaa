"""Payloads of steps: the forms that are known by name, and what is wrong with a value.

A form without a name is a JSON Schema (`json_schema.py`). What findings quote is looked up by `quotes.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from pipeline.reports.fields import Line, Prose, RelPath, StrictModel, Texts
from pipeline.reports.json_schema import MOST, schema_faults
from pipeline.reports.schema_errors import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pipeline.reports.decode import JsonObject

Confidence = Literal["certain", "likely", "uncertain"]


class QuotedFinding(StrictModel):
    """One thing that was found, and the words of a file that it rests on."""

    claim: Prose
    path: RelPath | None = None
    quote: str = ""
    confidence: Confidence = "likely"
    severity: Literal["BLOCK", "HIGH", "MEDIUM", "LOW"] | None = None


class Findings(StrictModel):
    """`findings.v1`."""

    findings: Annotated[tuple[QuotedFinding, ...], Field(max_length=200)]
    gaps: Texts = ()


class Cause(StrictModel):
    """`diagnosis.v1`: why something is as it is; `title` is one line on what mends it."""

    title: Line
    cause: Prose
    evidence: tuple[QuotedFinding, ...] = ()
    files: tuple[RelPath, ...] = ()
    confidence: Confidence = "likely"


class ProposedIssue(StrictModel):
    """One issue that should be filed."""

    title: Line
    body: str = ""
    labels: tuple[Line, ...] = ()
    severity: Literal["BLOCK", "HIGH", "MEDIUM", "LOW"] | None = None
    evidence: tuple[QuotedFinding, ...] = ()


class ProposedIssues(StrictModel):
    """`issues.v1`."""

    issues: Annotated[tuple[ProposedIssue, ...], Field(max_length=100)]


class MeasuredTest(StrictModel):
    """A test, and what came of it."""

    id: Prose
    outcome: Line


class TestEvidence(StrictModel):
    """`test_evidence.v1`: a measurement of ours; no agent's word stands in for one."""

    __test__ = False

    command: tuple[str, ...] = ()
    status: Line
    exit_code: int | None = None
    passed: int = 0
    failed: int = 0
    tests: tuple[MeasuredTest, ...] = ()
    tree: str = ""


NAMED: Final[Mapping[str, type[StrictModel]]] = {
    "findings.v1": Findings,
    "diagnosis.v1": Cause,
    "issues.v1": ProposedIssues,
    "test_evidence.v1": TestEvidence,
}
"""Forms by name; a test holds them against those that a recipe may name."""


def form_of(payload: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON Schema of a payload that a step asks for.

    Raises:
        LookupError: no form is called so.
    """
    return NAMED[payload].model_json_schema() if isinstance(payload, str) else payload


def read_payload(said: JsonValue, payload: str | Mapping[str, Any]) -> tuple[JsonValue, list[str]]:
    """Return the payload that somebody meant, and what keeps it from being what was asked for, a sentence each.

    A text may be the value itself or say it in JSON: some products can answer in texts alone.
    """
    found = _faults(said, payload)
    if found and isinstance(said, str):
        try:
            value = cast("JsonValue", json.loads(said))
        except (ValueError, RecursionError):
            return said, found
        return value, _faults(value, payload)
    return said, found


def _faults(value: JsonValue, payload: str | Mapping[str, Any]) -> list[str]:
    if not isinstance(payload, str):
        return [f"at {at or '/'}: {what}" for at, what in schema_faults(value, payload)]
    if not isinstance(value, dict):
        return ["at /: accepted: an object"]
    adapter = TypeAdapter(NAMED[payload])
    try:
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        told = explain(error.errors(), cast("JsonObject", value), adapter.json_schema())
        return [f"at {fault.pointer or '/'}: {fault.text}" for fault in told[:MOST]]
    return []
