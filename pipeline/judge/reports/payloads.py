"""Payloads of recipe steps: the named forms, the validation of a value, and whether quoted words stand in their files.

A form without a name is a JSON Schema, of which we check the part that payloads use; other keywords say nothing here.
Patterns are left out: a stranger's can take for ever.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema  # noqa: TC002  (pydantic reads it)

from pipeline.judge.reports.fields import Line, Prose, RelPath, StrictModel, Texts
from pipeline.judge.reports.proofs import MeasuredProof, Proof  # noqa: TC001  (pydantic reads it)
from pipeline.judge.reports.schema_errors import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.judge.reports.decode import JsonObject


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


# --- JSON Schema -----------------------------------------------------------------------------------------------------

MOST: Final = 20
"""The most faults that are reported."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def schema_faults(value: object, schema: Mapping[str, Any], at: str = "") -> list[tuple[str, str]]:
    """Return the faults of a value by JSON pointer, empty if it fits the schema."""
    return list(islice(_iter_faults(value, schema, at), MOST))


def _iter_faults(value: object, schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    if "anyOf" in schema:
        tries = [schema_faults(value, one, at) for one in schema["anyOf"]]
        if all(tries):
            yield from min(tries, key=len)
            return
    if (types := schema.get("type")) is not None:
        wanted = [str(one) for one in cast("list[object]", types)] if isinstance(types, list) else [str(types)]
        if not any(_is(value, one) for one in wanted):
            yield at, f"accepted: {' or '.join(wanted)}; this is {next(name for name in _TYPES if _is(value, name))}"
            return
    if "const" in schema and value != schema["const"]:
        yield at, f"accepted: {json.dumps(schema['const'])}"
    if "enum" in schema and value not in schema["enum"]:
        yield at, f"accepted: {', '.join(map(json.dumps, schema['enum']))}"
    yield from _sized(value, schema, at)
    if isinstance(value, dict):
        yield from _of_object(cast("dict[str, object]", value), schema, at)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(cast("list[object]", value)):
            yield from _iter_faults(item, schema["items"], f"{at}/{number}")


def _sized(value: object, schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    size = len(cast("list[object]", value)) if isinstance(value, list | str) else value
    least, most, what = ("minimum", "maximum", "")
    if isinstance(value, str):
        least, most, what = "minLength", "maxLength", " characters"
    elif isinstance(value, list):
        least, most, what = "minItems", "maxItems", " entries"
    elif not _is(value, "number"):
        return
    if least in schema and cast("float", size) < schema[least]:
        yield at, f"accepted: at least {schema[least]}{what}"
    if most in schema and cast("float", size) > schema[most]:
        yield at, f"accepted: at most {schema[most]}{what}"


def _of_object(value: dict[str, object], schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    properties = cast("dict[str, Mapping[str, Any]]", schema.get("properties", {}))
    for name in schema.get("required", ()):
        if name not in value:
            yield at, f"the key {name!r} is missing"
    more = schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in properties:
            yield from _iter_faults(inner, properties[name], f"{at}/{name}")
        elif more is False:
            yield f"{at}/{name}", f"unknown key; accepted: {', '.join(properties) or 'none'}"
        elif isinstance(more, dict):
            yield from _iter_faults(inner, cast("dict[str, Any]", more), f"{at}/{name}")


def _is(value: object, type_: str) -> bool:
    return isinstance(value, _TYPES.get(type_, ())) and (type_ == "boolean" or not isinstance(value, bool))


def with_checked_quotes(value: JsonValue, content_of: Callable[[str], str | None]) -> tuple[JsonValue, tuple[str, ...]]:
    """Return a payload with its quotes checked, and a sentence for each quote that was not found.

    A finding whose quote is not in its file is marked uncertain. White space counts as one space.

    Args:
        value: A payload of any form; what looks like a finding in it is one.
        content_of: The text of a file of the tree that was read, None where there is none.
    """
    missing: list[str] = []

    def walked(part: JsonValue) -> JsonValue:
        if isinstance(part, list):
            return [walked(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = {key: walked(one) for key, one in part.items()}
        quote, path = found.get("quote"), found.get("path")
        if not isinstance(quote, str) or "claim" not in found:
            return found
        if not quote.strip() or not isinstance(path, str):
            return found if not quote.strip() else _uncertain(found, f"a quote names no file: {quote[:80]!r}")
        content = content_of(path)
        if content is None:
            return _uncertain(found, f"{path} is not there, and is quoted")
        if spaced_once(quote) not in spaced_once(content):
            return _uncertain(found, f"{path} does not say {quote[:80]!r}")
        return found

    def _uncertain(found: dict[str, JsonValue], why: str) -> JsonValue:
        missing.append(why)
        return {**found, "confidence": "uncertain"}

    return walked(value), tuple(missing)


def spaced_once(text: str) -> str:
    """Return a text with each run of white space as one space, as quotes are compared."""
    return re.sub(r"\s+", " ", text).strip()
