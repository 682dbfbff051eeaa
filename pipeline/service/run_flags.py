"""Collects the flags of a run over all its commands, and says what differs since it was last driven."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from pipeline.config import keys
from pipeline.config.layers import EVERY, Flags, key_path
from pipeline.config.sources import Layer, Origin
from pipeline.dispatch.redaction import MARK, redact
from pipeline.engine.events import ConfigChanged, RunResumed
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.routing.state import PARALLEL
from pipeline.runs.info import HIDDEN, without_secrets
from pipeline.service.run_config import config_hash, limits_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.config.load import Loaded
    from pipeline.runs.run import Run
    from pipeline.runs.spending import AnyRun

_LONGEST: Final = 60
_NOWHERE: Final = Origin(Layer.DEFAULT)
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
    before: dict[str, object] = run.info.config if last is None else last.config
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


def _differences(before: Mapping[str, object], after: Mapping[str, object], loaded: Loaded) -> list[str]:
    was, now = _flat(before), _flat(after)
    lines: list[str] = []
    for path in sorted({**was, **now}):
        key = keys.dotted(path)
        origin = loaded.origins.get(key, _NOWHERE)
        added = path not in was and origin.layer is Layer.DEFAULT  # a key of a later version
        if was.get(path) == now.get(path) or added or keys.find(path) is None:
            continue
        where = origin.source.partition(" ")[0] if origin.layer is Layer.FLAG else str(origin)
        pinned = "; not for this run, which keeps what it began with" if key in _PINNED else ""
        lines.append(f"{key}: {_shown(was.get(path))} -> {_shown(now.get(path))} ({where}){pinned}")
    return lines


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
