"""Merges the observations of several runners of one repository; the worst state counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.evidence.observation import Observation, RunState
from pipeline.languages.projects import layouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.evidence.observation import TestRecord

_WORST_FIRST: Final = (RunState.UNUSABLE, RunState.TIMED_OUT, RunState.CRASHED, RunState.COMPLETE)
_TAIL: Final = 8_000
_Value = TypeVar("_Value")


def together(seen: Mapping[str, Observation]) -> Observation:
    """Return the merged observation of the runners, named by their keys; for a single runner its own.

    The worst state of them is that of all. Where one may not be believed at all, or two have a test of the same id,
    nothing may be concluded from any of them: then the observation is UNUSABLE, and no collection error excuses it.
    """
    everything = list(seen.values())
    if len(everything) == 1:
        return everything[0]
    problem = _problem(seen)
    state = RunState.UNUSABLE if problem else min((each.state for each in everything), key=_WORST_FIRST.index)
    said = (f"{name}: {each.detail}" for name, each in seen.items() if each.state is state and each.detail)
    errors = () if problem else tuple(error for each in everything for error in each.collection_errors)
    return Observation(
        state=state,
        detail=problem or "; ".join(said),
        records=_first(each.records for each in everything),
        collection_errors=errors,
        files=_first(each.files for each in everything),
        layout=layouts.together([each.layout for each in everything]),
        modules=_first(each.modules for each in everything),
        foreign_modules=tuple(module for each in everything for module in each.foreign_modules),
        command=_command(everything),
        tail=_tail(seen),
    )


def collected(seen: Observation) -> Observation:
    """Return the observation without results, as if no test had been run."""
    records = {entry: _unrun(record) for entry, record in seen.records.items()}
    return seen.model_copy(update={"records": records, "tail": ""})


def _unrun(record: TestRecord) -> TestRecord:
    nothing = {"outcome": None, "phase": "", "reason": "", "fault": None, "reach": None}
    return record.model_copy(update=nothing)


def _problem(seen: Mapping[str, Observation]) -> str:
    """Return why nothing may be concluded from the observations, empty if something may."""
    for name, each in seen.items():
        if each.state is RunState.UNUSABLE and each.environment_problem is not None:
            return f"{name}: {each.environment_problem}"
    owners: dict[str, str] = {}
    for name, each in seen.items():
        for entry in each.records:
            if entry in owners:
                return (
                    f"{owners[entry]} and {name} both have a test {entry}, so its evidence could be that of the other. "
                    "Rename one, or say in [toolchains] use which of them measure this repository"
                )
            owners[entry] = name
    return ""


def _first(parts: Iterable[Mapping[str, _Value]]) -> dict[str, _Value]:
    """Return the entries of all mappings; for a repeated key, the first value."""
    found: dict[str, _Value] = {}
    for part in parts:
        found = {**part, **found}
    return found


def _command(everything: Sequence[Observation]) -> tuple[str, ...]:
    """Return the commands joined for a shell; if any ran a test, only those."""
    ran = [each for each in everything if any(record.ran for record in each.records.values())]
    commands = [each.command for each in ran or everything if each.command]
    return tuple(word for at, command in enumerate(commands) for word in ((";",) if at else ()) + command)


def _tail(seen: Mapping[str, Observation]) -> str:
    """Return the ends of the runners' output, each shortened to its share."""
    said = {name: each.tail for name, each in seen.items() if each.tail}
    return "\n".join(f"== {name} ==\n{tail[-(_TAIL // len(said)) :]}" for name, tail in said.items())
