"""Builds the ports of one driver: checkout, dispatcher, toolchain, box; and says what that box holds.

Without a run, for `verify`, `tdd`, `doctor` and `agents try`: what measures, in a box as configured (`lent_context`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.agents.dispatch.transcript import secrets_of_run
from pipeline.agents.gateway.providers import require_providers
from pipeline.app.documents import Check
from pipeline.app.run_config import file_at, uncounted
from pipeline.app.trust_requests import toolchain_of, widening_in
from pipeline.config import trust
from pipeline.config.load import load
from pipeline.config.model import BoxMode, Config
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.repo import Repository, UntouchedRepository
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.hub import Hub
from pipeline.run.store import state_of_run
from pipeline.sandbox.boxes.box import ProvableBox, Trial, advice_of, hinted, open_box, refusal, try_boxes
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.escapes import EscapeError
from pipeline.sandbox.views.overlay import overlay_works
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.projects.combined import choose, looked_for, projects_in
from pipeline.testing.languages.table import DEFAULT, LANGUAGES
from pipeline.testing.verification.context import VerificationContext
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from pipeline.run.spending import AnyRun
    from pipeline.steps.context import DriverContext

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
    say: Callable[[str], None],
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
        secrets=dispatcher.secrets,
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


async def box_of(config: Config, roles: Sequence[Role] = ISSUE_ROLES) -> ProvableBox:
    """Return the box that a run with this configuration uses, which asks these roles.

    Raises:
        UserError: no box holds here, or the one that is asked for cannot keep the network of a role.
    """
    box = await open_box(config.sandbox.value)
    refuse_networks(config, box.networks, box.name, roles)
    return box


def refuse_networks(config: Config, networks: frozenset[str], box: str, roles: Sequence[Role] = ISSUE_ROLES) -> None:
    """Return when the box can keep the network of each of these roles.

    Raises:
        UserError: it cannot.
    """
    for role in roles:
        network = config.agent(role).reaches
        if network not in networks:
            raise UserError(
                f'@{role} has network = "{network}", which the box {box} cannot keep; bubblewrap can.',
                Reason.CONFIG,
                pointer=f"/agents/{role}/network",
                actions=("redfirst doctor",),
            )


def isolation(config: Config, box: ProvableBox, roles: Sequence[Role] = ISSUE_ROLES) -> dict[str, str]:
    """Return what isolates the agents of a run that asks these roles, and who may reach the network."""
    networks = sorted({config.agent(role).reaches.value for role in roles})
    facts = {"sandbox": box.name, "network": ", ".join(networks) or "none"}
    if box.owner is not None:
        facts["user"] = str(box.owner)
    if box.name == "none":
        facts["NOTHING WAS ISOLATED"] = "as configured; the network above is what was asked for, not what was kept"
    if out := [f"@{role}" for role in roles if config.agent(role).reaches is Network.OPEN]:
        facts["OPEN NETWORK"] = f"for {', '.join(out)}: what they can read they can send anywhere"
    return facts


async def check_isolation(mode: BoxMode, state: Path) -> list[Check]:
    """Return what was found: the boxes are tried for real, since what one promises is proven by a probe or not at all.

    Args:
        mode: The configured one.
        state: The folder below which views are made; nothing is made there to find out.
    """
    if mode is BoxMode.NONE:
        message = 'sandbox = "none": agents and tests run without isolation, with your rights'
        advice = 'install bubblewrap and set sandbox = "auto"'
        return [Check.warn("sandbox", message, advice)]
    trials = await try_boxes(mode.value)
    if not trials or not trials[-1].proof.ok:
        error = refusal(trials)
        return [Check.fail("sandbox", error.message, advice_of(trials))]
    return [_used(trials), *_views(trials[-1], state)]


def check_networks(config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Return what would make a run refuse the networks of the roles; nothing where none of them has one."""
    roles = [role for role in ISSUE_ROLES if config.agent(role).reaches is not Network.NONE]
    if not roles:
        return []
    try:
        require_providers(config, environ)
        if config.sandbox is BoxMode.NONE:
            refuse_networks(config, NoBox.networks, config.sandbox)
    except UserError as error:
        return [Check.failed("network", error)]
    said = ", ".join(f"@{role} {config.agent(role).reaches}" for role in roles)
    return [Check.ok("network", f"as configured: {said}")]


def _used(trials: Sequence[Trial]) -> Check:
    used = trials[-1]
    message = f"{used.what}: {used.proof.why}"
    better = [f"{trial.what} does not hold: {trial.proof.why}" for trial in trials[:-1]]
    advice = [trial.proof.advice for trial in trials[:-1] if trial.proof.advice]
    if not better:
        return Check.ok("sandbox", message)
    return Check.warn("sandbox", "; ".join([message, *better]), "; ".join(hinted(advice)))


def _views(used: Trial, state: Path) -> list[Check]:
    there = next(parent for parent in (state, *state.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return []  # said by another check
    fault = overlay_works(there, used.box.owner)
    message = "overlays: a dispatch costs what it changes"
    if fault is not None:
        message = f"copies of the repository, one for each dispatch: {fault}"
    return [Check.ok("views", message)]


_OF_AGENTS: Final = ("agents.", "providers.")


@contextmanager
def opened_context(
    here: Path, environ: Mapping[str, str], say: Callable[[str], None]
) -> Generator[VerificationContext]:
    """Lend what measures for the repository around *here*; with it everything is removed that was written.

    Raises:
        UserError: there is no repository with a commit, no box that holds, or the configuration needs trust; or what
            was measured has changed the repository (reason `escape`).
    """
    repository = Repository.find(here)
    if repository.resolve("HEAD") is None:
        raise UserError("The branch has no commit yet.", Reason.USAGE, path=str(repository.worktree))
    config = _config(repository, environ)
    notes = uncounted(repository, environ)
    for note in notes:
        say(note)
    box = anyio.run(open_box, config.sandbox.value)
    with lent_context(repository, config, box, environ, say, notes) as lent:
        yield lent


@contextmanager
def lent_context(
    repository: Repository,
    config: Config,
    box: ProvableBox,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    notes: tuple[str, ...] = (),
) -> Generator[VerificationContext]:
    """Lend what measures for a repository with a commit; with it everything is removed that was written.

    Args:
        repository: What is measured, and must stay as it is.
        config: The configuration; what it asks for is trusted.
        box: Where tests are run.
        environ: The user's environment.
        say: Is told of the progress.
        notes: See `VerificationContext`.

    Raises:
        UserError: what was measured has changed the repository (reason `escape`).
    """
    with scratch_folder("check") as place:
        untouched = UntouchedRepository.of(repository, place / "objects")
        checkout = PrivateCheckout(untouched, place / "checkout")
        try:
            yield VerificationContext(
                repository=untouched,
                checkout=checkout,
                config=config,
                box=box,
                toolchain=toolchain_of(repository, config, "HEAD"),
                search_path=environ.get("PATH", os.defpath),
                environ=environ,
                say=say,
                secrets=secrets_of_run(repository.worktree, environ, config),
                notes=notes,
            )
        except EscapeError as error:
            raise UserError(
                f"{error}. Look at what changed, and undo what you did not do.",
                Reason.ESCAPE,
                path=str(repository.common_dir),
                details=error.escape.document(),
                actions=("redfirst doctor",),
            ) from error
        finally:
            checkout.close()  # also what tests left without permissions


def _config(repository: Repository, environ: Mapping[str, str]) -> Config:
    """Return the configuration of HEAD; agents may be missing or untrusted, since none is asked."""
    loaded = load(repository.worktree, environ=environ, repo_file=file_at(repository, "HEAD"))
    widening = widening_in(repository, loaded, environ)
    if any(not item.key.startswith(_OF_AGENTS) for item in widening):
        trust.require_trust(widening, repository.common_dir, environ)
    return loaded.config
