"""What the program advises is typed as it was printed, where it was printed, each from the situation that it is for."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import forked
from kit import REDFIRST

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from kit import Project

FILLED: Final = {
    '"..."': '"say which name"',
    "AMOUNT": "100",
    "NUMBER": "99",
    "ROLE": "check",
    "ISSUE": "GAL-1",
    "RUN": "run-GAL-1",
    "TITLE": '"A title"',
    "NAME": "mine",
    "ADDRESS": "ada@example.org",
    "BRANCH": "mine",
    "REF": "trunk",
    "REMOTE": ".",
    "TODO": "TODO",
    "PROGRAM": "sh",
}
"""What only the user knows, and what they put there."""
REFUSED: Final = ('"..."', "AMOUNT", "NUMBER", "ISSUE", "RUN", "REF")
"""What is refused, with nothing changed, where it is typed as it was printed."""
_PLACE: Final = re.compile(r'"\.\.\."|(?<![\w/-])[A-Z]{3,}(?![\w-])')
_FIRST: Final = re.compile(r"redfirst [^&]*&&")
"""A command that goes on after redfirst: then the program itself is started."""
_REFUSED_ALREADY: Final[set[str]] = set()
"""What was typed with the place of a word, once: whether it is refused is no matter of the situation."""
_SHIM: Final = '#!/bin/sh\nprintf "%s\\0" "$PWD" "$@" > "$ASKED"\n'


@dataclass(frozen=True)
class Promise:
    """What an advised command does: its exit code, and what holds afterwards.

    `then` is `outcome/reason` of the run, or a shell command after `$ ` that must succeed; empty: nothing has changed.
    """

    code: int = 0
    then: str = ""

    @property
    def reads(self) -> bool:
        """Whether it leaves everything as it is."""
        return not self.then


READS: Final = Promise()


@dataclass
class Scene:
    """A situation that is put back before each command."""

    project: Project
    place: Path
    run: str = "run-GAL-1"
    filled: dict[str, str] = field(default_factory=dict[str, str])
    """What the user puts there in this situation, over `FILLED`."""
    done: set[tuple[str, Path | None, tuple[str, ...]]] = field(
        default_factory=set[tuple[str, Path | None, tuple[str, ...]]]
    )
    """What has been typed already, with where and in which state: two lists of advice may have one command."""

    def each(self, actions: Sequence[str], promises: Mapping[str, Promise], *, cwd: Path | None = None) -> None:
        """Assert that exactly these commands are advised, and that each of them does what it says."""
        plain = [self._plain(action) for action in actions]
        assert plain == list(promises), f"advised: {plain}"
        kept = self.place.with_name("kept")
        state = self.state()
        for action, promise in zip(actions, promises.values(), strict=True):
            self._refused_as_printed(action, cwd)
            if (action, cwd, state) in self.done:
                continue
            self.done.add((action, cwd, state))
            if promise.reads:
                self._one(action, promise, cwd, state)
                continue
            shutil.copytree(self.place, kept, symlinks=True)
            self._one(action, promise, cwd)
            shutil.rmtree(self.place)
            kept.rename(self.place)

    @contextmanager
    def put_back(self) -> Generator[None]:
        """Put everything back afterwards."""
        kept = self.place.with_name("before")
        shutil.copytree(self.place, kept, symlinks=True)
        try:
            yield
        finally:
            shutil.rmtree(self.place)
            kept.rename(self.place)

    def started(self, command: str) -> subprocess.Popen[str]:
        """Start a command of redfirst, which goes on until something happens."""
        environ = self.project.environment()
        argv = [str(REDFIRST), *shlex.split(command)[1:]]
        return subprocess.Popen(
            argv, cwd=self.project.root, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def within(self, text: str, promises: Mapping[str, Promise], *, cwd: Path | None = None) -> None:
        """Assert that a text names each of these commands, and that each of them does what it says."""
        words = self._plain(" ".join(text.split()))
        actions = [(command, self._typeable(command, " ".join(text.split()))) for command in promises]
        missing = [command for command in promises if command not in words]
        assert not missing, f"{missing} not in: {words}"
        self.each([action for _, action in actions], promises, cwd=cwd)

    def _typeable(self, command: str, text: str) -> str:
        """Return a command as the text has it: with what differs from one machine to the next."""
        parts = re.split("(PLACE|COMMIT)", command)
        here = {"PLACE": f"(?:{re.escape(shlex.quote(str(self.place)))}|{re.escape(str(self.place))})"}
        pattern = "".join({**here, "COMMIT": "[0-9a-f]{12,40}"}.get(part, re.escape(part)) for part in parts)
        found = re.search(pattern, text)
        return found[0] if found is not None else command

    def _refused_as_printed(self, action: str, cwd: Path | None) -> None:
        """Assert that what holds a place for a word that only the user knows is refused as it was printed."""
        if any(word in _PLACE.findall(action) for word in REFUSED) and action not in _REFUSED_ALREADY:
            _REFUSED_ALREADY.add(action)
            before = self.state()
            done = self.typed(action, cwd)
            assert (done.returncode, self.state()) == (2, before), f"{action}: {done.stdout}{done.stderr}"

    def in_turn(self, actions: Sequence[str], promises: Mapping[str, Promise], *, cwd: Path | None = None) -> None:
        """Assert the same of commands of which each is for the situation that the ones before it leave."""
        plain = [self._plain(action) for action in actions]
        assert plain == list(promises), f"advised: {plain}"
        for action, promise in zip(actions, promises.values(), strict=True):
            self._one(action, promise, cwd)

    def _one(self, action: str, promise: Promise, cwd: Path | None, before: tuple[str, ...] | None = None) -> None:
        before = self.state() if before is None and promise.reads else before
        done = self.typed(_PLACE.sub(lambda found: {**FILLED, **self.filled}[found[0]], action), cwd)
        said = f"{action}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert done.returncode == promise.code, said
        if promise.then.startswith("$ "):
            there = cwd if cwd is not None and cwd.is_dir() else self.project.root  # it may have been removed
            checked = self._shell(promise.then[2:], there)
            assert checked.returncode == 0, f"{said}\n{promise.then}: {checked.stdout}{checked.stderr}"
        elif promise.then:
            shown = self.project.document("show", self.run)
            assert f"{shown['outcome']}/{shown['reason']}" == promise.then, said
        else:
            assert self.state() == before, said

    def typed(self, command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command with a shell; the redfirst that it starts last is a fork."""
        folder = cwd or self.project.root
        asked = self.place.with_name("asked")
        asked.unlink(missing_ok=True)
        done = self._shell(command, folder)
        if not asked.exists():
            return done
        where, *words = asked.read_text(encoding="utf-8").split("\0")[:-1]
        environ = self.project.environment()
        return forked.run([str(REDFIRST), *words], cwd=Path(where), env=environ, timeout=120)

    def _shell(self, command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        tools = self.place.with_name("bin")
        tools.mkdir(exist_ok=True)
        shim = f'#!/bin/sh\nexec {shlex.quote(str(REDFIRST))} "$@"\n' if _FIRST.search(command) else _SHIM
        (tools / "redfirst").write_text(shim, encoding="utf-8")
        (tools / "redfirst").chmod(0o755)
        environ = self.project.environment()
        environ |= {"PATH": f"{tools}:{environ['PATH']}", "ASKED": str(self.place.with_name("asked"))}
        environ |= {"GIT_EDITOR": "echo mine >", "GIT_PAGER": "cat"}
        argv = ["sh", "-c", command]
        return subprocess.run(
            argv, cwd=cwd, env=environ, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )

    def state(self) -> tuple[str, ...]:
        """Return what a command that only reads leaves as it is."""
        asked = (["for-each-ref", "--format=%(refname) %(objectname)"], ["status", "--porcelain"])
        told = [
            subprocess.run(
                ["git", *argv],
                cwd=self.project.root,
                env=self.project.environment(),
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            for argv in asked
        ]
        places = ("*/.workflow/*/journal.jsonl", "*/.workflow/*/*.md", "*/.git/config")
        kept = sorted(path for place in places for path in self.place.glob(place))
        return (*told, *(path.read_text(encoding="utf-8") for path in kept))

    def _plain(self, action: str) -> str:
        """Return a command with what differs from one machine to the next left out."""
        plain = action.replace(shlex.quote(f"{self.place}"), "PLACE").replace(str(self.place), "PLACE")
        plain = re.sub(r"/project(?:-gal-1)?-[0-9a-f]{6}\b", "/WORKTREE", plain)
        return re.sub(r"\b[0-9a-f]{12,40}\b", "COMMIT", plain)


def advised(text: str, label: str = "next: ") -> list[str]:
    """Return the commands that a text for a person advises."""
    return [line.strip().removeprefix(label) for line in text.splitlines() if line.strip().startswith(label)]


def actions_of(document: Mapping[str, Any]) -> list[str]:
    """Return the commands that a document advises."""
    found: Iterable[str] = (document.get("error") or document)["safe_next_actions"]
    return list(found)
