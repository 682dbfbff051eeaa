"""From an agent's last words to a report: one JSON object at the end of a text, fenced, indented or on one line."""

from __future__ import annotations

import json
from typing import Final

_TRIES: Final = 500
_FENCE: Final = "```"


def report_in(text: str) -> bytes | None:
    """Return the JSON object that *text* ends with, None if it ends otherwise.

    What an agent read stands in tool results, not here: its message is its own.
    """
    end = text.rstrip().removesuffix(_FENCE).rstrip()
    if not end.endswith("}"):
        return None
    at = len(end)
    for _ in range(_TRIES):
        at = end.rfind("{", 0, at)
        if at < 0:
            return None
        if end[end.rfind("\n", 0, at) + 1 : at].strip():
            continue  # an object within a line, so not the beginning of one that stands for itself
        try:
            found: object = json.loads(end[at:])
        except (ValueError, RecursionError):
            continue
        return end[at:].encode() if isinstance(found, dict) else None
    return None
