"""Says how the project's tests are run: a line for each toolchain that a run would take."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.config.folders import state_folder
from pipeline.errors import UserError
from pipeline.languages.projects.combined import projects_in
from pipeline.languages.projects.detection import TOP, choose, looked_for
from pipeline.languages.protocol import Lookup, Missing
from pipeline.languages.table import DEFAULT, LANGUAGES
from pipeline.service.doctor_document import Check
from pipeline.service.ports import require_runner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.load import Loaded
    from pipeline.git import Repository
    from pipeline.languages.projects.project import Project
    from pipeline.languages.protocol import Checkouts, Environment

_FETCH: Final = frozenset(
    {
        "devbox", "devenv", "direnv", "flox", "guix", "hatch", "mise", "nix", "nix-shell", "nox", "pdm", "pipenv",
        "pixi", "poetry", "rye", "tox", "uv", "uvx",
    }
)  # fmt: skip
"""Programs that may fetch packages before they start what is asked of them."""


async def check_tests(repository: Repository, loaded: Loaded, environ: Mapping[str, str]) -> tuple[list[Check], bool]:
    """Return a check for each toolchain, and whether tests can be collected with them, without fetching anything.

    Environments are asked for as a run would, but for what would fetch packages.
    """
    try:
        require_runner(repository, loaded.config)
    except UserError as error:
        advice = f"set [toolchains.NAME] folder, or [toolchains.{DEFAULT.name}] command"
        return [_check("tests", "fail", error.message, advice)], False
    tracked = repository.entries("HEAD") if repository.resolve("HEAD") is not None else ()
    chosen = choose(repository.worktree, loaded.config.toolchains, (entry.path for entry in tracked))
    if chosen is None:
        message = f"no test toolchain recognises this project, {DEFAULT.name} is assumed; looked for {looked_for()}"
        advice = f"set [toolchains.NAME] folder where a project is further down, or [toolchains.{DEFAULT.name}] command"
        return [_check("tests", "warn", message, advice)], False
    several = projects_in(chosen)
    if len(several) == 1:
        check, ready = await _one("tests", several[0], repository, loaded, environ)
        return [check], ready
    found = [(each, *await _one(_id(each), each, repository, loaded, environ)) for each in several]
    checks = [check for _, check, _ in found]
    if all(check.status == "fail" for check in checks):
        return checks, False
    shown = [_left_out(check, loaded, project) if check.status == "fail" else check for project, check, _ in found]
    unknown = any(check.status == "warn" and not ready for _, check, ready in found)
    return shown, not unknown and all(check.status != "fail" for check in shown)


async def _one(
    id_: str, project: Project, repository: Repository, loaded: Loaded, environ: Mapping[str, str]
) -> tuple[Check, bool]:
    """Return what is said of one project, and whether its tests can be collected now."""
    search_path, table = environ.get("PATH", os.defpath), loaded.config.toolchains.settings_of(project.name)
    command = table.command
    if command is not None and Path(command[0]).name in _FETCH:
        message = f"not tried, because it may fetch packages: {' '.join(command)}"
        return _check(id_, "warn", message, "start it once"), False
    known = LANGUAGES[project.name].checkouts if command is None else None
    levels = _levels(project, repository)
    locks = (level for level in levels if known is not None and known.is_locked(level[0], search_path))
    folders = next(locks, None)
    if known is not None and folders is not None:
        there = known.interpreters(folders, locked=True)
        found = [one for one in there if known.has_runner(one, search_path)]
        if not found:
            lacks = f"with a {known.PLACES[0]} that lacks {project.name}" if there else f"without {known.PLACES[0]}"
            message = f"{known.LOCK} {lacks}: the first run makes an environment from it"
            return _check(id_, "warn", message, known.MADE_BY.removesuffix(" --frozen")), False
        command = known.first_run(found[0])
    try:
        state = state_folder(environ)
        lookup = Lookup(repository.worktree, repository.main_checkout, command, state, search_path, table.env)
        env = await project.find_environment(lookup)
    except UserError as error:
        return _check(id_, "fail", error.message, "; ".join(error.actions)), False
    if not isinstance(env, Missing):
        near = tuple(folder for level in levels for folder in level)
        passed = _passed_over(known, near, env) if known is not None and command is None else ()
        if not passed:
            return _check(id_, "ok", _said(project, env)), True
        where = ", ".join(map(str, passed))
        message = f"{_said(project, env)}; not from {where}: it has no {project.name}"
        advice = f"install {project.name} there, or set [toolchains.{project.name}] command if this is meant"
        return _check(id_, "warn", message, advice), True
    if table.setup is not None:
        made = f"not here. A run asks again after its setup: {' '.join(table.setup)}"
        return _check(id_, "warn", f"{made} ({env.sentence})", "start that command once in a fresh checkout"), False
    remedy = env.remedy or f"{project.toolchain.install_hint}, where the project's tests run"
    return _check(id_, "fail", env.sentence, remedy), False


def _levels(project: Project, repository: Repository) -> list[tuple[Path, ...]]:
    """Return the folders in which its environment may be: its own, and those around it, in both checkouts."""
    places = dict.fromkeys((project.folder, project.home or ""))
    checkouts = repository.worktree, repository.main_checkout
    return [tuple(dict.fromkeys(checkout / place for checkout in checkouts)) for place in places]


def _id(project: Project) -> str:
    return f"tests-{project.name}" if project.alone else f"tests-{project.name}-{project.folder or TOP}"


def _passed_over(known: Checkouts, folders: tuple[Path, ...], env: Environment) -> tuple[Path, ...]:
    """Return the environments of the checkouts that come before the one that is used, so that they lack the runner."""
    places = [folder / name for folder in folders for name in known.PLACES]
    before = takewhile(lambda place: place.resolve() != env.prefix.resolve(), places)
    return tuple(place for place in before if place.is_dir())


def _said(project: Project, env: Environment) -> str:
    where = f" in {project.folder}" if project.folder else ""
    return f"{', '.join(env.versions)}{where}: {' '.join(env.command)}"


def _left_out(check: Check, loaded: Loaded, project: Project) -> Check:
    """Return what is wrong with a toolchain beside others that work: a run leaves it out, if nobody asks for it."""
    tables = loaded.config.toolchains
    if tables.is_configured(project.name):
        return check
    message = f"{project.key} is left out, and a task in its files would be refused: {check.message}"
    rest = "or name the others in [toolchains] use"
    return check.model_copy(update={"status": "warn", "message": message, "advice": f"{check.advice}; {rest}"})


def _check(id_: str, status: str, message: str, advice: str = "") -> Check:
    return Check.model_validate({"id": id_, "status": status, "message": message, "advice": advice})
