"""Does what an agent of another program may do here: run recipes that its user allows, look at runs, stop its own.

A run is a process of its own, which lives on when whoever began it ends. Nothing here answers a gate.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.app.recipe_choice import chosen, unsound
from pipeline.app.recipe_files import BUILTIN, Origin, RecipeFile, RecipeFiles
from pipeline.app.run_config import read_config, refuse_recursion
from pipeline.app.stopping import STOPS_S, stopped_within
from pipeline.config.layers import Flags
from pipeline.config.problems import did_you_mean
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.matrix.recipes.check import checked_source
from pipeline.matrix.recipes.model import Kind, Recipe
from pipeline.matrix.recipes.plan import inputs_of
from pipeline.matrix.recipes.rules import not_for_agents
from pipeline.outcomes import Reason
from pipeline.run.files import disk
from pipeline.run.info import RunInfo
from pipeline.run.lease import FileLease, driver_of
from pipeline.run.records import read_record
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import WORKFLOW, run_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.repo import Repository

MOST_LIVE: Final = 3
"""Runs that agents have begun here and that are driven at the same time."""
_BEGINS_S: Final = 40
_POLL_S: Final = 0.05
_MOST_KEPT: Final = 50
_PROGRAM: Final = "import redfirst; redfirst.main()"


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
        self._begun: list[subprocess.Popen[bytes]] = []

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
        recipe = self.recipe(name)
        _, wrong = inputs_of(recipe, inputs)
        if wrong:
            raise unsound(name, chosen(self._library(), name).file, wrong)
        return self._begin(name, inputs, self._place())

    def begin_own(self, spec: str, inputs: Mapping[str, str]) -> Path:
        """Begin a run of a recipe that the agent wrote; return the run's folder.

        Raises:
            UserError: it is not sound, does more than ask readers, or cannot begin.
        """
        file = RecipeFile("", "spec", spec, Origin.FILE)
        recipe, problems = (found := checked_source(file, self._library())).recipe, found.problems
        if recipe is not None:
            problems = not_for_agents(recipe) or inputs_of(recipe, inputs)[1]
        if problems:
            error = unsound("spec", file, problems)
            error.actions = ()  # it is in no file that could be looked at
            raise error
        path = self._place() / "recipe.yaml"
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
        with (place / "result.json").open("wb") as out, (place / "log.txt").open("wb") as err:
            process = subprocess.Popen(  # -P: nothing is imported from the repository
                [sys.executable, "-P", "-c", _PROGRAM, *argv],
                cwd=self.repository.worktree,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._begun = [one for one in (*self._begun, process) if one.poll() is None]
        began = time.monotonic()
        while time.monotonic() < began + _BEGINS_S:
            ended = process.poll() is not None
            if ended:
                return self._ended(place)
            folder = self._driven_by(process.pid)
            if folder is not None:
                return folder
            time.sleep(_POLL_S)
        process.terminate()
        raise UserError(f"No run began within {_BEGINS_S} seconds.", Reason.ENVIRONMENT, path=str(place))

    def _driven_by(self, pid: int) -> Path | None:
        """Return the folder of the run that a process drives, once it is there."""
        names = run_names(self.repository)
        folders = (self.repository.worktree / WORKFLOW / name for name in names)
        began = ((one, driver_of(one)) for one in folders if (one / "run.json").exists())
        return next((one for one, driver in began if driver is not None and driver.pid == pid), None)

    def _ended(self, place: Path) -> Path:
        """Return the folder of a run that is over already.

        Raises:
            UserError: none began, and why.
        """
        try:
            document = json.loads((place / "result.json").read_bytes())
        except ValueError:
            log = (place / "log.txt").read_text(encoding="utf-8", errors="replace")
            raise UserError(f"No run began: {log.strip()[-500:]}", Reason.ENVIRONMENT, path=str(place)) from None
        if "error" in document:
            raise _as_told(document["error"])
        return self.repository.worktree / WORKFLOW / str(document["run_id"])

    def _refuse_many(self) -> None:
        folders = [self.repository.worktree / WORKFLOW / name for name in run_names(self.repository)]
        live = [one.name for one in folders if FileLease.is_held(one) and _is_of_agent(one)]
        if len(live) >= MOST_LIVE:
            raise UserError(
                f"{len(live)} runs that agents began are driven already, at most {MOST_LIVE} are: {', '.join(live)}.",
                Reason.LOCKED,
                details={"runs": live},
            )

    def _place(self) -> Path:
        """Return a new folder for what a run is begun with and says; the oldest are removed."""
        folder = state_folder(self.environ) / "agent-runs"
        with disk(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for old in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)[:-_MOST_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
            return Path(tempfile.mkdtemp(dir=folder))


def _is_of_agent(folder: Path) -> bool:
    try:
        return RunInfo.model_validate_json(read_record(folder, "run.json")).trigger == "mcp"
    except (OSError, ValueError):
        return False


def _only_reads(recipe: Recipe) -> bool:
    return all(step.kind is Kind.AGENT and not step.writes for step in recipe.steps)


def _as_told(facts: Mapping[str, Any]) -> UserError:
    """Return an error that another process told."""
    known = {reason.value for reason in Reason}
    next_actions = tuple(facts["safe_next_actions"])
    return UserError(
        str(facts["message"]),
        Reason(facts["kind"]) if facts["kind"] in known else Reason.ENVIRONMENT,
        path=facts["path"],
        pointer=facts["pointer"],
        details=facts["details"],
        actions=next_actions,
    )
