"""From an agent's last words to a report: the JSON object at their end, fenced, indented, or behind other words."""

from __future__ import annotations

import json
from typing import Final

_DECODER: Final = json.JSONDecoder()
_FENCE: Final = "```"
_MOST_READ: Final = 50_000_000
_DEEP: Final = 10_000


def report_in(text: str) -> bytes | None:
    """Return the JSON object that *text* ends with, None if it ends otherwise.

    What an agent has read stands in the results of its tools, not here: a message is its own.
    """
    end = text.rstrip().removesuffix(_FENCE).rstrip()
    at, read = len(end) if end.endswith("}") else 0, 0
    while read < _MOST_READ and (at := end.rfind("{", 0, at)) >= 0:
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
