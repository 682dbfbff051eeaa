"""What can be read from sources of any language? Means of forgery, imports, examples, small faults.

Each module here finds the reader of a file's language in the table, and has its protocol. Pure; the driver asks through
`languages.readers`, which gives each reader limits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unspliced:
    """The reason why tests and production of a source cannot be told apart; `why` is a sentence without the path."""

    why: str
