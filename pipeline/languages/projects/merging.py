"""One observation of what several runners of one repository showed: nothing is lost, and the worst of them speaks."""

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
    """Return what the runners showed together, each named by its key; of one alone, what it showed.

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
    """Return the observation as it would be had no test been run."""
    records = {entry: _unrun(record) for entry, record in seen.records.items()}
    return seen.model_copy(update={"records": records, "tail": ""})


def _unrun(record: TestRecord) -> TestRecord:
    nothing = {"outcome": None, "phase": "", "reason": "", "fault": None, "reach": None}
    return record.model_copy(update=nothing)


def _problem(seen: Mapping[str, Observation]) -> str:
    """Return why nothing may be concluded, empty if something may."""
    for name, each in seen.items():
        if each.state is RunState.UNUSABLE and each.environment_problem is not None:
            return f"{name}: {each.environment_problem}"
    owners: dict[str, str] = {}
    for name, each in seen.items():
        for entry in each.records:
            if entry in owners:
                return (
                    f"{owners[entry]} and {name} both have a test {entry}, so its evidence could be that of the other; "
                    "rename one, or say in [toolchains] use which of them measure this repository"
                )
            owners[entry] = name
    return ""


def _first(parts: Iterable[Mapping[str, _Value]]) -> dict[str, _Value]:
    """Return all entries; of a key that several have, the first's."""
    found: dict[str, _Value] = {}
    for part in parts:
        found = {**part, **found}
    return found


def _command(everything: Sequence[Observation]) -> tuple[str, ...]:
    """Return the commands one after the other, as a shell takes them; those alone that ran a test, if any did."""
    ran = [each for each in everything if any(record.ran for record in each.records.values())]
    commands = [each.command for each in ran or everything if each.command]
    return tuple(word for at, command in enumerate(commands) for word in ((";",) if at else ()) + command)


def _tail(seen: Mapping[str, Observation]) -> str:
    """Return the ends of what the runners printed, each with its share of the room."""
    said = {name: each.tail for name, each in seen.items() if each.tail}
    return "\n".join(f"== {name} ==\n{tail[-(_TAIL // len(said)) :]}" for name, tail in said.items())
