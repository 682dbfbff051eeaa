"""One attack as a dispatch of the product: a host, a box in front of it, an agent that is a script."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from attacks.catalogue import HERE, Verdict
from attacks.host import PWNED, Host, make_host

from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.request import InRun, Request
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.config.model import Config
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.programs import locate
from pipeline.repo import Entry, TreeChange
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.folder import Written
from pipeline.run.info import DispatchRecord
from pipeline.run.store import WORKFLOW
from pipeline.sandbox.boxes.box import try_boxes
from pipeline.testing.measure.project_tools import Tools
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from pipeline.process import Mount
    from pipeline.run.info import DispatchResult
    from pipeline.sandbox.boxes.box import ProvableBox

MAKE_GRANTS: Final = (Grant("src/app.py", Action.MODIFY),)
TESTS: Final = TestScope(
    files=(Grant("tests/test_app.py", Action.MODIFY), Grant("tests/test_new.py", Action.CREATE)),
    folders=("tests",),
    code=frozenset({"src/app.py"}),
    known=frozenset({"tests/test_app.py"}),
)
_ASKED: Final[Mapping[Role, tuple[str, str]]] = {
    Role.ORCHESTRATOR: ("plan", '{"problem": "p", "files": [], "approach": "a"}'),
    Role.CHECK: ("review-plan", '{"verdict": "ACCEPTABLE"}'),
    Role.SIMPLIFY: ("review-plan", '{"verdict": "JUSTIFIED COMPLEXITY"}'),
    Role.TEST: ("write-tests", '{"verdict": "TESTS_READY"}'),
    Role.MAKE: ("implement", '{"result": "COMPLETE", "summary": "done"}'),
    Role.PM: ("follow-ups", '{"items": []}'),
}
"""Kind and an honest report, by role."""

_TIMEOUT_S: Final = 30


def make_box(name: str) -> tuple[ProvableBox | None, str]:
    """Return the box that the product opens for this setting, or None, and why."""
    trials = anyio.run(try_boxes, name)
    if not trials:
        return None, "there is none to try"
    return (trials[-1].box if trials[-1].proof.ok else None), trials[-1].proof.why


def is_demanded(name: str) -> bool:
    """Return whether this machine has to offer the box: not to work is a failure here, and no reason to skip."""
    return name == "none" or shutil.which("bwrap") is not None


@dataclass(frozen=True)
class Happened:
    """What one dispatch of an attack came to.

    Args:
        verdict: By what happened to the changes.
        result: What the product says.
        stdout: What the attack printed.
        log: What it complained about, for the reader of a failing test.
        decoy_only: All that was different in the view at its end lay in the decoy repository.
        wrongs: Everything that is not as it was, each in words; empty if the host never noticed.
    """

    verdict: Verdict
    result: DispatchResult
    stdout: str
    log: str
    decoy_only: bool
    wrongs: tuple[str, ...]

    def rules(self) -> dict[str, str]:
        """Return path -> rule of what the gate refused."""
        return {violation.path: violation.rule for violation in self.result.violations}


@dataclass
class World:
    """A host and what stands between it and the attacks."""

    host: Host
    box: ProvableBox
    checkout: PrivateCheckout
    base: str
    overlay: bool
    number: int = 0
    shown: str = ""
    found: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.dispatcher = self._dispatcher()

    def _dispatcher(self) -> Dispatcher:
        """Return what carries out the attacks: the only place that knows how one is built."""
        return Dispatcher(
            run_id="run-ISSUE-1",
            issue="ISSUE-1",
            run_folder=self.host.root / "run",
            repository=self.host.repository,
            checkout=self.checkout,
            config=Config(),
            box=self.box,
            roles=load_roles(),
            templates=load_templates(),
            search_path=os.environ["PATH"],
            overlay=self.overlay,
            written=Written(self.host.repository.worktree / WORKFLOW / "run-ISSUE-1"),
        )

    @property
    def name(self) -> str:
        """Return what is attacked, for the figures."""
        return f"{self.box.name}, {'overlay' if self.overlay else 'shadow'} views"

    @property
    def shared(self) -> bool:
        """Return whether commands use the host's own paths: there is no box."""
        return not self.box.maps_paths

    def tree_with(self, files: Mapping[str, str]) -> str:
        """Return the base tree with these files."""
        git = self.host.repository
        entries = {path: Entry(path, "100644", git.write_blob(text.encode())) for path, text in files.items()}
        return git.build_tree(self.base, [TreeChange(path, entry) for path, entry in entries.items()])

    def attack(self, role: Role, text: str, base: str | None = None) -> Happened:
        """Let an agent of this role run `text` in its view, and look around afterwards."""
        self.number += 1
        name = f"{self.number:03}-attack-{role.value}"
        program = self._program(text)
        self._show(base or self.base)
        own = {
            f"run/dispatches/{name}",
            f"run/quarantine/{name}",
            "run/quarantine",
            f"state/caches/{role.value}",
            f"state/sessions/1-{role.value}",
        }
        own |= set[str]() if self.overlay else {"state/pool"}  # given to the agent, and put back; see `_leftovers`
        before = self.host.fingerprint(own)
        result = anyio.run(self._dispatch, name, role, program, base or self.base)
        folder = self.host.root / "run" / "dispatches" / name
        stdout = (folder / "stdout.log").read_text(encoding="utf-8", errors="replace")
        log = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace")
        assert "attack-before" in stdout, f"the attack did not run: {log}"
        after = self.host.fingerprint(own)
        wrongs = [f"{path} changed" for path in before.keys() | after if before.get(path) != after.get(path)]
        wrongs += [*self.host.left_behind(program.stem), *self.host.reached()]
        wrongs += self._leftovers(base or self.base, stdout)
        wrongs += [f"it printed {line}" for line in stdout.splitlines() if PWNED in line]
        kept = [folder / "result.json", *folder.glob("report.raw")]
        wrongs += [f"{path.name} has what it asked for" for path in kept if PWNED.encode() in path.read_bytes()]
        wrongs += [f"the tree has {path}" for path in self._unasked_for(role, result)]
        was, now = _looked(stdout, "before"), _looked(stdout, "after")
        return Happened(
            verdict=_verdict(result, changed=now is not None and was != now),
            result=result,
            stdout=stdout,
            log=log,
            decoy_only=was is not None and now is not None and was[1] == now[1],
            wrongs=tuple(wrongs),
        )

    def _program(self, text: str) -> Path:
        """Return the attack as a program, whose name is a mark that no other process of this machine carries."""
        program = self.host.root / "scripts" / f"{secrets.token_hex(8)}.sh"
        shell = "bash" if "$'" in text else "sh"
        program.write_text(f"#!/bin/{shell}\n{(HERE / 'agent.sh').read_text(encoding='utf-8')}{text}\n", "utf-8")
        program.chmod(0o755)
        return program

    def _show(self, tree: str) -> None:
        """Let the product make what lies under the views of a tree, which then nothing may change."""
        if tree != self.shown:
            self.dispatcher.views.open(tree, writable=False).close()
            self.shown = tree

    async def _dispatch(self, name: str, role: Role, program: Path, base: str) -> DispatchResult:
        kind, report = _ASKED[role]
        record = DispatchRecord(
            dispatch=name,
            number=self.number,
            step="attack",
            visit=1,
            resumes=0,
            role=role,
            kind=kind,
            question=None,
            task=None,
            attempt=1,
            reask=None,
            base_tree=base,
            backend="command",
        )
        agent = {
            "backend": "command",
            "argv": [str(program)],
            "read": [str(program)],
            "env": {"ATTACK_MARK": program.stem, "ATTACK_REPORT": report},
            "timeout_s": _TIMEOUT_S,
        }
        self.dispatcher.config = Config.model_validate({"agents": {**agent, "pm": {"backend": "command"}}})
        request = Request(role, kind, base, grants=MAKE_GRANTS, tests=TESTS, tools=_tools)
        return await self.dispatcher.dispatch(record, request, InRun(why="an attack"))

    def _leftovers(self, tree: str, stdout: str) -> list[str]:
        """Return whether this dispatch was given another view than the first one of the same tree: traces of others."""
        given = next(line for line in stdout.splitlines() if line.startswith("attack-found "))
        return [] if self.found.setdefault(tree, given) == given else ["it was given a view that others had changed"]

    def _unasked_for(self, role: Role, result: DispatchResult) -> list[str]:
        """Return what is in the tree that the role may not change; a rejected dispatch keeps its legal part at most."""
        if result.tree is None:
            return []
        allowed = {
            Role.MAKE: {grant.path for grant in MAKE_GRANTS},
            Role.TEST: {grant.path for grant in TESTS.files},
        }.get(role, set[str]())
        changed = [change.path for change in self.host.repository.diff(result.base_tree, result.tree)]
        if role is Role.TEST:  # new files beside the tests, and test regions of Rust files, are its own as well
            changed = [path for path in changed if not path.startswith("tests/test_") and path != "src/lib.rs"]
        return [path for path in changed if path not in allowed]


@contextmanager
def make_world(root: Path, box: ProvableBox, *, overlay: bool) -> Generator[World]:
    """Make a world below `root`, which is empty, and take it away again."""
    with make_host(root) as host:
        base = host.repository.tree_of(str(host.repository.resolve("HEAD")))
        checkout = PrivateCheckout(host.repository, root / "state")
        checkout.open(base)
        checkout.views()
        yield World(host, box, checkout, base, overlay)


def _tools(_view: Mount) -> Tools:
    """Return this interpreter for the attacks that are written in Python, as a project's own would be shown."""
    python = locate(sys.executable)
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return Tools(python.mounts, {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


def _looked(stdout: str, when: str) -> tuple[str, str] | None:
    """Return what the agent saw of its view: of the decoy, and of the rest."""
    line = next((line for line in stdout.splitlines() if line.startswith(f"attack-{when} ")), None)
    if line is None:
        return None
    sums = line.split(" ", 1)[1].strip(":").split(":")
    return ":".join(sums[:2]), ":".join(sums[2:])


def _verdict(result: DispatchResult, *, changed: bool) -> Verdict:
    if result.signal is Signal.ESCAPE:
        raise AssertionError(f"the attack escaped: {result.complaint}")
    if result.gate == "rejected":
        return Verdict.VIOLATION
    if result.changes:
        return Verdict.ACCEPTED
    return Verdict.DISCARDED if changed or result.dropped else Verdict.BLOCKED
