"""Prints the matrix: tables for people, a document for programs, the generated blocks of DESIGN.md.

Everything is printed from `matrix.MATRIX` and `matrix.BOUNDS`; a test holds DESIGN.md to it. Nothing performs I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engine.machine import action_value
from pipeline.routing.diagrams import issue_lifecycle_mermaid, phase7_mermaid, pipeline_mermaid
from pipeline.routing.matrix import ASKS, BOUNDS, GATES, MATRIX, steps_of
from pipeline.routing.vocabulary import Step
from pipeline.routing.words import exhausted_words, limit_words, limited_words, routed_words, step_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.routing.actions import Row

SCHEMA: Final = "redfirst.routes/1"

_BLOCK: Final = re.compile(
    r"(?P<begin>^<!-- generated:(?P<name>[\w-]+) -->$\n).*?(?P<end>^<!-- end generated -->$)", re.DOTALL | re.MULTILINE
)


def table_markdown() -> str:
    """Return the matrix as a Markdown table, in the order of the phases."""
    cells = [
        (
            _phase(row),
            _step(row),
            row.source,
            f"`{row.signal}`: {row.says}",
            _given(row),
            routed_words(row.action, row.step),
        )
        for row in MATRIX
    ]
    return _markdown(("Phase", "Step", "Signal source", "Signal", "Given", "Action"), cells)


def bounds_markdown() -> str:
    """Return the bounds as a Markdown table."""
    cells = [(f"`{loop}`", limit_words(loop), exhausted_words(bound)) for loop, bound in BOUNDS.items()]
    return _markdown(("Loop", "Limit", "When exhausted"), cells)


def groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return matrix and bounds for a terminal: the signals of each step with what follows, then the limits."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in MATRIX:
        given = f"if {row.given}: " if row.given else ""
        title = step_words(row.step) if row.step else "in any step"
        found.setdefault(title, []).append((row.signal.value, given + limited_words(row.action, row.step)))
    limits = [
        (loop.value, limit_words(loop) + ("" if bound.limit is None else f", then {exhausted_words(bound)}"))
        for loop, bound in BOUNDS.items()
    ]
    return [*found.items(), ("limits, and what follows where they are reached", limits)]


def as_json() -> dict[str, Any]:
    """Return the matrix as a document: the values, and the same in words."""
    return {
        "schema": SCHEMA,
        "rows": [
            {
                "id": row.id,
                "phase": _phase(row),
                "steps": [step.value for step in Step if step in steps_of(row)],
                "source": row.source,
                "signal": row.signal.value,
                "given": row.given.value if row.given else None,
                "says": row.says,
                "action": action_value(row.action),
                "words": routed_words(row.action, row.step),
            }
            for row in MATRIX
        ],
        "bounds": [
            {
                "loop": loop.value,
                "limit": bound.limit,
                "counts": "reviews" if bound.reviews else "edges",
                "scope": bound.scope,
                "exhausted": action_value(bound.exhausted),
                "by_role": {role.value: action_value(action) for role, action in bound.by_role.items()},
                "words": exhausted_words(bound),
            }
            for loop, bound in BOUNDS.items()
        ],
        "slots": {step.value: [role.value for role in roles] for step, roles in ASKS.items()},
        "gates": {name: [signal.value for signal in answers] for name, answers in GATES.items()},
    }


# --- the generated blocks of DESIGN.md -------------------------------------------------------------------------------


def blocks() -> Mapping[str, str]:
    """Return the text of each generated block of DESIGN.md, by name."""
    return {
        "matrix": table_markdown(),
        "bounds": bounds_markdown(),
        "pipeline": _fenced(pipeline_mermaid()),
        "phase7": _fenced(phase7_mermaid()),
        "issue-lifecycle": _fenced(issue_lifecycle_mermaid()),
    }


def refresh(text: str, generated: Mapping[str, str] | None = None) -> str:
    """Return *text* with each block between its markers as it is generated now.

    Raises:
        LookupError: a marker names a block that does not exist.
    """
    known = blocks() if generated is None else generated

    def renewed(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in known:
            raise LookupError(f"no generated block is called {name}; there are {', '.join(known)}")
        return f"{found['begin']}{known[name]}\n{found['end']}"

    return _BLOCK.sub(renewed, text)


def block_names(text: str) -> list[str]:
    """Return the names of the blocks in *text*, in their order."""
    return [found["name"] for found in _BLOCK.finditer(text)]


def _fenced(diagram: str) -> str:
    return f"```mermaid\n{diagram}\n```"


def _phase(row: Row) -> str:
    return row.step.phase if row.step else "any"


def _step(row: Row) -> str:
    return row.step.name if row.step else "any"


def _given(row: Row) -> str:
    return row.given.value if row.given else ""


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)
