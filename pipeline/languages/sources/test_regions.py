"""Tests that stand beside production code in one file: what comes of taking the two apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unspliced:
    """Why two sources cannot be put together; `why` is a sentence without the path."""

    why: str
