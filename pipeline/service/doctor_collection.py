"""Checks whether the tests of HEAD can be collected: what a run would find out in its first step.

They are collected in the same box, by the same toolchain, from the same copy as there; none of them is run, unless the
user lets what fails in the box run outside of it (`[toolchains] outside`): then both are done once. It is
asked only where the repository wants no trust that it does not have, since collecting runs its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from pipeline.boxes.box import open_box
from pipeline.boxes.nobox import NoBox
from pipeline.errors import UserError
from pipeline.evidence.compare import failing
from pipeline.evidence.observation import RunState
from pipeline.languages.projects.combined import projects_in
from pipeline.languages.protocol import Selection
from pipeline.languages.table import LANGUAGES
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.old_tests.uncollectable import no_baseline, uncollected
from pipeline.measure.outside import MEND, difference, passing_outside
from pipeline.progress import counted
from pipeline.service.doctor_document import Check
from pipeline.service.verification_ports import lent_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.model import Config
    from pipeline.evidence.observation import Observation
    from pipeline.git import Repository
    from pipeline.verification.context import VerificationContext

LIMIT_S: Final = 60.0
"""So long a toolchain may take to collect; a run gives it `timeout_s`."""
_ID: Final = "collection"
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
    try:
        box = await open_box(config.sandbox.value)
    except UserError:
        return []
    if isinstance(box, NoBox):  # it would run the repository's code on this machine, for a mere check-up
        return []
    try:
        with lent_context(repository, _bounded(config, limit_s), box, environ, lambda _: None) as lab:
            tables = [config.toolchains.settings_of(each.name) for each in projects_in(lab.toolchain)]
            first = next((table.setup for table in tables if table.setup is not None), None)
            if first is not None:
                message = f"not tried: a run collects the tests after its setup: {' '.join(first)}"
                return [_check("warn", message, "start that command once in a fresh checkout, and the tests there")]
            tree = repository.tree_of("HEAD")
            began = anyio.current_time()
            await lab.prepare(tree)
            seen = await measure(lab, tree, Selection.nothing(), what="collecting the tests of HEAD")
            seconds = anyio.current_time() - began
            alone = await _in_the_box_alone(lab, tree) if config.toolchains.outside and seen.records else []
    except UnmeasurableError as error:
        return [_check("fail", str(error), _MEND)]
    except UserError as error:
        return [_check("fail", error.message, "; ".join(error.actions))]
    if seen.state is RunState.TIMED_OUT and any(table.timeout_s > limit_s for table in tables):
        message = f"not known: collecting the tests took longer than {limit_s:g} s; a run gives them timeout_s"
        return [_check("warn", message, "start the tests once, and see how long they take")]
    return [_seen(repository, seen, seconds), *alone]


async def _in_the_box_alone(lab: VerificationContext, tree: str) -> list[Check]:
    """Return what the whole suite shows in the box, and its failing tests outside: the user asks for that.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    seen = await measure(lab, tree, what="the tests of HEAD")
    if seen.state is not RunState.COMPLETE:
        message = f"not known: the tests of HEAD did not come to their end in the box: {seen.detail}"
        return [_check("warn", message, "a run gives them timeout_s", "box")]
    failed = [entry for entry in failing(seen) if entry in seen.records]
    alone = await passing_outside(lab, tree, failed)
    if not alone:
        return [_check("ok", f"no test of HEAD fails in the box alone; {len(failed)} fail everywhere", id_="box")]
    too_many = len(alone) > lab.config.toolchains.may_differ
    return [_check("fail" if too_many else "warn", difference(seen, alone), MEND, "box")]


def _seen(repository: Repository, seen: Observation, seconds: float) -> Check:
    why = no_baseline(repository, seen)
    if why is None and not seen.records:
        message = "no test of HEAD is found; a run can begin so, and its first tests are the first"
        return _check("warn", message, "if there are tests, let the project's runner find them by their names")
    if why is None:
        return _check("ok", f"{counted(len(seen.records), 'test')} of HEAD collected, in {seconds:.1f} s")
    if seen.state is RunState.COMPLETE and seen.records:  # whether any of these passes, only a run finds out
        return _check("warn", uncollected(repository, seen), "mend it first: a run leaves these tests out")
    return _check("fail", why, _MEND)


def _bounded(config: Config, limit_s: float) -> Config:
    """Return the configuration in which no toolchain takes longer."""
    tables = {name: config.toolchains.settings_of(name) for name in LANGUAGES}
    longer = {name: table for name, table in tables.items() if table.timeout_s > limit_s}
    update = {name: table.model_copy(update={"timeout_s": limit_s}) for name, table in longer.items()}
    return config.model_copy(update={"toolchains": config.toolchains.model_copy(update=update)})


def _check(status: str, message: str, advice: str = "", id_: str = _ID) -> Check:
    return Check.model_validate({"id": id_, "status": status, "message": message, "advice": advice})
