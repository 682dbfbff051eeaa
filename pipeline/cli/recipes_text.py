"""Words what a recipe would do, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.cli.text import counted
from pipeline.policy.characters import visible
from pipeline.recipes.model import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.recipes.plan import Planned, Preview


def step_lines(shown: Preview) -> list[str]:
    """Return the steps in the order of their start."""
    lines: list[str] = []
    for step in shown.steps:
        times = f", at most {step.times} times" if step.times > 1 else ""
        lines.append(visible(f"{step.wave}. {step.id}: {step.who}{times}"))
        lines += [visible(f"   {line}") for line in _facts(step)]
    return lines


def agent_lines(agents: Mapping[str, str]) -> list[str]:
    """Return who each role is, those that are the same together."""
    by_agent: dict[str, list[str]] = {}
    for role, agent in agents.items():
        by_agent.setdefault(agent, []).append(f"@{role}")
    return [visible(f"{', '.join(roles)}: {agent}") for agent, roles in by_agent.items()]


def most_line(shown: Preview, limit: int | None = None) -> str:
    """Return what it takes, at least or at most, under the limit that counts."""
    most = limit or shown.limit
    if shown.least is not None:
        return f"{counted(shown.least, 'dispatch')} where the issue is one task and nothing goes wrong; at most {most}."
    if shown.dispatches is None:
        return f"The limit is {counted(most, 'dispatch')}."
    gates = f", {counted(shown.gates, 'approval point')}" if shown.gates else ""
    return f"At most {counted(shown.dispatches, 'dispatch')} of {most}{gates}."


def _facts(step: Planned) -> list[str]:
    if step.kind == Kind.PHASE:  # each comes after the one before it, and writes what the tasks name
        return []
    after = [f"after {one.earlier}: both touch {' and '.join(dict.fromkeys(one.patterns))}" for one in step.after]
    return [
        *([f"sees {', '.join(step.sees)}"] if step.sees else []),
        *([f"may write {', '.join(step.writes)}"] if step.writes else []),
        *after,
    ]
