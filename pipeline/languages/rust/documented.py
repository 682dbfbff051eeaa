"""The examples in Rust documentation as one suite; `examples` finds them, `weakening` reads what they check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.languages.rust.weakening import documented

if TYPE_CHECKING:
    from pipeline.languages.sources.suites import Suite


def read(source: bytes, path: str) -> Suite:  # noqa: ARG001  (of every language)
    """Return the examples of a source."""
    return documented(source)
