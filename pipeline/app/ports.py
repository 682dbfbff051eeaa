"""Builds the ports of one driver: checkout, dispatcher, toolchain, box."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.app.isolation import isolation
from pipeline.app.trust_requests import toolchain_of
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.hub import Hub
from pipeline.run.store import state_of_run
from pipeline.testing.languages.projects.combined import projects_in
from pipeline.testing.languages.projects.detection import choose, looked_for
from pipeline.testing.languages.table import DEFAULT, LANGUAGES
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.config.model import Config
    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun
    from pipeline.sandbox.boxes.box import ProvableBox
    from pipeline.steps.context import DriverContext, Say

    ContextT = TypeVar("ContextT", bound=DriverContext)


def place_of_run(repository: Repository, run: AnyRun, environ: Mapping[str, str]) -> Path:
    """Return the folder outside the repository that is the run's own."""
    return state_of_run(state_folder(environ), repository, run.info.run_id)


def context_of(
    kind: type[ContextT],
    repository: Repository,
    run: AnyRun,
    config: Config,
    box: ProvableBox,
    environ: Mapping[str, str],
    say: Say,
    roles: Sequence[Role] = ISSUE_ROLES,
) -> ContextT:
    """Return the ports of one driver of a run that asks these roles."""
    checkout = PrivateCheckout(repository, place_of_run(repository, run, environ))
    toolchain = toolchain_of(repository, config, run.info.start_commit)
    runners = frozenset(one.name for one in projects_in(toolchain))
    dispatcher = Dispatcher(
        run_folder=run.folder,
        repository=repository,
        checkout=checkout,
        config=config,
        box=box,
        roles=load_roles(runners),
        templates=load_templates(runners),
        search_path=environ.get("PATH", os.defpath),
        run_id=run.info.run_id,
        issue=run.info.issue,
        written=run.written,
        records=run.records,
        results=run.results,
        environ=environ,
        say=say,
    )
    url = config.fleet.hub
    if url is not None and not repository.has_remote(url):
        say(f"    no remote of this repository is the hub {url}, so its runs are not kept there")
        url = None
    return kind(
        hub=None if url is None else Hub(repository, url, config.fleet.wait_s, say),
        run=run,
        repository=repository,
        checkout=checkout,
        config=config,
        box=box,
        dispatcher=dispatcher,
        toolchain=toolchain,
        search_path=dispatcher.search_path,
        environ=environ,
        say=say,
        box_facts=isolation(config, box, roles),
    )


def require_runner(repository: Repository, config: Config) -> None:
    """Refuse a project whose tests nothing here can run: agents would be paid for what nobody measures.

    Sources of the language that is assumed are enough: their first tests may be what the run is for.

    Raises:
        UserError: no language recognises the project.
    """
    tree = repository.resolve("HEAD^{tree}")
    tracked = [entry.path for entry in repository.entries(tree)] if tree is not None else []
    if choose(repository.worktree, config.toolchains, tracked) is not None:
        return
    if any(path.endswith(DEFAULT.sources) for path in tracked):
        return
    raise UserError(
        "No test runner that redfirst supports recognises this project, so nothing could be measured. Supported, and "
        f"what shows each: {looked_for()}. Where a project is further down, say [toolchains.NAME] folder. For one "
        f'that has nothing yet, say [toolchains] use = ["{DEFAULT.name}"]',
        Reason.BASELINE_IMPOSSIBLE,
        details={"supported": list(LANGUAGES)},
        actions=("redfirst doctor",),
    )
