"""Checks whether the quotes of a finding stand in the files that it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue


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
