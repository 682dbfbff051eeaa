"""Finds the report in an agent's last words: the JSON object at their end, fenced, indented, or after other words."""

from __future__ import annotations

import json
from typing import Final

_DECODER: Final = json.JSONDecoder()
_FENCE: Final = "```"
_LONGEST: Final = 1_200_000
_TRIES: Final = 2_000
_MOST_READ: Final = 50_000_000
_DEEP: Final = 10_000


def report_in(text: str) -> bytes | None:
    """Return the JSON object that *text* ends with, None if it ends otherwise.

    What an agent has read stands in the results of its tools, not here: a message is its own.
    """
    end = text[-_LONGEST:].rstrip().removesuffix(_FENCE).rstrip()
    at, read = len(end) if end.endswith("}") else 0, 0
    for _ in range(_TRIES):
        at = end.rfind("{", 0, at)
        if at < 0 or read > _MOST_READ:
            return None
        # What begins within the object that is looked for leaves something over, so the first that fits is whole.
        try:
            _, stop = _DECODER.raw_decode(end, at)
        except json.JSONDecodeError as error:
            stop = error.pos
        except RecursionError:
            stop = at + _DEEP
        else:
            if stop == len(end):
                return end[at:].encode(errors="replace")
        read += stop - at + 1
    return None
