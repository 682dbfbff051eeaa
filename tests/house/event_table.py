"""Renders the events that there are as the table of docs/reference/events.md.

    PYTHONPATH=tests:. python tests/house/event_table.py

renews it.
"""

from __future__ import annotations

from typing import Final

from house.documents import ROOT

from pipeline.app.events import TYPES
from pipeline.matrix.routing.render import refresh

PAGE: Final = ROOT / "docs" / "reference" / "events.md"


def blocks() -> dict[str, str]:
    """Return the generated block of the page."""
    lines = ["| type | when | `data` |", "| --- | --- | --- |"]
    for name, kind in TYPES.items():
        lines.append(f"| `{name}` | {kind.when.rstrip('.')} | {', '.join(kind.keys)} |")
    return {"events": "\n".join(lines)}


if __name__ == "__main__":
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8"), blocks()), encoding="utf-8")
