"""Payloads of recipe steps: the named forms, and the validation of a value.

A form without a name is a JSON Schema (`json_schema.py`). What findings quote is looked up by `quotes.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema  # noqa: TC002  (pydantic reads it)

from pipeline.reports.fields import Line, Prose, RelPath, StrictModel, Texts
from pipeline.reports.json_schema import MOST, schema_faults
from pipeline.reports.proofs import MeasuredProof, Proof  # noqa: TC001  (pydantic reads it)
from pipeline.reports.schema_errors import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pipeline.reports.decode import JsonObject

Confidence = Literal["certain", "likely", "uncertain"]


class QuotedFinding(StrictModel):
    """A claim, with the quoted words of a file that support it."""

    claim: Prose
    path: RelPath | None = None
    quote: str = ""
    confidence: Confidence = "likely"
    severity: Literal["BLOCK", "HIGH", "MEDIUM", "LOW"] | None = None
    proof: Proof | None = None
    """Of a change that a run is about; it is run."""
    measured: SkipJsonSchema[MeasuredProof | None] = None
    """What came of it: ours, no agent can claim it."""


class Findings(StrictModel):
    """Form `findings.v1`: claims with quotes, and known gaps."""

    findings: Annotated[tuple[QuotedFinding, ...], Field(max_length=200)]
    gaps: Texts = ()


class Cause(StrictModel):
    """Form `diagnosis.v1`: the cause of a problem; `title` is one line on how to fix it."""

    title: Line
    cause: Prose
    evidence: tuple[QuotedFinding, ...] = ()
    files: tuple[RelPath, ...] = ()
    confidence: Confidence = "likely"


class ProposedIssue(StrictModel):
    """An issue proposed for filing."""

    title: Line
    body: str = ""
    labels: tuple[Line, ...] = ()
    severity: Literal["BLOCK", "HIGH", "MEDIUM", "LOW"] | None = None
    evidence: tuple[QuotedFinding, ...] = ()


class ProposedIssues(StrictModel):
    """Form `issues.v1`: the issues proposed for filing."""

    issues: Annotated[tuple[ProposedIssue, ...], Field(max_length=100)]


class MeasuredTest(StrictModel):
    """A test with its measured outcome."""

    id: Prose
    outcome: Line


class TestEvidence(StrictModel):
    """Form `test_evidence.v1`: a test run measured by us; no agent can claim one."""

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
"""The named forms; a test compares them with those that a recipe may name."""


def form_of(payload: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON Schema of the payload that a step asks for.

    Raises:
        LookupError: no form is called so.
    """
    return NAMED[payload].model_json_schema() if isinstance(payload, str) else payload


def read_payload(said: JsonValue, payload: str | Mapping[str, Any]) -> tuple[JsonValue, list[str]]:
    """Return the payload in an answer, and a sentence for each fault by the requested form.

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
        found = adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        told = explain(error.errors(), cast("JsonObject", value), adapter.json_schema())
        return [f"at {fault.pointer or '/'}: {fault.text}" for fault in told[:MOST]]
    claimed = isinstance(found, Findings) and any(one.measured is not None for one in found.findings)
    return ["at /findings: `measured` is for redfirst to say: leave it out"] if claimed else []
