"""Says how the project's tests are run, and whether those of HEAD can be collected: a run's first step finds it out.

Each toolchain that a run would take is a line. That tests are collected is done in the same box, by the same
toolchain, from the same copy as there. They are only collected, unless the user asks for more: with `doctor --tests`,
or where `[toolchains] outside` is set, they run, and those that fail run once more outside of the box. Nothing is asked
while the repository lacks a trust that it wants: it runs its code.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.app.documents import Check
from pipeline.app.ports import lent_context, require_runner
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.judge.evidence.compare import failing, passed
from pipeline.judge.evidence.observation import Observation, RunState
from pipeline.progress import counted, duration, few
from pipeline.sandbox.boxes.box import open_box
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.projects.combined import TOP, choose, looked_for, projects_in
from pipeline.testing.languages.protocol import Checkouts, Environment, Lookup, Missing, Selection
from pipeline.testing.languages.table import DEFAULT, LANGUAGES
from pipeline.testing.measure import baseline
from pipeline.testing.measure.measuring import UnmeasurableError, measure
from pipeline.testing.measure.regression import flaky

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.config.load import Loaded
    from pipeline.config.model import Config
    from pipeline.repo import Repository
    from pipeline.testing.languages.projects.project import Project
    from pipeline.testing.verification.context import VerificationContext

LIMIT_S: Final = 60.0
"""So long a toolchain may take to collect; a run gives it `timeout_s`."""
_ID: Final = "collection"
_FLAG: Final = "redfirst doctor --tests"
_MEND: Final = "start the tests of a fresh checkout by hand, and mend what they say"
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
        return [Check.fail("tests", error.message, advice)], False
    tracked = repository.entries("HEAD") if repository.resolve("HEAD") is not None else ()
    chosen = choose(repository.worktree, loaded.config.toolchains, (entry.path for entry in tracked))
    if chosen is None:
        message = f"no test toolchain recognises this project, {DEFAULT.name} is assumed; looked for {looked_for()}"
        advice = f"set [toolchains.NAME] folder where a project is further down, or [toolchains.{DEFAULT.name}] command"
        return [Check.warn("tests", message, advice)], False
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
        return Check.warn(id_, message, "start it once"), False
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
            return Check.warn(id_, message, known.MADE_BY.removesuffix(" --frozen")), False
        command = known.first_run(found[0])
    try:
        state = state_folder(environ)
        lookup = Lookup(repository.worktree, repository.main_checkout, command, state, search_path, table.env)
        env = await project.find_environment(lookup)
    except UserError as error:
        return Check.failed(id_, error), False
    if not isinstance(env, Missing):
        near = tuple(folder for level in levels for folder in level)
        passed = _passed_over(known, near, env) if known is not None and command is None else ()
        if not passed:
            return Check.ok(id_, _said(project, env)), True
        where = ", ".join(map(str, passed))
        message = f"{_said(project, env)}; not from {where}: it has no {project.name}"
        advice = f"install {project.name} there, or set [toolchains.{project.name}] command if this is meant"
        return Check.warn(id_, message, advice), True
    if table.setup is not None:
        made = f"not here. A run asks again after its setup: {' '.join(table.setup)}"
        return Check.warn(id_, f"{made} ({env.sentence})", "start that command once in a fresh checkout"), False
    remedy = env.remedy or f"{project.toolchain.install_hint}, where the project's tests run"
    return Check.fail(id_, env.sentence, remedy), False


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


async def check_collection(
    repository: Repository, config: Config, environ: Mapping[str, str], limit_s: float = LIMIT_S
) -> list[Check]:
    """Return what collecting the tests of HEAD shows; nothing where there is no box, which another check says.

    Args:
        repository: The user's, with a commit; it stays as it is.
        config: The configuration; all that it asks for is trusted, and its toolchains have been found.
        environ: The user's environment.
        limit_s: How long each toolchain may take.
    """

    async def collected(lab: VerificationContext, tree: str) -> list[Check]:
        tables = [config.toolchains.settings_of(each.name) for each in projects_in(lab.toolchain)]
        first = next((table.setup for table in tables if table.setup is not None), None)
        if first is not None:
            message = f"not tried: a run collects the tests after its setup: {' '.join(first)}"
            return [Check.warn(_ID, message, f"{_FLAG} starts it, and the tests after it")]
        began = anyio.current_time()
        await lab.prepare(tree)
        seen = await measure(lab, tree, Selection.nothing(), what="collecting the tests of HEAD")
        seconds = anyio.current_time() - began
        if seen.state is RunState.TIMED_OUT and any(table.timeout_s > limit_s for table in tables):
            message = f"not known: collecting the tests took longer than {limit_s:g} s; a run gives them timeout_s"
            return [Check.warn(_ID, message, f"{_FLAG} gives them as long, too")]
        alone = await _run_whole(lab, tree) if config.toolchains.outside and seen.records else []
        return [_seen(repository, seen, seconds), *alone[-1:]]

    return await _asked(repository, _bounded(config, limit_s), environ, lambda _: None, collected) or []


async def check_whole_run(
    repository: Repository, config: Config, environ: Mapping[str, str], say: Callable[[str], None]
) -> list[Check]:
    """Return what all tests of HEAD do in the box, and what those that fail there do outside of it.

    Whoever asks for it permits the latter, as `[toolchains] outside` does; the toolchain's own time limit counts.

    Args:
        repository: As in `check_collection`.
        config: The same.
        environ: The same.
        say: Is told of the progress.
    """
    permitted = config.toolchains.model_copy(update={"outside": True})
    # a run that may not try them outside begins all the same
    ask = partial(_run_whole, parks=config.toolchains.outside)
    found = await _asked(repository, config.model_copy(update={"toolchains": permitted}), environ, say, ask)
    return [not_run("there is no box here that they could fail in")] if found is None else found


def not_run(why: str) -> Check:
    """Return what is said where all tests were to run, and do not."""
    return Check.warn("box", f"the tests of HEAD were not run: {why}")


async def _asked(
    repository: Repository,
    config: Config,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    ask: Callable[[VerificationContext, str], Awaitable[list[Check]]],
) -> list[Check] | None:
    """Return what the tree of HEAD is asked for; None where there is no box: a check-up runs nothing without one."""
    try:
        box = await open_box(config.sandbox.value)
    except UserError:
        return None
    if isinstance(box, NoBox):
        return None
    try:
        with lent_context(repository, config, box, environ, say) as lab:
            return await ask(lab, repository.tree_of("HEAD"))
    except UnmeasurableError as error:
        return [Check.fail(_ID, str(error), _MEND)]
    except UserError as error:
        return [Check.failed(_ID, error)]


async def _run_whole(lab: VerificationContext, tree: str, *, parks: bool = True) -> list[Check]:
    """Return how many tests pass and fail in the box, and last which of them fail there alone.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    began = anyio.current_time()
    await lab.prepare(tree)
    seen = await measure(lab, tree, what="all tests of HEAD, in the box")
    if not seen.records or baseline.no_baseline(lab.repository, seen) is not None:
        return [_seen(lab.repository, seen, anyio.current_time() - began)]
    varying = await flaky(lab, tree, seen)
    failed = [entry for entry in failing(seen) if entry in seen.records and entry not in varying]
    left_out = baseline.skipped(seen)
    alone = await baseline.passing_outside(lab, tree, [*failed, *left_out]) or ()
    took = duration(anyio.current_time() - began)
    counts = [f"{sum(map(passed, seen.records.values()))} pass", f"{len(failed)} fail"]
    counts += [f"{len(left_out)} skipped"] if left_out else []
    counts += [f"{len(varying)} vary ([[quarantine]] names such): {few(sorted(varying))}"] if varying else []
    message = f"{counted(len(seen.records), 'test')} of HEAD in the box: {', '.join(counts)} ({took})"
    if seen.collection_errors:
        message = f"{message}; {baseline.uncollected(lab.repository, seen)}"
    ran = (Check.warn if seen.collection_errors else Check.ok)(_ID, message)
    everywhere = [entry for entry in failed if entry not in alone]
    also = f"; outside of it fails, too: {baseline.which(seen, everywhere)}" if everywhere else ""
    if not alone:
        return [ran, Check.ok("box", f"no test of HEAD fails or is skipped in the box alone{also}")]
    told = Check.fail if parks and len(alone) > lab.config.toolchains.may_differ else Check.warn
    return [ran, told("box", f"{baseline.difference(seen, alone)}{also}", baseline.MEND)]


def _seen(repository: Repository, seen: Observation, seconds: float) -> Check:
    why = baseline.no_baseline(repository, seen)
    if why is None and not seen.records:
        message = "no test of HEAD is found; a run can begin so, and its first tests are the first"
        where = "by python_files (pytest), testMatch (Jest) or include (Vitest)"
        return Check.warn(_ID, message, f"if there are tests, say how their files are called, {where}")
    if why is None:
        message = f"{counted(len(seen.records), 'test')} of HEAD collected, in {seconds:.1f} s; {_FLAG} runs them"
        return Check.ok(_ID, message)
    if seen.state is RunState.COMPLETE and seen.records:  # whether any of these passes, only a run finds out
        return Check.warn(_ID, baseline.uncollected(repository, seen), "mend it first: a run leaves them out")
    return Check.fail(_ID, why, _MEND)


def _bounded(config: Config, limit_s: float) -> Config:
    """Return the configuration in which no toolchain takes longer."""
    tables = {name: config.toolchains.settings_of(name) for name in LANGUAGES}
    longer = {name: table for name, table in tables.items() if table.timeout_s > limit_s}
    update = {name: table.model_copy(update={"timeout_s": limit_s}) for name, table in longer.items()}
    return config.model_copy(update={"toolchains": config.toolchains.model_copy(update=update)})
