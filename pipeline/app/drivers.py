"""Starts redfirst as a process of its own, which lives on when whoever started it ends; stops one that drives a run.

Asked once, a driver lets agents answer; asked twice, it ends what they do. An agent of another program may do so, too:
run recipes that its user allows, look at runs, stop its own. Nothing here answers a gate.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from pipeline.app.documents import standing_of
from pipeline.app.recipe_choice import chosen, unsound, values_of
from pipeline.app.recipe_files import BUILTIN, Origin, RecipeFile, RecipeFiles
from pipeline.app.run_config import read_config, refuse_recursion
from pipeline.config.layers import Flags
from pipeline.config.problems import did_you_mean
from pipeline.config.user_folders import state_folder
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.recipes.check import checked_source
from pipeline.matrix.recipes.model import Kind, Recipe
from pipeline.matrix.recipes.plan import inputs_of
from pipeline.matrix.recipes.rules import not_for_agents
from pipeline.outcomes import Outcome, Reason
from pipeline.run.activity_file import read_now
from pipeline.run.files import disk
from pipeline.run.info import RunInfo
from pipeline.run.lease import FileLease, driver_of
from pipeline.run.recipe_run import load_run
from pipeline.run.records import read_record
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import WORKFLOW, gone_on, run_names
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.repo import Repository


_PROGRAM: Final = "import redfirst; redfirst.main()"
_BEGINS_S: Final = 30
_LANDS_S: Final = 20
"""Seconds for which somebody waits for an answer; to measure again can take longer."""
_POLL_S: Final = 0.05
_MOST_KEPT: Final = 50


def resume(folder: Path) -> None:
    """Let a process of its own go on with the run in *folder*; return once it is driven, or has been.

    Raises:
        UserError: it does not go on, and why.
    """
    place = new_place(os.environ)
    process = start_process(["resume", folder.name, "--json"], folder.parents[1], os.environ, place)
    until = time.monotonic() + _BEGINS_S
    while time.monotonic() < until and driver_of(folder) is None:  # a worker may have been quicker
        if process.poll() is not None:
            document_in(place)
            return
        time.sleep(_POLL_S)


def land(name: str, worktree: Path) -> None:
    """Let a process of its own put the commits of a run on their base; return when it has, or is still measuring.

    Raises:
        UserError: they did not go there, and why.
    """
    place = new_place(os.environ)
    process = start_process(["land", name, "--json"], worktree, os.environ, place)
    try:
        process.wait(_LANDS_S)
    except subprocess.TimeoutExpired:  # the run's journal will say what came of it
        return
    for line in document_in(place)["runs"]:
        if line["status"] in {"waits", "refused"}:
            reason = Reason.LOCKED if line["status"] == "waits" else Reason.STALE
            raise UserError(". ".join(line["why"]), reason, actions=tuple(line["safe_next_actions"]))


def work(worktree: Path) -> None:
    """Let a process of its own drive what is in the queue, until nothing is left that can begin."""
    start_process(["work", "--once"], worktree, os.environ, new_place(os.environ))


def start_process(
    argv: Sequence[str], worktree: Path, environ: Mapping[str, str], place: Path
) -> subprocess.Popen[bytes]:
    """Return redfirst, as it was started in a worktree; what it says is in a folder of its own."""
    with (place / "result.json").open("wb") as out, (place / "log.txt").open("wb") as err:
        process = subprocess.Popen(  # -P: nothing is imported from the repository
            [sys.executable, "-P", "-c", _PROGRAM, *argv],
            cwd=worktree,
            env={**environ, "PATH": without_the_repository(environ.get("PATH", ""), worktree)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # nothing of it stays when it has ended
    return process


def document_in(place: Path, otherwise: str = "It ended without an answer") -> dict[str, Any]:
    """Return the document of a process that has ended and had something to do.

    Raises:
        UserError: it had not, and why.
    """
    try:
        document: dict[str, Any] = json.loads((place / "result.json").read_bytes())
    except ValueError:
        log = (place / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
        raise UserError(f"{otherwise}: {log[-500:]}", Reason.ENVIRONMENT, path=str(place)) from None
    facts: dict[str, Any] | None = document.get("error")
    if facts is None:
        return document
    raise UserError(
        str(facts["message"]),
        Reason(facts["kind"]) if facts["kind"] in set(Reason) else Reason.ENVIRONMENT,
        path=facts["path"],
        pointer=facts["pointer"],
        details=facts["details"],
        actions=tuple(facts["safe_next_actions"]),
    )


def new_place(environ: Mapping[str, str], name: str = "drivers") -> Path:
    """Return a new folder for what a process is begun with and says; the oldest are removed."""
    folder = state_folder(environ) / name
    with disk(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)[:-_MOST_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=folder))


def ended_within(folder: Path, seconds: float) -> bool:
    """Return whether nobody drives a run any more; waited for so long at most."""
    driver = _driver(folder)
    if driver is None:
        return True
    try:
        waiting = select.poll()
        waiting.register(driver, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(driver)


def asked_to_stop(folder: Path) -> bool:
    """Ask the driver of a run to stop; return whether there is one."""
    driver = _driver(folder)
    if driver is None:
        return False
    try:
        signal.pidfd_send_signal(driver, signal.SIGTERM)
    except ProcessLookupError:
        return False
    finally:
        os.close(driver)
    return True


def stopped_within(folder: Path, *waits: float) -> bool:
    """Ask the driver of a run to stop, once for each wait, the second time at once; return whether nobody drives it."""
    return any(not asked_to_stop(folder) or ended_within(folder, seconds) for seconds in waits)


def _driver(folder: Path) -> int | None:
    """Return a descriptor of the process that drives a run, None where none does."""
    driver = driver_of(folder)
    handle = None if driver is None else driver.open()
    if handle is None or driver_of(folder) == driver:  # it was this very process that held the lease
        return handle
    os.close(handle)
    return None


STOPS_S: Final = (3.0, 30.0)
"""How long a run is waited for after the first signal, which lets agents answer, and after the second."""
_AT_ONCE_S: Final = (1.0, 30.0)
"""The same where nobody is let answer: two signals at once would be one."""


class StoppedDocument(Frozen):
    """How a run stands that was asked to stop. Where it is not `stopped` yet, `waits_for` says what it lets end."""

    schema_: Literal["redfirst.stopped/1"] = Field(default="redfirst.stopped/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    stopped: bool
    waits_for: tuple[str, ...]
    outcome: Outcome | None
    reason: Reason | None
    safe_next_actions: tuple[str, ...]


def stop(folder: Path, *, now: bool = False) -> StoppedDocument:
    """Ask the process that drives a run to stop, with everything kept so that the run can go on.

    Args:
        folder: Of the run.
        now: End what agents do at once, to be asked again; else they may answer first, since that is paid for.

    Raises:
        UserError: nobody drives the run, or a process of another machine or container does.
    """
    name = folder.name
    if not FileLease.is_held(folder):
        how = standing_of(load_run(folder, driving=False), "interrupted")
        if (host := gone_on(folder)) is not None:
            raise UserError(
                f"Nobody drives {name} here: {host} goes on with it. Stop it there.",
                Reason.SUPERSEDED,
                actions=("redfirst fleet runs",),
            )
        raise UserError(
            f"Nobody drives {name} ({how}), so there is nothing to stop.",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    if driver_of(folder) is None and FileLease.is_held(folder):
        raise UserError(
            f"The process that drives {name} cannot be seen from here. Stop it where it was started.",
            Reason.LOCKED,
            path=str(folder / "lock"),
            actions=(f"redfirst show {name}",),
        )
    stopped = stopped_within(folder, *(_AT_ONCE_S if now else STOPS_S[:1]))
    run = load_run(folder, driving=False)
    on = (f"redfirst resume {name}", f"redfirst abandon {name}")
    waits = (f"redfirst stop {name} --now", f"redfirst show {name} --log --follow")
    return StoppedDocument(
        run_id=name,
        stopped=stopped,
        waits_for=() if stopped else tuple(one.what for one in read_now(folder, run.journal.epoch)),
        outcome=run.state.outcome if stopped else None,
        reason=run.state.reason if stopped else None,
        safe_next_actions=() if run.state.has_ended else on if stopped else waits,
    )


MOST_LIVE: Final = 3
"""Runs that agents have begun here and that are driven at the same time."""
_APPEARS_S: Final = 40
_PLACES: Final = "agent-runs"


class AgentRuns:
    """Recipes and runs as an agent may use them, in one worktree.

    Args:
        repository: Where the agent works.
        environ: The environment that it was given.
    """

    def __init__(self, repository: Repository, environ: Mapping[str, str]) -> None:
        refuse_recursion(environ)
        self.repository = repository
        self.environ = environ

    # --- recipes ---------------------------------------------------------------------------------------------------

    def allowed(self) -> tuple[str, ...]:
        """Return the names of the recipes that may be run: as the user lists them, else built-in ones that only read.

        Raises:
            UserError: the configuration is broken.
        """
        tip = self.repository.resolve("HEAD") or ""
        listed = read_config(self.repository, tip, Flags(), self.environ).config.mcp.allow
        if listed is not None:
            return listed
        names = (f"{BUILTIN}{name}" for name, origin in self._library().all() if origin is Origin.BUILTIN)
        return tuple(name for name in names if _only_reads(chosen(self._library(), name).recipe))

    def recipe(self, name: str) -> Recipe:
        """Return a recipe that may be run.

        Raises:
            UserError: it is not allowed, or not sound.
        """
        allowed = self.allowed()
        if name not in allowed:
            near = did_you_mean(name, allowed)
            hint = f' Did you mean "{near}"?' if near else ""
            raise UserError(
                f'"{name}" is no recipe that an agent may run here.{hint} The user says which are, in [mcp] allow.',
                Reason.RECIPE_NOT_FOUND,
                details={"accepted": list(allowed), "did_you_mean": near},
            )
        return chosen(self._library(), name, self.repository).recipe

    def _library(self) -> RecipeFiles:
        return RecipeFiles(self.repository, self.repository.resolve("HEAD"), self.environ)

    # --- runs ------------------------------------------------------------------------------------------------------

    def begin(self, name: str, inputs: Mapping[str, str]) -> Path:
        """Begin a run of an allowed recipe; return its folder.

        Raises:
            UserError: it cannot begin.
        """
        self.recipe(name)
        values_of(chosen(self._library(), name), name, inputs)
        return self._begin(name, inputs, new_place(self.environ, _PLACES))

    def begin_own(self, spec: str, inputs: Mapping[str, str]) -> Path:
        """Begin a run of a recipe that the agent wrote; return the run's folder.

        Raises:
            UserError: it is not sound, does more than ask readers, or cannot begin.
        """
        file = RecipeFile("", "spec", spec, Origin.FILE)
        found = checked_source(file, self._library())
        problems = found.problems
        if found.recipe is not None:
            problems = not_for_agents(found.recipe) or inputs_of(found.recipe, inputs)[1]
        if problems:
            error = unsound("spec", file, problems)
            error.actions = ()  # it is in no file that could be looked at
            raise error
        path = new_place(self.environ, _PLACES) / "recipe.yaml"
        path.write_text(spec, encoding="utf-8")
        return self._begin(str(path), inputs, path.parent)

    def own(self, name: str) -> Path:
        """Return the folder of a run that an agent began.

        Raises:
            UserError: there is no such run, or somebody else began it.
        """
        folder = Roster(self.repository).find(name).folder
        if not _is_of_agent(folder):
            raise UserError(f"{folder.name} was not begun by an agent, so no agent ends it.", Reason.USAGE)
        return folder

    def stop(self, name: str) -> Path:
        """Stop the driver of a run that an agent began, with all kept so that a person can resume it.

        Raises:
            UserError: there is no such run, somebody else began it, or it does not stop in time.
        """
        folder = self.own(name)
        if stopped_within(folder, *STOPS_S):
            return folder
        raise UserError(f"{folder.name} has not stopped yet. It will.", Reason.LOCKED)

    def _begin(self, word: str, inputs: Mapping[str, str], place: Path) -> Path:
        self._refuse_many()
        given = [f"{key}={value}" for key, value in inputs.items()]
        argv = ["run", "--json", "--for-agent", "--", word, *given]
        process = start_process(argv, self.repository.worktree, self.environ, place)
        began = time.monotonic()
        while time.monotonic() < began + _APPEARS_S:
            if process.poll() is not None:  # it is over already
                run = document_in(place, "No run began")["run_id"]
                return self.repository.worktree / WORKFLOW / str(run)
            folder = self._driven_by(process.pid)
            if folder is not None:
                return folder
            time.sleep(_POLL_S)
        process.terminate()
        raise UserError(f"No run began within {_APPEARS_S} seconds.", Reason.ENVIRONMENT, path=str(place))

    def _folders(self) -> list[Path]:
        return [self.repository.worktree / WORKFLOW / name for name in run_names(self.repository)]

    def _driven_by(self, pid: int) -> Path | None:
        """Return the folder of the run that a process drives, once it is there."""
        began = ((one, driver_of(one)) for one in self._folders() if (one / "run.json").exists())
        return next((one for one, driver in began if driver is not None and driver.pid == pid), None)

    def _refuse_many(self) -> None:
        live = [one.name for one in self._folders() if FileLease.is_held(one) and _is_of_agent(one)]
        if len(live) >= MOST_LIVE:
            raise UserError(
                f"{len(live)} runs that agents began are driven already, at most {MOST_LIVE} are: {', '.join(live)}.",
                Reason.LOCKED,
                details={"runs": live},
            )


def _is_of_agent(folder: Path) -> bool:
    try:
        return RunInfo.model_validate_json(read_record(folder, "run.json")).trigger == "mcp"
    except (OSError, ValueError):
        return False


def _only_reads(recipe: Recipe) -> bool:
    return all(step.kind is Kind.AGENT and not step.writes for step in recipe.steps)
