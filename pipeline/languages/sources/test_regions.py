"""The error for sources whose tests and production code cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unspliced:
    """The reason why two sources cannot be spliced; `why` is a sentence without the path."""

    why: str
