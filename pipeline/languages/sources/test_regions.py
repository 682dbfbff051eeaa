"""What comes of taking apart tests and production code that stand in one file, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unspliced:
    """Why two sources cannot be put together; `why` is a sentence without the path."""

    why: str
