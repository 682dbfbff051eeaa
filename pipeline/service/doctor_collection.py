"""Checks whether the tests of HEAD can be collected, or runs all of them: what a run would find out in its first step.

That is done in the same box, by the same toolchain, from the same copy as there. They are only collected, unless the
user asks for more: with `doctor --tests`, or where `[toolchains] outside` is set, they run, and those that fail run
once more outside of the box. Nothing is asked while the repository lacks a trust that it wants: it runs its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from pipeline.boxes.box import open_box
from pipeline.boxes.nobox import NoBox
from pipeline.errors import UserError
from pipeline.evidence.compare import failing, passed
from pipeline.evidence.observation import RunState
from pipeline.languages.projects.combined import projects_in
from pipeline.languages.protocol import Selection
from pipeline.languages.table import LANGUAGES
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.old_tests.regression import flaky
from pipeline.measure.old_tests.uncollectable import no_baseline, uncollected
from pipeline.measure.old_tests.unprotected import named
from pipeline.measure.outside import MEND, difference, passing_outside, which
from pipeline.progress import counted, duration
from pipeline.service.doctor_document import Check
from pipeline.service.verification_ports import lent_context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pipeline.config.model import Config
    from pipeline.evidence.observation import Observation
    from pipeline.git import Repository
    from pipeline.verification.context import VerificationContext

LIMIT_S: Final = 60.0
"""So long a toolchain may take to collect; a run gives it `timeout_s`."""
_ID: Final = "collection"
_FLAG: Final = "redfirst doctor --tests"
_MEND: Final = "start the tests of a fresh checkout by hand, and mend what they say"


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
            return [_check("warn", message, f"{_FLAG} starts it, and the tests after it")]
        began = anyio.current_time()
        await lab.prepare(tree)
        seen = await measure(lab, tree, Selection.nothing(), what="collecting the tests of HEAD")
        seconds = anyio.current_time() - began
        if seen.state is RunState.TIMED_OUT and any(table.timeout_s > limit_s for table in tables):
            message = f"not known: collecting the tests took longer than {limit_s:g} s; a run gives them timeout_s"
            return [_check("warn", message, f"{_FLAG} gives them as long, too")]
        alone = await _run_whole(lab, tree) if config.toolchains.outside and seen.records else []
        return [_seen(repository, seen, seconds), *alone[-1:]]

    return await _asked(repository, _bounded(config, limit_s), environ, _in_silence, collected) or []


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
    found = await _asked(repository, config.model_copy(update={"toolchains": permitted}), environ, say, _run_whole)
    return [not_run("there is no box here that they could fail in")] if found is None else found


def not_run(why: str) -> Check:
    """Return what is said where all tests were to run, and do not."""
    return _check("warn", f"the tests of HEAD were not run: {why}", id_="box")


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
        return [_check("fail", str(error), _MEND)]
    except UserError as error:
        return [_check("fail", error.message, "; ".join(error.actions))]


async def _run_whole(lab: VerificationContext, tree: str) -> list[Check]:
    """Return how many tests pass and fail in the box, and last which of them fail there alone.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    began = anyio.current_time()
    await lab.prepare(tree)
    seen = await measure(lab, tree, what="all tests of HEAD, in the box")
    if (why := no_baseline(lab.repository, seen)) is not None:
        return [_check("fail", why, _MEND)]
    varying = await flaky(lab, tree, seen)
    failed = [entry for entry in failing(seen) if entry in seen.records and entry not in varying]
    alone = await passing_outside(lab, tree, failed) or ()
    took = duration(anyio.current_time() - began)
    counts = [f"{sum(map(passed, seen.records.values()))} pass", f"{len(failed)} fail"]
    counts += [f"{len(varying)} vary: {named(sorted(varying))}"] if varying else []
    message = f"{counted(len(seen.records), 'test')} of HEAD in the box: {', '.join(counts)} ({took})"
    if seen.collection_errors:
        message = f"{message}; {uncollected(lab.repository, seen)}"
    ran = _check("warn" if seen.collection_errors or not seen.records else "ok", message)
    everywhere = [entry for entry in failed if entry not in alone]
    also = f"; outside of it fails, too: {which(seen, everywhere)}" if everywhere else ""
    if not alone:
        return [ran, _check("ok", f"no test of HEAD fails in the box alone{also}", id_="box")]
    too_many = len(alone) > lab.config.toolchains.may_differ
    return [ran, _check("fail" if too_many else "warn", f"{difference(seen, alone)}{also}", MEND, "box")]


def _seen(repository: Repository, seen: Observation, seconds: float) -> Check:
    why = no_baseline(repository, seen)
    if why is None and not seen.records:
        message = "no test of HEAD is found; a run can begin so, and its first tests are the first"
        return _check("warn", message, "if there are tests, let the project's runner find them by their names")
    if why is None:
        message = f"{counted(len(seen.records), 'test')} of HEAD collected, in {seconds:.1f} s; {_FLAG} runs them"
        return _check("ok", message)
    if seen.state is RunState.COMPLETE and seen.records:  # whether any of these passes, only a run finds out
        return _check("warn", uncollected(repository, seen), "mend it first: a run leaves these tests out")
    return _check("fail", why, _MEND)


def _in_silence(_: str) -> None:
    pass


def _bounded(config: Config, limit_s: float) -> Config:
    """Return the configuration in which no toolchain takes longer."""
    tables = {name: config.toolchains.settings_of(name) for name in LANGUAGES}
    longer = {name: table for name, table in tables.items() if table.timeout_s > limit_s}
    update = {name: table.model_copy(update={"timeout_s": limit_s}) for name, table in longer.items()}
    return config.model_copy(update={"toolchains": config.toolchains.model_copy(update=update)})


def _check(status: str, message: str, advice: str = "", id_: str = _ID) -> Check:
    return Check.model_validate({"id": id_, "status": status, "message": message, "advice": advice})
