"""The command `redfirst demo`: from an issue to commits in an example repository, with scripted agents.

Each mechanism that acted is explained from the run's journal as it grows. The example is made in a folder of its own: a
small repository, the script of its agents, and a configuration. The run in it is a process with a fixed environment: it
reads neither the user's redfirst configuration nor their git configuration, and it writes nothing outside the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from pydantic import Field

from pipeline.characters import visible
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.interrupts import NUMBERS
from pipeline.matrix.engine.journal import Line
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.run.files import disk
from pipeline.run.journal_kinds import ChangeRejected
from pipeline.sandbox.boxes.box import open_box
from pipeline.terminal import print_document
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping


ISSUE: Final = "SHOP-1"
BASE: Final = "main"
BRANCH: Final = "shop-1"
_DATA: Final = Path(__file__).parent
_PROJECT: Final = _DATA / "project"
_IDENTITY: Final = {"user.name": "redfirst demo", "user.email": "demo@localhost"}
_NOT_OURS: Final = ("GIT_", "REDFIRST_", "XDG_", "SOURCE_DATE_EPOCH")
_DEPTH: Final = "REDFIRST_DEPTH"  # kept: a demo does not run inside an agent either
_CONFIG: Final = """\
sandbox = "{sandbox}"

[agents]
backend = "scripted"
script = {script}

[toolchains.pytest]
command = {command}

[probes]
mutants = 4
"""


@dataclass(frozen=True)
class Place:
    """The folder of one demo."""

    folder: Path

    @property
    def repository(self) -> Path:
        """Return the worktree of the example project."""
        return self.folder / "shop"

    @property
    def script(self) -> Path:
        """Return the file with the agents' answers."""
        return self.folder / "agents.yaml"

    @property
    def run_folder(self) -> Path:
        """Return the folder of the run, the first one of the demo's issue."""
        return self.repository / ".workflow" / f"run-{ISSUE}"

    @property
    def environ(self) -> Mapping[str, str]:
        """Return the environment variables for every process of the demo."""
        kept = {k: v for k, v in os.environ.items() if k == _DEPTH or not k.startswith(_NOT_OURS)}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def git(self, *argv: str) -> str:
        """Run git in the example repository and return its output.

        Raises:
            UserError: git failed.
        """
        done = subprocess.run(
            ["git", *argv],
            cwd=self.repository,
            env=self.environ,
            capture_output=True,
            text=True,
            process_group=0,
            check=False,
        )
        if done.returncode:
            raise UserError(f"git {argv[0]} failed in {self.repository}: {done.stderr.strip()}", Reason.USAGE)
        return done.stdout


def lay_out(folder: Path | None, *, sandbox: str) -> Place:
    """Create the demo's folder, repository and configuration, and return them; nothing of the issue is begun.

    Args:
        folder: Where to; a new temporary folder if None.
        sandbox: `auto` or `none`.

    Raises:
        UserError: the folder is not empty, the disk does not take it, or git is not there.
    """
    if shutil.which("git") is None:
        raise UserError("git is not installed, or not on PATH.", Reason.USAGE)
    place = Place(_new_folder(folder))
    with disk(place.folder):
        # without modules that an installer compiled
        for path in (one for one in _PROJECT.rglob("*") if one.is_file() and "__pycache__" not in one.parts):
            target = place.repository / path.relative_to(_PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        (place.folder / "home").mkdir()
        _configure(place, sandbox)
    place.git("init", "--quiet", "--template=", f"--initial-branch={BASE}")
    for key, value in _IDENTITY.items():
        place.git("config", "--local", key, value)
    place.git("add", "--all")
    place.git("commit", "--quiet", "--message=A very small shop")
    return place


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="redfirst-demo-")).resolve()
    path = folder.expanduser().absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(
            f"{path} is there already and is not an empty folder. Name one that is not there yet.",
            Reason.USAGE,
            path=str(path),
            actions=("redfirst demo",),
        )
    with disk(path):
        path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def _configure(place: Place, sandbox: str) -> None:
    place.script.write_bytes((_DATA / place.script.name).read_bytes())
    path = place.folder / "config" / "redfirst" / "config.toml"
    path.parent.mkdir(parents=True)
    # pytest is a dependency of ours, so the interpreter that runs us can run the example's tests
    command = [sys.executable, "-m", "pytest"]
    text = _CONFIG.format(sandbox=sandbox, script=_toml(str(place.script)), command=_toml(command))
    path.write_text(text, encoding="utf-8")


def _toml(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)  # these are written the same way in TOML


class DemoDocument(Frozen):
    """The demo's folders, the rows of the matrix that fired, and the run's own document."""

    schema_: Literal["redfirst.demo/1"] = Field(default="redfirst.demo/1", alias="schema")
    ok: bool
    scripted: Literal[True] = True
    folder: str
    repository: str
    rows: tuple[str, ...]
    seconds: float
    run: dict[str, Any]


SCRIPTED: Final = "Every agent in this demo is SCRIPTED: it plays prepared answers. No model is asked, nothing is paid."
REAL: Final = "The program around them is the real one: views, sandbox, gate, test runs, routing, git."
_CLICKS: Final = (
    f"In the browser: Issues, {ISSUE}, choose where it asks you, Queue it, Start a worker. Your edits count. "
    "Scripted agents do not read what you send back: of a plan the same comes again, twice; for anything else they "
    "have no answer. Ctrl-C here stops the console, and no run."
)
_PROGRAM: Final = "import redfirst; redfirst.main()"
_LINE: Final = "-" * 79


def run_demo(folder: Path | None, *, as_document: bool, say: Callable[[str], None]) -> int:
    """Make the example repository, run its issue, and show what happened; return the exit code of the run.

    Args:
        folder: Where the example is made; a new temporary folder, which is kept, if None.
        as_document: Print one JSON document to stdout.
        say: Is told the story.

    Raises:
        UserError: the folder is taken, or git is not there.
    """
    began = time.monotonic()

    def tell(text: str) -> None:
        for line in text.split("\n"):
            say(visible(line))

    tell(f"{SCRIPTED}\n{REAL}\n")
    place = lay_out(folder, sandbox=_sandbox(tell))
    place.git("switch", "--quiet", "--create", BRANCH)
    tell(f"A small shop in {place.repository}, on branch {BRANCH}. Its issue {ISSUE}: discount codes at the till.")
    tell(f"\n$ redfirst run {ISSUE}\n")
    narrator = Narrator(place.run_folder / "journal.jsonl")
    code, run = _run(place, narrator, tell)
    interrupted = exit_code(Outcome.CANCELLED, Reason.INTERRUPTED)
    if code == 0:
        _show_result(place, tell)
    elif code == interrupted:
        begun = "error" not in run
        again = _line(place, f"{'resume' if begun else 'run'} {ISSUE}")
        note = run["note"] if begun else "no run was begun"
        tell(f"\nInterrupted; {note}. Go on: {again}; or remove {place.folder}")
    else:
        tell(f"\nThe run ended with exit code {code}: {_why(run)}")
    seconds = time.monotonic() - began
    if code != interrupted:
        tell(f"\n{seconds:.0f} seconds. Everything is in {place.folder}; remove that folder and nothing of it is left.")
        tell(SCRIPTED)
    if as_document:
        document = DemoDocument(
            ok=code == 0,
            folder=str(place.folder),
            repository=str(place.repository),
            rows=tuple(narrator.rows),
            seconds=round(seconds, 3),
            run=run,
        )
        print_document(document)
    return code


def show_console(folder: Path | None, say: Callable[[str], None]) -> int:
    """Make the example repository, and serve its console until somebody stops it; return the exit code.

    Args:
        folder: Where the example is made; a new temporary folder, which is kept, if None.
        say: Is told what can be done.

    Raises:
        UserError: the folder is taken, or git is not there.
    """
    say(f"{SCRIPTED}\n{REAL}\n")
    place = lay_out(folder, sandbox=_sandbox(say))
    say(f"A small shop in {place.repository}. Nothing is begun. {_CLICKS}\n")
    argv = [sys.executable, "-P", "-c", _PROGRAM, "console"]
    with subprocess.Popen(argv, cwd=place.repository, env=place.environ, process_group=0) as child, _signals_to(child):
        code = child.wait()
    say(f"\nEverything is in {place.folder}; remove that folder and nothing of it is left. To go on:")
    say(f"  {_line(place, 'console')}")
    return code


def _line(place: Place, words: str) -> str:
    """Return a command as it is typed anywhere to go on in the demo's repository."""
    return f"cd {shlex.quote(str(place.repository))} && {_with_settings(place, words)}"


def _with_settings(place: Place, words: str) -> str:
    """Return a command of this redfirst as it is typed with the demo's configuration and no other."""
    homes = [f"{name}={place.environ[name]}" for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")]
    return f"{shlex.join(['env', *homes])} {_program()} {words}"


def _sandbox(tell: Callable[[str], None]) -> str:
    """Return `auto` where agents can be isolated; else print so and return `none`: the demo's agents are our own."""
    try:
        anyio.run(open_box, "auto")
    except UserError as error:
        tell(f"WARNING: NO SANDBOX. {error.message.partition(', or set')[0]}.")
        tell("WARNING: The demo goes on without one, because its agents are prepared. A run of yours would refuse.\n")
        return "none"
    return "auto"


def _run(place: Place, narrator: Narrator, tell: Callable[[str], None]) -> tuple[int, dict[str, Any]]:
    """Run the issue in a `redfirst` process; return its exit code and its document."""
    result = place.folder / "result.json"
    log: list[str] = []
    # -P: the working directory is the example project, which must not be imported from
    argv = [sys.executable, "-P", "-c", _PROGRAM, "run", ISSUE, "--json"]
    with (
        result.open("wb") as stdout,
        subprocess.Popen(
            argv,
            cwd=place.repository,
            env=place.environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        ) as child,
        _signals_to(child),
    ):
        for line in child.stderr or ():
            log.append(line)
            for told in narrator.more():
                tell(told)
    for told in narrator.more():
        tell(told)
    (place.folder / "progress.log").write_text("".join(log), encoding="utf-8")
    try:
        document: dict[str, Any] = json.loads(result.read_bytes())
    except ValueError:
        document = {"ok": False, "error": {"message": "".join(log).strip()}}
    return child.returncode, document


@contextlib.contextmanager
def _signals_to(child: subprocess.Popen[Any]) -> Generator[None]:
    """Forward signals to the run's process, so that it stops as any other and the demo tells how it ended."""
    before = {number: signal.signal(number, lambda which, _frame: child.send_signal(which)) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _why(run: dict[str, Any]) -> str:
    return str(run["error"]["message"]) if "error" in run else f"{run['outcome']}, {run['reason']}: {run['note']}"


def _program() -> str:
    """Return the command that starts this redfirst: its name where that is on PATH, else its path."""
    here = Path(sys.argv[0]).absolute()
    found = shutil.which("redfirst")
    is_ours = found is not None and Path(found).resolve() == here.resolve()
    return "redfirst" if is_ours or here.name != "redfirst" else shlex.quote(str(here))


def _show_result(place: Place, tell: Callable[[str], None]) -> None:
    tell(f"\n{_LINE}\n$ git log --stat {BASE}..{BRANCH}\n")
    tell(place.git("log", "--stat", f"{BASE}..{BRANCH}").rstrip())
    tell(f"\n{_LINE}\n$ cat .workflow/{place.run_folder.name}/summary.md\n")
    tell((place.run_folder / "summary.md").read_text(encoding="utf-8").rstrip())
    tell(f"\n{_LINE}\nWhere to look next:")
    tell(f"  cd {place.repository}")
    program = _program()
    for command, shows in (
        (f"{program} explain {ISSUE}", "which rows of the matrix fired, on what evidence"),
        (f"{program} show {ISSUE} --log", "the journal, event by event"),
        # which python has pytest stands in the demo's configuration; the user's may have none
        (_with_settings(place, f"verify {ISSUE}"), "RED and GREEN of its commits, measured again from their trailers"),
        (f"ls .workflow/{place.run_folder.name}", "plan, tasks, reviews, evidence, dispatches, and what was refused"),
        (f"less ../{place.script.name}", "what the agents were given to say"),
        (f"{program} demo --console", "the same in a browser: you start it, and answer where it waits"),
    ):
        tell(f"  {command}\n      {shows}")


# --- the story ---------------------------------------------------------------------------------------------------

_WIDTH: Final = 112
_NOTE: Final = "      "

EXPLAINED: Final[Mapping[str, str]] = {
    "sanity/OK": "The tests ran before any agent was asked: what passes now must pass at the end.",
    "issue/CLAIMED": "The claim is a git ref, so no second run takes this issue.",
    "review-plan/NEEDS_WORK": "@check reviews the plan before there is code. It goes back, at most twice.",
    "review-plan/ACCEPTABLE": "The reviewer answered its own finding: resolved.",
    "review-split/ACCEPTABLE": "Two tasks; the second depends on the first.",
    "write-tests/DISPUTED": "RED is measured, but @test doubts the issue and wants a judgement first.",
    "check-tests/ACCEPTABLE": "@check has judged the tests: they say what the plan says.",
    "implement/NOT_GREEN": '@make said "COMPLETE, all tests pass". We ran them: not so. A claim moves nothing here.',
    "diagnose/PRODUCTION_LOGIC": "@check says whose fault it is; @make gets one more attempt, with these notes.",
    "write-tests/ILLEGAL_RED": "The test fails, but not because of missing behaviour. That is no RED: written again.",
    "write-tests/RED": "Measured twice, and each test fails for a legal reason. From here on the tests are frozen.",
    "implement/NEEDS_FILE": "Instead of reaching for a file that is not in its task, @make asks for it.",
    "diagnose/AMENDED": "@check grants the file; our code adds it to the task, and @make goes on.",
    "implement/GREEN_INCOMPLETE": "Measured: the tests pass. @make says what is missing; the final review is told.",
    "implement/GREEN": "Measured: the tests of the task pass, and so does everything that passed before.",
    "final-review/FIX": "The review of the whole result found something. It becomes a task of its own, tests first.",
    "split/DRAFTED[drafting fix tasks]": "A fix task goes the same way as any other: RED, then GREEN.",
    "final-review/ACCEPTABLE": "Reviewed again after the fix: the finding is resolved.",
    "publish/PUBLISHED": "Only now do branch and code change, all at once, with the issue and the bug that @make saw.",
}
"""Explanations of rows of the matrix for a first-time reader, by row id."""

REJECTED: Final = "Put back in the view; the agent is told why and asked again. The branch never saw it."


@dataclass
class Narrator:
    """Reads the journal's new lines and explains them."""

    path: Path
    rows: list[str] = field(default_factory=list[str])
    _read: int = 0

    def more(self) -> Iterator[str]:
        """Yield the narration of new journal lines; an incomplete line waits for the next call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(self._read)
            whole, newline, _ = stream.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for text in whole.splitlines():
            yield from self._told(Line.model_validate(json.loads(text)))

    def _told(self, line: Line) -> Iterator[str]:
        match line.data:
            case ChangeRejected(violations=violations):
                for violation in violations:
                    yield textwrap.shorten(f"GATE: rejected: {visible(violation.why)}", _WIDTH, placeholder=" ...")
                yield from _note(REJECTED)
            case DecisionMade() as decision:
                self.rows.append(decision.row)
                yield _decision(decision)
                if decision.row in EXPLAINED:
                    yield from _note(EXPLAINED[decision.row])
            case _:
                pass


def _decision(made: DecisionMade) -> str:
    phase = Step(made.step).phase
    task = f" task {made.task}" if made.task else ""
    # what the gate refused has just been told
    said = "" if made.signal == "VIOLATION" else made.note
    paid = "".join(f"; {key.partition('@')[0]} {count}" for key, count in made.counters.items())
    text = f"[{phase}] {made.step}{task}: {made.signal}" + (f": {said}" if said else "") + paid
    return textwrap.shorten(visible(text), _WIDTH, placeholder=" ...")


def _note(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=_NOTE, subsequent_indent=_NOTE)
