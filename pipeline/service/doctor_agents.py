"""Says who plays each role, for the self-check."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends import BACKENDS
from pipeline.backends.command import ADD, not_shown
from pipeline.backends.logins import require_login
from pipeline.config.agents import Backend
from pipeline.config.folders import home
from pipeline.config.load import not_configured, require_agents
from pipeline.config.model import BoxMode
from pipeline.dispatch.agent_choice import choices
from pipeline.errors import UserError
from pipeline.programs import locate
from pipeline.recipes.check import checked_source
from pipeline.routing.vocabulary import ISSUE_ROLES, Role
from pipeline.service.doctor_document import Check
from pipeline.service.installed import hinted
from pipeline.service.recipe_choice import roles_of
from pipeline.service.recipe_files import Origin, RecipeFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.config.load import Loaded
    from pipeline.dispatch.agent_choice import Choice
    from pipeline.git import Repository

_NOBODY: Final = frozenset({Backend.SCRIPTED, Backend.HUMAN, Backend.COMMAND, Backend.OFF, Backend.BUILTIN})
"""Backends of which nothing is known of who answers."""
_SAME: Final = (
    "the same as @make: another agent or model in [agents.check] would look at its work with other eyes, which counts "
    "most in the recipe solo"
)


def asked_roles(repository: Repository, loaded: Loaded, environ: Mapping[str, str]) -> tuple[Role, ...]:
    """Return who is asked here: the roles of an issue, and those that only recipes ask.

    These are asked by a recipe of the repository or of yours; or they have a table of their own.
    """
    library = RecipeFiles(repository, repository.resolve("HEAD"), environ)
    tables = (key.split(".")[1] for key in loaded.origins if key.startswith("agents.") and key.count(".") > 1)
    asked = {Role(name) for name in tables if name in set(Role)}
    for name, origin in library.all():
        if origin is Origin.BUILTIN:
            continue
        try:
            recipe = checked_source(library.read(name, origin), library).recipe
        except UserError:  # `recipes list` says what is wrong with it
            continue
        asked |= set(roles_of(recipe)) if recipe is not None else set()
    return (*ISSUE_ROLES, *(role for role in Role if role not in ISSUE_ROLES and role in asked))


def check_agents(loaded: Loaded, environ: Mapping[str, str], roles: Sequence[Role] = ISSUE_ROLES) -> list[Check]:
    """Return a check for each role; what is wrong with several of them is told by the first one."""
    refused = {role: error for role in roles if (error := _refusal(loaded, role)) is not None}
    causes = {role: (str(error.details["backend"]), str(error.details["missing"])) for role, error in refused.items()}
    told: dict[tuple[str, str] | str, str] = {}
    found: list[Check] = []
    for role in roles:
        cause = causes.get(role)
        if cause is not None:
            is_shared = list(causes.values()).count(cause) > 1
            message = not_configured(*cause) if is_shared else refused[role].message
            check = _not_configured(role, refused[role], message, environ)
        else:
            check = _agent(loaded, role, environ)
        same = told.setdefault(cause or check.message, check.id)
        is_told = check.status == "fail" and same != check.id
        update = {"message": f"as {same}", "advice": "", "same_as": same}
        found.append(check.model_copy(update=update) if is_told else check)
    return [_beside_the_writer(loaded, check) for check in found]


def _beside_the_writer(loaded: Loaded, check: Check) -> Check:
    """Return the check of @check with a word on who writes, where that is the same agent with the same model."""
    if check.id != f"agent-{Role.CHECK.value}" or check.status != "ok":
        return check
    with suppress(UserError):  # of @make, which has a check of its own
        one, other = (choices(loaded.config, role)[0] for role in (Role.CHECK, Role.MAKE))
        if one.agent.backend not in _NOBODY and str(one) == str(other):
            return check.model_copy(update={"message": f"{check.message}; {_SAME}"})
    return check


def _refusal(loaded: Loaded, role: Role) -> UserError | None:
    try:
        require_agents(loaded, [role])
    except UserError as error:
        return error
    return None


def _not_configured(role: Role, error: UserError, message: str, environ: Mapping[str, str]) -> Check:
    """Return the check of a role whose agent lacks a key: in the words of a run, which name what is installed."""
    told = hinted(UserError(message, error.reason, actions=error.actions), environ, ask_versions=False)
    return Check(id=f"agent-{role.value}", status="fail", message=told.message, advice="; ".join(told.actions))


def _agent(loaded: Loaded, role: Role, environ: Mapping[str, str]) -> Check:
    id_, search_path = f"agent-{role.value}", environ.get("PATH", os.defpath)
    try:
        for agent in loaded.config.candidates(role):
            if agent.backend.value in BACKENDS:
                BACKENDS[agent.backend.value].require(agent, search_path)
                require_login(agent, home(environ))
        message = ", else ".join(_said(choice, search_path) for choice in choices(loaded.config, role))
    except UserError as error:
        return Check(id=id_, status="fail", message=error.message, advice="; ".join(error.actions))
    if loaded.config.sandbox is not BoxMode.NONE:
        for agent in loaded.config.candidates(role):
            if agent.backend is not Backend.COMMAND:
                continue
            shown = [mount.target for mount in locate(agent.argv[0], search_path).mounts]
            unseen = not_shown(agent.argv, (*shown, *map(Path, agent.read)))
            if unseen:
                return Check(id=id_, status="warn", message=f"{message}; the box does not show {unseen[0]}", advice=ADD)
    return Check(id=id_, status="ok", message=message)


def _said(choice: Choice, search_path: str) -> str:
    agent = choice.agent
    match agent.backend:
        case Backend.COMMAND:
            return f"command: {locate(agent.argv[0], search_path).path}, network {agent.reaches}"
        case Backend.SCRIPTED:
            return f"scripted: {agent.script}"
        case _:
            return str(choice)
