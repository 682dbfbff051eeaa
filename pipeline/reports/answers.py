"""What a role answers to a step of a recipe: words, a payload for steps behind it, and what it could not settle.

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
"""Told as a text: products that force a schema know no value of any form (`payloads.read_payload`)."""


class _Answer(Report):
    payload: Payload = None
    seams: tuple[HonouredSeam, ...] = ()


class Answered(_Answer):
    """Kind `answer`: what was asked is answered."""

    result: Literal["ANSWERED"]
    output: Prose
    limitations: str = ""


class Unsure(_Answer):
    """Kind `answer`: a part of it is; `limitations` says what is not."""

    result: Literal["UNSURE"]
    output: Prose
    limitations: Prose


class Questions(Report):
    """Kind `answer`: nothing can be answered before a person has said something."""

    result: Literal["QUESTIONS"]
    questions: Prose


class Unanswerable(Report):
    """Kind `answer`: what was asked lacks something, so nothing was tried."""

    result: Literal["CANNOT_PROCEED"]
    missing: Prose
    why: str = ""
