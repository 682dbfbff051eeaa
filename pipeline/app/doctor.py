"""Answers each question of the self-check by itself, so that one broken answer hides no other. It changes nothing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline import VERSION
from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.products import require_login
from pipeline.agents.backends.program import ADD, not_shown
from pipeline.agents.dispatch.agent_choice import Choice, choices
from pipeline.app.answer import is_unfinished
from pipeline.app.doctor_tests import check_collection, check_tests, check_whole_run, not_run
from pipeline.app.documents import Check, DoctorDocument
from pipeline.app.init_config import agent_lines, hinted
from pipeline.app.notices import fault_of
from pipeline.app.ports import check_isolation, check_networks
from pipeline.app.recipe_choice import roles_of
from pipeline.app.recipe_files import Origin, RecipeFiles
from pipeline.app.run_config import file_at, uncounted
from pipeline.app.run_list import has_ended, line_at
from pipeline.app.triggers import check_triggers
from pipeline.app.trust_requests import refuse_misfit, unrun_hooks, widening_in
from pipeline.config import trust
from pipeline.config.agents import Backend
from pipeline.config.load import Loaded, load, not_configured, require_agents
from pipeline.config.model import BoxMode, Config
from pipeline.config.sources import tracker_advice, tracker_folder
from pipeline.config.user_folders import home, state_folder
from pipeline.errors import UserError
from pipeline.matrix.recipes.check import checked_source
from pipeline.programs import locate
from pipeline.progress import counted, few
from pipeline.repo import Repository, UnreachableError
from pipeline.run import store
from pipeline.run.hub import CHECKPOINT_REFS, KEPT_REFS
from pipeline.run.preconditions import base_branch, shown_by_live_runs
from pipeline.run.preflight import closed_to_agents, listed, refuse_hidden, refuse_ignored, refuse_unusable, uncommitted
from pipeline.sandbox.boxes.box import ProvableBox, open_box
from pipeline.vocabulary import ISSUE_ROLES, Role
from todo import ErrorKind, FolderSource, Tracker, TrackerError, lint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


_SHOWN = 5


def check_leftovers(repository: Repository, state: Path) -> Check:
    """Return what no run needs any more; runs of other worktrees are only looked at through their claims."""
    try:
        names = frozenset(store.run_names(repository))
    except UserError as error:
        return Check.fail("leftovers", error.message)
    found = [*_stale_claims(repository), *_strays(repository, state, names)]
    if not found:
        return Check.ok("leftovers", "nothing was left over (`redfirst gc` lists what may go later)")
    message = few((what for what, _ in found), _SHOWN, "; ")
    return Check.warn("leftovers", message, "; ".join(mend for _, mend in found[:_SHOWN] if mend))


def _stale_claims(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield the claims whose run is gone or has ended, in words, with the command that takes each away.

    Each keeps an issue from being worked on.
    """
    for issue, claim in store.claims(repository).items():
        if isinstance(claim, UserError):
            yield claim.message, ""
            continue
        ref, folder = store.claim_ref(issue), Path(claim.worktree) / store.WORKFLOW / claim.run.rpartition("/")[2]
        said = f"{issue} is claimed by {claim.run}, which"
        if not (folder / "run.json").is_file():
            yield f"{said} is gone ({ref})", f"redfirst abandon {issue}"
        elif not is_unfinished(folder):
            yield f"{said} has ended ({ref})", f"git update-ref -d {ref}"


def _strays(repository: Repository, state: Path, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the private folders and the refs of this worktree's runs that are gone, with the commands as above.

    A ref that has the record of an ended run is what is left of it on purpose: `verify` reads the evidence there.
    """
    place = store.state_of_run(state, repository, "run")
    suffix = place.name.removeprefix("run")
    for path in sorted(place.parent.glob(f"*{suffix}")) if place.parent.is_dir() else ():
        if path.name.removesuffix(suffix) not in names:
            yield f"{path} belongs to no run", f"rm -r {shlex.quote(str(path))}"
    for prefix in (store.RUN_REFS, store.PUBLISH_REFS, KEPT_REFS):
        refs = repository.refs(f"{prefix}{store.worktree_key(repository)}/")
        for ref, oid in ((ref, oid) for ref, oid in refs.items() if ref.rpartition("/")[2] not in names):
            line = line_at(repository, ref.removeprefix(prefix), oid) if prefix == store.RUN_REFS else None
            if line is None or not has_ended(line):
                yield f"{ref} belongs to no run", f"git update-ref -d {ref}"


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
            error = UserError(message, refused[role].reason, actions=refused[role].actions)
            check = Check.failed(f"agent-{role.value}", hinted(error, environ, ask_versions=False))
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


def _agent(loaded: Loaded, role: Role, environ: Mapping[str, str]) -> Check:
    id_, search_path = f"agent-{role.value}", environ.get("PATH", os.defpath)
    try:
        for agent in loaded.config.candidates(role):
            if agent.backend.value in BACKENDS:
                BACKENDS[agent.backend.value].require(agent, search_path)
                require_login(agent, home(environ))
        message = ", else ".join(_said(choice, search_path) for choice in choices(loaded.config, role))
    except UserError as error:
        return Check.failed(id_, error)
    if loaded.config.sandbox is not BoxMode.NONE:
        for agent in loaded.config.candidates(role):
            if agent.backend is not Backend.COMMAND:
                continue
            shown = [mount.target for mount in locate(agent.argv[0], search_path).mounts]
            unseen = not_shown(agent.argv, (*shown, *map(Path, agent.read)))
            if unseen:
                return Check.warn(id_, f"{message}; the box does not show {unseen[0]}", ADD)
    return Check.ok(id_, message)


def _said(choice: Choice, search_path: str) -> str:
    agent = choice.agent
    match agent.backend:
        case Backend.COMMAND:
            return f"command: {locate(agent.argv[0], search_path).path}, network {agent.reaches}"
        case Backend.SCRIPTED:
            return f"scripted: {agent.script}"
        case _:
            return str(choice)


_GIT_NEEDED: Final = (2, 36)
_GIT_WHY: Final = "since then core.fsmonitor=false switches a project's file monitor off instead of naming a hook"
_MIB: Final = 1024 * 1024
_LITTLE: Final = 1024 * _MIB
_TOO_LITTLE: Final = 100 * _MIB


async def checkup(
    here: Path, environ: Mapping[str, str], say: Callable[[str], None] | None = None, *, agents: bool = False
) -> DoctorDocument:
    """Return what was found.

    Args:
        here: The folder the user stands in.
        environ: The user's environment.
        say: Run all tests of HEAD in the box, and those that fail there outside of it; it is told of the progress.
        agents: Also start the agents that are installed: their version, and whether the box holds them.
    """
    checks = [_git_version(environ)]
    try:
        repository = Repository.find(here)
    except UserError as error:
        checks.append(_failed("repository", error))
        repository = None
    loaded: Loaded | None = None
    if repository is not None and (fault := _fault(refuse_unusable, repository)) is not None:
        checks.append(fault)  # what else is asked of git could fail for the same reason
        repository = None
    if repository is not None:
        loaded, configured = _config(repository, environ)
        checks += [*_repository(repository, loaded), _tracker(repository), configured]
        checks += [fault] if (fault := _fault(refuse_hidden, repository)) is not None else []
        if repository.resolve("HEAD") is not None and (
            told := closed_to_agents(repository, repository.worktree, "HEAD")
        ):
            checks.append(Check.warn("filters", told, "leave such files out of issues, and change them by hand"))
    if repository is not None and loaded is not None:
        checks += [*_conventions(repository, loaded), *_hub(repository, loaded.config)]
        trusted, may_ask = _trust(repository, loaded, environ)
        checks += [trusted, *check_agents(loaded, environ, asked_roles(repository, loaded, environ))]
        checks += [*check_networks(loaded.config, environ), *check_triggers(repository, environ, loaded)]
        if may_ask:
            found, ready = await check_tests(repository, loaded, environ)
            checks += found
            may_start = trusted.status == "ok" and repository.resolve("HEAD") is not None
            if say is None:
                checks += await check_collection(repository, loaded.config, environ) if ready and may_start else []
            elif may_start and all(check.status != "fail" for check in found):  # what is missing, a run makes, too
                checks += await check_whole_run(repository, loaded.config, environ, say)
            else:
                checks.append(not_run("mend first what is said above"))
        else:
            message = "not looked for: that would start what the repository asks for, which you have not allowed"
            checks.append(Check(id="tests", status="warn", message=message, same_as="trust"))
    mode = BoxMode.AUTO if loaded is None else loaded.config.sandbox
    checks += await check_isolation(mode, state_folder(environ))
    checks.append(_state(state_folder(environ)))
    if repository is not None:
        checks.append(check_leftovers(repository, state_folder(environ)))
    if repository is not None and loaded is not None and loaded.config.notify:
        checks += _notices(repository, loaded, environ)
    found = await agent_lines(environ, await _box(mode) if agents else None, thorough=agents)
    statuses = {check.status for check in checks}
    proceed = "block" if "fail" in statuses else "judge" if "warn" in statuses else "true"
    return DoctorDocument(ok=proceed != "block", proceed=proceed, checks=tuple(checks), version=VERSION, agents=found)


async def _box(mode: BoxMode) -> ProvableBox | None:
    try:
        return await open_box(mode.value)
    except UserError:  # said by the check of the box
        return None


def _failed(id_: str, error: UserError) -> Check:
    message = "; ".join(error.message.splitlines())
    advice = "; ".join(error.actions) or (f"mend {error.path}" if error.path else "")
    return Check.fail(id_, message, advice)


def _fault(check: Callable[[Repository], None], repository: Repository) -> Check | None:
    """Return what a run would refuse; None where it would not."""
    try:
        check(repository)
    except UserError as error:
        return _failed("repository", error)
    return None


def _notices(repository: Repository, loaded: Loaded, environ: Mapping[str, str]) -> list[Check]:
    """Return what keeps somebody from being notified, and what was given up."""
    each = (fault_of(repository, name, sink, environ) for name, sink in loaded.config.notify.items())
    found = [Check.warn("notify", *fault) for fault in each if fault is not None]
    return found or [Check.ok("notify", f"{', '.join(loaded.config.notify)}: nothing was given up")]


def _git_version(environ: Mapping[str, str]) -> Check:
    program = shutil.which("git", path=environ.get("PATH"))
    if program is None:
        return Check.fail("git", "git is not on PATH", "install git 2.36 or newer")
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, process_group=0, check=False)
    said = asked.stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    needed = f"{_GIT_NEEDED[0]}.{_GIT_NEEDED[1]}"
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _GIT_NEEDED:
        message = f"{said or 'git'} is too old: {needed} is needed, {_GIT_WHY}"
        return Check.fail("git", message, f"install git {needed} or newer")
    return Check.ok("git", f"{said} ({needed} or newer is needed)")


def _repository(repository: Repository, loaded: Loaded | None) -> Iterator[Check]:
    """Yield what a run would say of branch, base, worktree and identity before it starts."""
    branch = _branch(repository, loaded.config.base if loaded is not None else None)
    yield branch
    yield _clean(repository, branch)
    try:
        name, address = repository.identity()
        yield Check.ok("identity", f"git commits as {name} <{address}>")
    except UserError as error:
        yield _failed("identity", error)


def _branch(repository: Repository, base: str | None) -> Check:
    branch = repository.branch()
    if branch is None:
        return Check.warn("repository", "HEAD is detached: a run commits to a branch", "git switch -c NAME")
    if repository.resolve("HEAD") is None:
        message = f"{branch} has no commit yet: a run starts from one"
        return Check.fail("repository", message, "git add --all && git commit")
    try:
        found = base_branch(repository, "ISSUE", base)
    except UserError:
        advice = 'name it: redfirst run ISSUE --base REF, or base = "REF" in redfirst.toml'
        return Check.warn("repository", f"the base branch {base or 'main or master'} does not exist", advice)
    if branch == found:
        advice = "git switch -c NAME, or redfirst run ISSUE --worktree"
        return Check.warn("repository", f"you stand on {branch}, the base branch: a run refuses that", advice)
    return Check.ok("repository", f"{repository.worktree}, branch {branch}, base {found}")


def _conventions(repository: Repository, loaded: Loaded) -> Iterator[Check]:
    """Yield what a repository asks of commits and a run does not keep."""
    for hook in unrun_hooks(repository, loaded.config):
        yield Check.warn("hooks", hook.told(), f'[commits] hooks = ["{hook.name}"]')
    try:
        refuse_misfit(loaded.config, "GAL-1")
    except UserError as error:
        yield Check.warn("commits", f"for an issue GAL-1: {error.message}", "mend [commits]")


def _clean(repository: Repository, told: Check) -> Check:
    """Return what is uncommitted; *told* says already where there is no commit at all."""
    shown = shown_by_live_runs(repository)
    found = uncommitted(repository, *shown)
    if not found.paths:
        but = f", but for {listed(shown)}, which a live run has rewritten" if shown else ""
        return Check.ok("worktree", f"nothing is uncommitted{but}")
    parts = [f"uncommitted: {listed(found.work)}"] if found.work else []
    parts += [f"made by tools, and not ignored: {listed(found.made)}"] if found.made else []
    message = f"{'; '.join(parts)}; a run refuses that"
    advice = ["commit or stash it"] if found.work else []
    if found.made:
        advice.append(f"add {', '.join(found.patterns)} to .gitignore and commit that, or to .git/info/exclude")
    same_as = told.id if told.status == "fail" else None
    return Check(id="worktree", status="warn", message=message, advice="; ".join(advice), same_as=same_as)


def _hub(repository: Repository, config: Config) -> Iterator[Check]:
    """Yield whether the hub of a fleet can be reached, where one is configured."""
    url = config.fleet.hub
    if url is None:
        return
    if not repository.has_remote(url):
        message = f"no remote of this repository is {url}: its runs are not kept at the hub"
        yield Check.warn("hub", message, f"git remote add hub {shlex.quote(url)}")
        return
    try:
        count = len(repository.remote_refs(url, f"{CHECKPOINT_REFS}*"))
    except UnreachableError as error:
        yield Check.fail("hub", f"{url} is out of reach: {error.first_line}", f"git ls-remote {shlex.quote(url)}")
        return
    yield Check.ok("hub", f"{url} answers, and has {counted(count, 'run')}")


def _tracker(repository: Repository) -> Check:
    folder = repository.worktree / tracker_folder(repository.worktree)
    tracker = Tracker(FolderSource(folder))
    try:
        problems = lint(tracker)
        ready = len(tracker.ready())
    except TrackerError as error:
        if error.kind is ErrorKind.TRACKER_MISSING:
            message = f"there is no folder {folder.name}/ yet: the first issue makes it"
            return Check.warn("tracker", message, "redfirst issue new --title TITLE")
        return Check.fail("tracker", f"{folder.name}: {error.message}", tracker_advice(folder))
    issues = tracker.issues()
    try:
        for issue in issues[:1]:
            refuse_ignored(repository, f"{folder.name}/{issue.id}.md")
    except UserError as error:
        return _failed("tracker", error)
    if problems and not issues:
        message = f"{folder.name}: no issue can be read. {problems[0].message}"
        return Check.fail("tracker", message, "redfirst issue lint")
    if problems:
        message = f"{folder.name} has {counted(len(problems), 'problem')}. The first: {problems[0].message}"
        return Check.warn("tracker", message, "redfirst issue lint")
    return Check.ok("tracker", f"{folder.name} is sound, and {counted(ready, 'issue')} can be worked on")


def _config(repository: Repository, environ: Mapping[str, str]) -> tuple[Loaded | None, Check]:
    try:
        loaded = load(repository.worktree, environ=environ, repo_file=file_at(repository, "HEAD"))
    except UserError as error:
        return None, _failed("config", error)
    sources = sorted({origin.source for origin in loaded.origins.values() if origin.source})
    message = f"from {', '.join(sources)}" if sources else "defaults only"
    if notes := uncounted(repository, environ):
        broken = len(notes) > 1
        advice = "mend the file as it lies there, before you commit it" if broken else "git commit --all"
        return loaded, Check.warn("config", "; ".join((message, *notes)), advice)
    return loaded, Check.ok("config", message)


def _trust(repository: Repository, loaded: Loaded, environ: Mapping[str, str]) -> tuple[Check, bool]:
    """Return what is said of trust, and whether the repository's tests may be looked for."""
    try:
        widening = widening_in(repository, loaded, environ)
        trusted = trust.is_trusted(widening, repository.common_dir, environ)
    except UserError as error:
        return _failed("trust", error), False
    if not widening:
        return Check.ok("trust", "the repository asks for nothing that needs trust"), True
    keys = ", ".join(item.key for item in widening)
    if trusted:
        return Check.ok("trust", f"you allowed {keys}"), True
    message = f"the repository asks for {keys}, which you have not allowed"
    advice = ", ".join(("read the values, then: redfirst trust", *trust.instead(widening)))
    starts = any(item.is_file or item.key.startswith("toolchains.") for item in widening)
    return Check.fail("trust", message, advice), not starts  # looking for the tests would start what it asks for


def _state(folder: Path) -> Check:
    """Say whether the private checkouts have a place; nothing is made to find that out."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check.fail("state", f"{there} cannot be written", "mend its permissions, or set XDG_STATE_HOME")
    free = shutil.disk_usage(there).free
    message = f"{folder}: {free // _MIB} MiB free"
    if free < _TOO_LITTLE:
        return Check.fail("state", message, "free disk space, or set XDG_STATE_HOME")
    if free < _LITTLE:
        return Check.warn(
            "state", message, "free disk space: each run holds a checkout, its views and measurements there"
        )
    return Check.ok("state", message)
