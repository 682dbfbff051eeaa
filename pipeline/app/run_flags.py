"""Says with what a run goes on: its flags over all its commands, steps that are done again, work of an earlier run."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final, cast

from pipeline.app.recipe_choice import Chosen, steps_of
from pipeline.app.recipe_files import is_path
from pipeline.app.run_config import config_hash, limits_of
from pipeline.config import keys
from pipeline.config.layers import EVERY, Flags, key_path
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import Layer, Origin
from pipeline.errors import UserError
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.matrix.engine.journal_kinds import ConfigChanged, Reopened, RunResumed
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.next_steps import RecipeMachine, differing
from pipeline.matrix.recipes.plan import MOST_ITEMS
from pipeline.matrix.recipes.templates import areas_by_item, below
from pipeline.matrix.routing.state import PARALLEL
from pipeline.matrix.scheduling.patterns import fault
from pipeline.outcomes import Reason
from pipeline.run.info import HIDDEN, without_secrets
from pipeline.run.journal_kinds import LandingRefused
from pipeline.run.recipe_run import Changed, RecipeRun
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.summary_facts import work_tree
from pipeline.sandbox.redaction import MARK, redact
from pipeline.steps.recipe_context import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from pipeline.config.load import Loaded
    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun


_LONGEST: Final = 60
_NOWHERE: Final = Origin(Layer.DEFAULT)
_OF_NO_RUN: Final = "triggers"
"""A table that orders runs, and says nothing to one that has begun."""
_PINNED: Final = frozenset({"base", "final_review.on_blockers"})
"""What a run keeps as it was when it began."""


def flags_of(run: AnyRun) -> Flags:
    """Return the flags that count for the run: those of its beginning, and over them those of each later command."""
    found = _read(run.info.flags)
    for line in run.journal.of(RunResumed):
        found = _read(line.data.flags).over(found)
    return found


def _read(kept: Mapping[str, Mapping[str, str]]) -> Flags:
    return Flags(kept.get("set", {}), kept.get("agent", {}))


def kept_flags(flags: Flags, secrets: Collection[str]) -> dict[str, dict[str, str]]:
    """Return flags as the run keeps them: what may be a secret is hidden, and has to be given again."""
    texts = {key: HIDDEN if _is_secret(key, text, secrets) else text for key, text in flags.values.items()}
    said = {"set": texts, "agent": dict(flags.agents)}
    return {name: values for name, values in said.items() if values}


def _is_secret(key: str, text: str, secrets: Collection[str]) -> bool:
    data = text.encode(errors="surrogateescape")
    return "env" in key_path(key)[:-1] or redact(data, secrets) != data


def kept_config(dumped: Mapping[str, object], secrets: Collection[str]) -> dict[str, object]:
    """Return a configuration as the run keeps it, without secrets."""
    text = json.dumps(without_secrets(dict(dumped)), ensure_ascii=False)
    return json.loads(redact(text.encode(errors="surrogateescape"), secrets).decode(errors="surrogateescape"))


def usable(flags: Flags) -> Flags:
    """Return the flags whose values are known."""
    return Flags({key: text for key, text in flags.values.items() if text != HIDDEN}, flags.agents)


def require_own(run: Run, given: Flags) -> None:
    """Refuse the flags of a run folder that was not made here, unless each is *given* again: it may be a stranger's.

    Raises:
        UserError: reason `untrusted`: it names them.
    """
    kept = given.over(flags_of(run))
    said = [f"--set {key}={text}" for key, text in kept.values.items() if key not in given.values]
    said += [
        f"--agent {name}" if role == EVERY else f"--agent {role}={name}"
        for role, name in kept.agents.items()
        if role not in given.agents
    ]
    if said:
        raise UserError(
            f"{run.info.run_id} was begun elsewhere, with flags that could start programs here: "
            f"{', '.join(said)}. Read them, then give each key again with this command, with the value "
            "that you want.",
            Reason.UNTRUSTED,
            details={"flags": said},
            actions=(f"redfirst show {run.info.run_id}",),
        )


def require_hidden(flags: Flags, loaded: Loaded) -> None:
    """Refuse to go on without a value that a flag gave, that was not kept, and that nothing else gives now.

    Raises:
        UserError: reason `config`.
    """
    missing = [
        key
        for key, text in flags.values.items()
        if text == HIDDEN and loaded.origins.get(keys.dotted(key_path(key)), _NOWHERE).layer is Layer.DEFAULT
    ]
    if missing:
        again = " ".join(f"--set {key}=VALUE" for key in missing)
        variables = " and ".join(keys.variable(key_path(key)) for key in missing)
        raise UserError(
            f"The run was given {' and '.join(missing)} as flags. They may be secrets, so they are not kept. Give them "
            f"again with this command: {again}. Or set {variables}.",
            Reason.CONFIG,
            details={"keys": missing},
        )


def change_of(run: Run, loaded: Loaded, secrets: Collection[str]) -> ConfigChanged | None:
    """Return what of the configuration is not what the run was last driven with; None where nothing is."""
    dumped = loaded.config.model_dump(mode="json")
    now = config_hash(dumped)
    last = next((line.data for line in reversed(run.journal.of(ConfigChanged))), None)
    if now == (run.info.config_hash if last is None else last.config_hash):
        return None
    before: Mapping[str, object] = run.info.config if last is None else last.config
    if not before:  # an earlier version said only the limits
        limits = {**cast("dict[str, object]", run.info.config.get("limits", {})), **run.state.limits}
        before = {**run.info.config, "limits": limits}
    kept = kept_config(dumped, secrets)
    changes = [*_differences(before, kept, loaded)]
    if last is None or last.config:
        changes += _hidden_differences(before, dumped, run.info.config_hash if last is None else last.config_hash)
    if not changes:
        return None
    limits = limits_of(loaded.config)
    if loaded.origins[f"limits.{PARALLEL}"].layer is Layer.DEFAULT:
        del limits[PARALLEL]  # its recipe may have said it
    other = {name: limit for name, limit in limits.items() if run.state.limits.get(name) != limit}
    return ConfigChanged(limits=other, config_hash=now, changes=tuple(changes), config=kept)


def _differences(before: Mapping[str, object], after: Mapping[str, object], loaded: Loaded) -> Iterator[str]:
    was, now = _flat(before), _flat(after)
    for path in sorted({**was, **now}):
        key = keys.dotted(path)
        origin = loaded.origins.get(key, _NOWHERE)
        added = path not in was and origin.layer is Layer.DEFAULT  # a key of a later version
        if was.get(path) == now.get(path) or added or keys.find(path) is None or path[0] == _OF_NO_RUN:
            continue
        where = origin.source.partition(" ")[0] if origin.layer is Layer.FLAG else str(origin)
        pinned = "; not for this run, which keeps what it began with" if key in _PINNED else ""
        yield f"{key}: {_shown(was.get(path))} -> {_shown(now.get(path))} ({where}){pinned}"


def _flat(config: Mapping[str, object]) -> dict[tuple[str, ...], object]:
    return {path: value for path, value in keys.flatten(config).items() if value is not None}


def _shown(value: object) -> str:
    text = "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _hidden_differences(before: Mapping[str, object], dumped: Mapping[str, object], known: str) -> list[str]:
    """Return a line where what is not kept must be different: with it as it is now, the hash is not that of before."""
    filled, any_hidden = _filled(before, dumped)
    if not any_hidden or config_hash(filled) == known:
        return []
    return ["env: a variable of an agent has another value (values are not kept)"]


def _filled(kept: object, now: object) -> tuple[object, bool]:
    """Return what was kept with today's values in the place of what was hidden; and whether anything was."""
    if isinstance(kept, dict):
        entries = cast("dict[str, object]", kept)
        values = cast("dict[str, object]", now) if isinstance(now, dict) else {}
        both = {name: _filled(value, values.get(name)) for name, value in entries.items()}
        filled: dict[str, object] = {name: value for name, (value, _) in both.items()}
        return filled, any(hidden for _, hidden in both.values())
    hidden = kept == HIDDEN or MARK.decode() in json.dumps(kept)
    return (now, True) if hidden and now is not None else (kept, False)


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
    name, again = run.info.run_id, list[str]()
    machine, workflow = run.machine, None
    if changed is not None:
        found, values = changed[0], dict(changed[1])
        machine = RecipeMachine(found.recipe, values)
        if run.facts is not None and found.facts.sha256 == run.facts.sha256 and values == dict(run.inputs):
            raise UserError(
                f"{found.file.path} says what {name} goes by already: nothing was changed. Ask again what is not "
                f"ready: redfirst resume {name}",
                Reason.USAGE,
                actions=(f"redfirst resume {name}",),
            )
        steps = steps_of(found.recipe)
        workflow = Changed(recipe=found.facts, steps=steps, inputs=values).model_dump(mode="json")
        again += differing(run.machine, machine)
    if step is not None:
        known = [one for id_ in machine.order for one in dict.fromkeys((id_, *machine.names(run.state, id_)))]
        if step not in known:
            near = did_you_mean(step, known)
            hint = f' Did you mean "{near}"?' if near else ""
            raise UserError(
                f'{name} has no step "{step}" (steps: {", ".join(known)}).{hint}',
                Reason.USAGE,
                details={"accepted": list(known), "did_you_mean": near},
                actions=(f"redfirst show {name}",),
            )
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
    read = Words(run)
    kept = [id_ for id_ in machine.order if id_ in run.state.settled and id_ not in again and id_ != TRUNK]
    lists = {step: below(read.payload_of(id_), keys) for id_ in kept for step, keys in machine.lists_of(id_)}
    found = {step: items[:MOST_ITEMS] for step, items in lists.items() if isinstance(items, list)}
    return {**machine.items, **found}


def previous_patch(repository: Repository, name: str, issue: str) -> tuple[str, str]:
    """Return what the earlier run is called, and its work as a patch behind the reasons against it.

    Raises:
        UserError: there is no such run, or it is of another issue.
    """
    roster = Roster(repository)
    place = roster.find(name)
    run = Run.load(place.folder, driving=False)
    if run.issue != issue:
        raise UserError(f"--previous: {place.name} is of {run.issue}, not of {issue}.", Reason.USAGE)
    refused = [line.data for line in run.journal.of(LandingRefused)][-1:]
    told = [f"# {run.info.run_id} was not landed on {said.onto}: {said.found.replace('_', ' ')}" for said in refused]
    told += [f"# {why}" for said in refused for text in said.why for why in text.splitlines()]
    if not refused and run.state.outcome is not None:
        note = next(filter(None, (one.event.note for one in reversed(run.history))), "")  # who abandons says nothing
        told = [f"# {run.info.run_id} ended {run.state.outcome} ({run.state.reason}): {one_line(note)}"]
    patch = repository.patch(run.info.start_tree, work_tree(run))
    return roster.spoken(place.folder), "\n".join([*told, patch])
