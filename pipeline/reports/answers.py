"""The reports of kind `answer`, by which a role answers a step of a recipe: text, a payload, limitations.

Each is a claim. Whether a payload is what was asked for, and its quotes stand where it says, is looked at by us
(`payloads.py`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import JsonValue, WithJsonSchema

from pipeline.reports.fields import HonouredSeam, Prose, Report

Payload = Annotated[
    JsonValue,
    WithJsonSchema({"type": "string", "description": "a JSON value of the form that is asked for, or its text"}),
]
"""A payload, declared as text: products that force a schema cannot declare a value of any form
(`payloads.read_payload`)."""


class _Answer(Report):
    payload: Payload = None
    seams: tuple[HonouredSeam, ...] = ()


class Answered(_Answer):
    """Kind `answer`: the question is answered."""

    result: Literal["ANSWERED"]
    output: Prose
    limitations: str = ""


class Unsure(_Answer):
    """Kind `answer`: the question is answered in part; `limitations` says what is missing."""

    result: Literal["UNSURE"]
    output: Prose
    limitations: Prose


class Questions(Report):
    """Kind `answer`: a person must answer `questions` first."""

    result: Literal["QUESTIONS"]
    questions: Prose


class Unanswerable(Report):
    """Kind `answer`: the question lacks something, so nothing was tried."""

    result: Literal["CANNOT_PROCEED"]
    missing: Prose
    why: str = ""
