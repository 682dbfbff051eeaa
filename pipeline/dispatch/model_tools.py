"""All tools of a model in our own tool loop: the file tools, and search, changes, run, run_tests, run_check.

Each call is judged by the role's policy before it happens and answered in words, so that a model learns of a refusal
at once and not from the gate. Commands run in the box without a shell. The gate judges the result all the same.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.protocol import Mishap, ToolAnswer
from pipeline.dispatch import searcher
from pipeline.dispatch.file_tools import LINES, FileTools
from pipeline.dispatch.request import Tools
from pipeline.errors import UserError
from pipeline.languages.table import listed_commands
from pipeline.policy.characters import visible
from pipeline.policy.commands import judge_command, judge_selectors
from pipeline.policy.paths import malformed
from pipeline.process import Command, Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pipeline.process import Completed
    from pipeline.programs import Program

_FILES: Final = "{files}"
_FIXED: Final = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
_SEARCHER: Final = Path(searcher.__file__)
_SEARCHER_INSIDE: Final = Path("/run/redfirst/searcher.py")
_STATUS: Final = ("--no-optional-locks", "status", "--short", "--untracked-files=all")
_DIFF: Final = ("--no-pager", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")


@dataclass(frozen=True)
class Workbench(FileTools):
    """All tools of one dispatch.

    Args:
        spec: The role.
        view: How the box shows the workspace.
        box: Where commands run.
        grants: The production files that the task names.
        tests: What counts as a test, and the task's test files.
        artifacts: Read-only mounts of what the prompt names by absolute path.
        area: The patterns that the dispatch is held to.
        tracker: The folder of the issues.
        tools: What the project's own tools need in the box.
        search_path: Where programs are looked up on the host, behind those of the project; no agent can write there.
        checks: `[checks] commands`; `{files}` stands for the files of the task that are there.
        timeout_s: Wall time limit of one command, in seconds.
        output_limit: Bytes kept of one command's output.
        search_s: Wall time limit of one search, in seconds.
    """

    tools: Tools = field(default_factory=Tools)
    search_path: str = os.defpath
    checks: tuple[tuple[str, ...], ...] = ()
    timeout_s: float = 300.0
    output_limit: int = 60_000
    search_s: float = 20.0

    def offered(self) -> dict[str, Callable[..., ToolAnswer | Awaitable[ToolAnswer]]]:
        """Return the tools that the role may use, by name."""
        tools: list[Callable[..., ToolAnswer | Awaitable[ToolAnswer]]] = [self.read, self.search]
        tools += [self.write, self.edit, self.delete, self.changes] if self.view.writable else []
        tools += [self.run_tests, self.run_check, self.run] if self.spec.shell else []
        return {tool.__name__: tool for tool in tools}

    async def run(self, command: str) -> ToolAnswer:
        """Run one command in the workspace: a program and its words. No shell reads it: no pipes, no redirection.

        Args:
            command: A program that is on the list of allowed ones, and its words.

        Raises:
            BoxError: the box did not work.
        """
        ruling = judge_command(command, listed_commands(), shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        return await self._start(ruling.argv)

    async def run_tests(self, ids: tuple[str, ...] = ()) -> ToolAnswer:
        """Run the project's tests: those with the given ids, or all.

        Args:
            ids: Such as tests/test_a.py::test_b; empty for all.

        Raises:
            BoxError: the box did not work.
        """
        ruling = judge_selectors(ids, shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        if not self.tools.test_command:
            return ToolAnswer("no test command is known for this project", Mishap.NO_TEST_COMMAND)
        return await self._start((*self.tools.test_command, *ruling.argv))

    async def run_check(self) -> ToolAnswer:
        """Run the linters and type checkers that the project configures.

        Raises:
            BoxError: the box did not work.
        """
        ruling = judge_selectors((), shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        files = self._named_files()
        wanted = [argv for argv in self.checks if files or _FILES not in argv]
        if not wanted:
            return ToolAnswer("no checks are configured for this project", Mishap.NO_CHECKS)
        answers = [
            await self._start(tuple(word for part in argv for word in (files if part == _FILES else (part,))))
            for argv in wanted
        ]
        text = "\n".join(f"$ {' '.join(argv)}\n{answer.text}" for argv, answer in zip(wanted, answers, strict=True))
        failed = (answer.exit_code for answer in answers if answer.exit_code != 0)
        return ToolAnswer(text, exit_code=next(failed, 0))

    async def search(self, pattern: str, path: str = ".") -> ToolAnswer:
        """Search the files of the workspace for a regular expression (Python's), line by line.

        Args:
            pattern: The expression.
            path: File or folder to search.

        Raises:
            BoxError: the box did not work.
        """
        place = self.relative(path)
        if place != "." and (fault := malformed(place)):
            return ToolAnswer(fault.why, fault.rule)
        if "\0" in pattern or not _is_text(pattern):
            return ToolAnswer("no command line holds this pattern", Mishap.PATTERN)
        player = Mount(_SEARCHER, _SEARCHER_INSIDE)
        program = str(self.box.inside(player.source, player.target))
        argv = ("-I", "-S", program, pattern, place)
        completed = await self._run(locate(sys.executable), argv, (player,), timeout_s=self.search_s)
        output = _output(completed, self.workspace)
        match completed.exit_code:
            case 0:
                return ToolAnswer(output or "nothing matches")
            case searcher.NO_PATTERN:
                return ToolAnswer(f"the pattern is no regular expression: {output.strip()}", Mishap.PATTERN)
            case searcher.NO_PLACE:
                return ToolAnswer(f"{path!r} is not there, or is reached through a link", Mishap.NO_SUCH_FILE)
            case _:
                why = f"the search did not end within {self.search_s:g} s; make it simpler"
                return ToolAnswer(why, Mishap.PATTERN)

    async def changes(self) -> ToolAnswer:
        """Show what was changed in the workspace so far, as `git status` and `git diff` would.

        Raises:
            BoxError: the box did not work.
        """
        try:
            git = locate("git", self._path)
        except UserError as error:
            return ToolAnswer(error.message, Mishap.PROGRAM_MISSING)
        answers = [await self._run(git, argv) for argv in (_STATUS, _DIFF)]
        text = "\n".join(filter(None, (_output(answer, self.workspace) for answer in answers)))
        return ToolAnswer(text or "nothing was changed")

    @property
    def _path(self) -> str:
        return ":".join((*map(str, self.tools.folders), self.search_path))

    async def _start(self, argv: tuple[str, ...]) -> ToolAnswer:
        try:
            program = locate(argv[0], self._path)
        except UserError as error:
            return ToolAnswer(error.message, Mishap.PROGRAM_MISSING)
        completed = await self._run(program, argv[1:])
        return _told(completed, self.workspace, self.timeout_s)

    async def _run(
        self,
        program: Program,
        arguments: Sequence[str],
        mounts: tuple[Mount, ...] = (),
        *,
        timeout_s: float | None = None,
    ) -> Completed:
        shown = (*program.mounts, *self.tools.mounts, *mounts, self.view)
        return await self.box.run(
            Command(
                argv=program.argv(*arguments),
                cwd=self.workspace,
                mounts=tuple({mount.target: mount for mount in shown}.values()),
                env={**self.tools.env, **_FIXED},
                timeout_s=timeout_s or self.timeout_s,
                output_limit=self.output_limit,
            )
        )


def _is_text(pattern: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in pattern)


def _output(completed: Completed, workspace: Path) -> str:
    output = (completed.stdout + completed.stderr).decode(errors="replace").replace(f"{workspace}/", "")
    return visible(output, keep=LINES)


def _told(completed: Completed, workspace: Path, timeout_s: float) -> ToolAnswer:
    if completed.timed_out:
        end = f"stopped after {timeout_s:g} seconds"
    elif completed.signal is not None:
        end = f"ended by {signal.Signals(completed.signal).name}"
    else:
        end = f"exit code {completed.exit_code}"
    missing = ", the middle of the output is missing" if completed.truncated else ""
    return ToolAnswer(f"{_output(completed, workspace)}\n[{end}{missing}]", exit_code=completed.exit_code)
