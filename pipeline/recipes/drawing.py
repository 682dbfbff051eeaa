"""Draws a recipe as a Mermaid diagram of its steps and of what each waits for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.recipes.plan import Planned, Preview


def mermaid(shown: Preview) -> str:
    """Return the graph; a dotted arrow stands for steps that wait only because both touch the same files."""
    lines = ["flowchart TD", *(f'    {_name(step.id)}["{_label(step)}"]' for step in shown.steps)]
    for step in shown.steps:
        lines += [f"    {_name(above)} --> {_name(step.id)}" for above in step.sees]
        lines += [
            f'    {_name(one.earlier)} -.->|"{_plain(" ~ ".join(dict.fromkeys(one.patterns)))}"| {_name(step.id)}'
            for one in step.after
        ]
    return "\n".join(lines)


def _label(step: Planned) -> str:
    times = f" x {step.times}" if step.times > 1 else ""
    return _plain(f"{step.id}: {step.who}{times}")


def _name(id_: str) -> str:
    """Return an id that is no word of Mermaid's own, such as `end`."""
    return f"s_{re.sub('[^a-z0-9]', '_', id_)}"


def _plain(text: str) -> str:
    """Return a text that ends neither the label nor its line; Mermaid knows entities by their number."""
    return re.sub(r"[^\w .,:@*/~=-]", lambda match: f"#{ord(match[0])};", text)
