"""Goes on with a recipe's run in another way: a step is done again, or the recipe is another one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.config.problems import did_you_mean
from pipeline.engine.events import Reopened
from pipeline.engine.machine import TRUNK
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.recipes.machine import RecipeMachine, differing
from pipeline.recipes.plan import MOST_ITEMS
from pipeline.recipes.templates import areas_by_item, below
from pipeline.runs.recipe_run import Changed
from pipeline.scheduling.patterns import fault
from pipeline.service.recipe_choice import steps_of
from pipeline.service.recipe_files import is_path
from pipeline.steps.recipe_context import ReadRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from pipeline.runs.recipe_run import RecipeRun
    from pipeline.service.recipe_choice import Chosen


def require_unended(run: RecipeRun) -> None:
    """Return when a run can go on.

    Raises:
        UserError: it has ended; it says how to begin anew.
    """
    if run.state.has_ended:
        values = [f"{name}={value}" for name, value in run.inputs.items() if value]
        again = f"redfirst run {shlex.join([_word_of(run), *values])}"
        name = run.info.run_id
        raise UserError(
            f"{name} has ended ({run.state.outcome}, {run.state.reason}): nothing of it is asked again. Start anew, "
            f"or look at it: {again}",
            Reason.USAGE,
            actions=(again, f"redfirst show {name}"),
        )


def _word_of(run: RecipeRun) -> str:
    """Return how the recipe of a run is named again: one that lies where recipes are by its name, else by its path."""
    name, path = run.recipe.name, run.facts.path if run.facts is not None else ""
    return path if is_path(path) and not path.endswith(f"recipes/{name}.yaml") else name


def reopening(run: RecipeRun, step: str | None, changed: tuple[Chosen, Mapping[str, str]] | None) -> Reopened | None:
    """Return what is done again; None where nobody asks for anything in particular.

    Args:
        run: The run; nothing of it is changed here.
        step: The name of a step that is done again, or its id.
        changed: The recipe that counts from here on, with the values of its inputs.

    Raises:
        UserError: there is no such step, or nothing of the recipe is new.
    """
    if step is None and changed is None:
        return None
    again: list[str] = []
    machine, workflow = run.machine, None
    if changed is not None:
        found, values = changed[0], dict(changed[1])
        machine = RecipeMachine(found.recipe, values)
        if run.facts is not None and found.sha256 == run.facts.sha256 and values == dict(run.inputs):
            raise _nothing_new(run, found.file.path)
        steps = steps_of(found.recipe)
        workflow = Changed(recipe=found.facts, steps=steps, inputs=values).model_dump(mode="json")
        again += differing(run.machine, machine)
    if step is not None:
        known = [name for id_ in machine.order for name in dict.fromkeys((id_, *machine.names(run.state, id_)))]
        if step not in known:
            raise _unknown(run, step, known)
        again.append(step)
    lists = _lists(run, machine, again) if changed is not None else {}
    areas = {id_: areas_by_item(machine.steps[id_], machine.values, items) for id_, items in lists.items()}
    _require_patterns(run, areas)
    return Reopened(
        steps=tuple(dict.fromkeys(again)),
        items={id_: len(items) for id_, items in lists.items()},
        areas=areas,
        workflow=workflow or {},
    )


def _require_patterns(run: RecipeRun, areas: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Return when each item of the lists makes patterns that can be compared.

    Raises:
        UserError: one does not.
    """
    name = run.info.run_id
    for id_, found in areas.items():
        for text in (text for area in found for text in area):
            if (why := fault(text)) is not None:
                raise UserError(
                    f"{text!r}, which {id_} may change by an item of its list: {why}. Nothing was changed. Have the "
                    f"list made again, or say what may be changed without the item: redfirst show {name}",
                    Reason.INPUT_INVALID,
                    actions=(f"redfirst show {name}",),
                )


def _lists(run: RecipeRun, machine: RecipeMachine, again: Sequence[str]) -> dict[str, list[JsonValue]]:
    """Return the items of each `for_each` whose list is kept, or given with the inputs."""
    read = ReadRun(run)
    kept = [id_ for id_ in machine.order if id_ in run.state.settled and id_ not in again and id_ != TRUNK]
    lists = {step: below(read.payload_of(id_), keys) for id_ in kept for step, keys in machine.lists_of(id_)}
    found = {step: items[:MOST_ITEMS] for step, items in lists.items() if isinstance(items, list)}
    return {**machine.items, **found}


def _nothing_new(run: RecipeRun, word: str) -> UserError:
    name = run.info.run_id
    return UserError(
        f"{word} says what {name} goes by already: nothing was changed. Ask again what is not ready: redfirst resume "
        f"{name}",
        Reason.USAGE,
        actions=(f"redfirst resume {name}",),
    )


def _unknown(run: RecipeRun, step: str, known: Sequence[str]) -> UserError:
    near = did_you_mean(step, known)
    hint = f' Did you mean "{near}"?' if near else ""
    return UserError(
        f'{run.info.run_id} has no step "{step}" (steps: {", ".join(known)}).{hint}',
        Reason.USAGE,
        details={"accepted": list(known), "did_you_mean": near},
        actions=(f"redfirst show {run.info.run_id}",),
    )
