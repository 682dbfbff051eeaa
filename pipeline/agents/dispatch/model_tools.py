"""The tools of a model in our own tool loop: files, search, changes, commands, tests, checks.

Each call is judged by the role's policy before it happens and answered in words, so that a model learns of a refusal at
once and not from the gate. Files are reached through folder descriptors, so no link leads out of the view; commands run
in the box without a shell. The gate judges the result all the same.
"""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from pipeline.agents.backends.program import signal_words
from pipeline.agents.backends.protocol import Mishap, ToolAnswer
from pipeline.agents.dispatch import searcher
from pipeline.agents.dispatch.gate import Policy, with_regions
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.judge.policy.commands import judge_command, judge_selectors
from pipeline.judge.policy.paths import malformed
from pipeline.judge.policy.rights import Change, ChangeKind
from pipeline.process import Box, Command, Completed, Mount
from pipeline.programs import Program, locate
from pipeline.sandbox.views.manifest import Limits
from pipeline.sandbox.views.view_files import delete_file, is_file, names_in, opened_top, put_file, read_file
from pipeline.testing.languages.table import listed_commands
from pipeline.testing.measure.project_tools import Tools
from pipeline.trees import NotRegularError, read_regular

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pipeline.judge.policy.roles import RoleSpec

LINES: Final = "\r\n\t"
"""The control characters that belong in a text of several lines."""
_READ_BYTES: Final = 400_000
_MOST_LINES: Final = 1000
_MOST_BYTES: Final = Limits().file_bytes

LineNumber = Annotated[int, Field(ge=1)]
_FILES: Final = "{files}"
_FIXED: Final = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
_SEARCHER: Final = Path(searcher.__file__)
_SEARCHER_INSIDE: Final = Path("/run/redfirst/searcher.py")
_STATUS: Final = ("--no-optional-locks", "status", "--short", "--untracked-files=all")
_DIFF: Final = ("--no-pager", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")


@dataclass(frozen=True)
class Workbench:
    """All tools of one dispatch.

    A path is relative to the workspace, as policy judges it; the absolute path that a prompt names means the same.

    Args:
        spec: The role.
        view: How the box shows the workspace.
        box: Where commands run.
        policy: What the dispatch may change.
        artifacts: Read-only mounts of what the prompt names by absolute path.
        tools: What the project's own tools need in the box.
        search_path: Where programs are looked up on the host, behind those of the project; no agent can write there.
        checks: `[checks] commands`; `{files}` stands for the files of the task that are there.
        timeout_s: Wall time limit of one command, in seconds.
        output_limit: Bytes kept of one command's output.
        search_s: Wall time limit of one search, in seconds.
    """

    spec: RoleSpec
    view: Mount
    box: Box
    policy: Policy
    artifacts: tuple[Mount, ...] = ()
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

    def read(self, path: str, first: LineNumber = 1, count: LineNumber = _MOST_LINES) -> ToolAnswer:
        """Read a text file, or list what is in a folder.

        Args:
            path: Path, relative to the workspace or as the request names it.
            first: First line, counted from 1.
            count: How many lines at most.
        """
        try:
            top, inner = self._place(path)
            if inner is None:
                return _shown(read_regular(top, _READ_BYTES), first, count)
            if inner != "." and (fault := malformed(inner)):
                return ToolAnswer(fault.why, fault.rule)
            with opened_top(top) as folder:
                names = names_in(folder, inner)
                if names is not None:
                    return ToolAnswer("\n".join(map(visible, names)))
                return _shown(read_file(folder, inner, _READ_BYTES), first, count)
        except OSError as error:
            return _failed(path, error)

    def write(self, path: str, content: str) -> ToolAnswer:
        """Give a file exactly this content; a new file and its folders are made.

        Args:
            path: Path, relative to the workspace or as the request names it.
            content: All of it.
        """
        path = self.relative(path)
        new = _encoded(content)
        if isinstance(new, ToolAnswer):
            return new
        try:
            with opened_top(self.view.reach) as top:
                return self._put(top, path, new)
        except OSError as error:
            return _failed(path, error)

    def edit(self, path: str, old: str, new: str) -> ToolAnswer:
        """Replace a passage that occurs exactly once in a file, blanks and line ends included.

        Args:
            path: Path, relative to the workspace or as the request names it.
            old: The passage as it stands in the file.
            new: What stands there afterwards.
        """
        path = self.relative(path)
        try:
            with opened_top(self.view.reach) as top:
                if not is_file(top, path):
                    # The policy's word first: a file that nobody may make is not there for another reason.
                    return self._refused(top, path, b"") or _failed(path, FileNotFoundError())
                before = read_file(top, path, _MOST_BYTES)
                after = _replaced(before, old, new)
                if isinstance(after, ToolAnswer):
                    return self._refused(top, path, before) or after
                return self._put(top, path, after)
        except OSError as error:
            return _failed(path, error)

    def delete(self, path: str) -> ToolAnswer:
        """Remove a file that the task says is to be deleted or renamed.

        Args:
            path: Path, relative to the workspace or as the request names it.
        """
        path = self.relative(path)
        ruling = self.policy.judged_word(Change(path, ChangeKind.DELETED))
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        try:
            with opened_top(self.view.reach) as top:
                delete_file(top, path)
        except OSError as error:
            return _failed(path, error)
        return ToolAnswer(f"{path}: deleted")

    @cached_property
    def workspace(self) -> Path:
        """Return the absolute path of the workspace, as the prompt names it."""
        return self.box.inside(self.view.source, self.view.target)

    def relative(self, path: str) -> str:
        """Return a path as policy judges it: relative to the workspace."""
        return "." if path == str(self.workspace) else path.removeprefix(f"{self.workspace}/")

    def _place(self, path: str) -> tuple[Path, str | None]:
        """Return a folder and the path in it for `path`; None as path if the first is a file itself."""
        for mount in self.artifacts:
            shown = str(self.box.inside(mount.source, mount.target))
            if path == shown:
                return mount.reach, "." if mount.reach.is_dir() else None
            if path.startswith(f"{shown}/"):
                return mount.reach, path.removeprefix(f"{shown}/")
        return self.view.reach, self.relative(path)

    def _put(self, top: int, path: str, new: bytes) -> ToolAnswer:
        if len(new) > _MOST_BYTES:
            return ToolAnswer(f"the content is larger than {_MOST_BYTES} bytes", Mishap.CONTENT)
        if refused := self._refused(top, path, new):
            return refused
        put_file(top, path, new)
        return ToolAnswer(f"{path}: {len(new)} bytes written")

    def _refused(self, top: int, path: str, new: bytes) -> ToolAnswer | None:
        exists = is_file(top, path)
        change = Change(path, ChangeKind.MODIFIED if exists else ChangeKind.ADDED)
        if exists and self.policy.test_regions:
            change = with_regions(change, read_file(top, path, _MOST_BYTES), new)
        ruling = self.policy.judged_word(change)
        return None if ruling.allowed else ToolAnswer(ruling.why, ruling.rule)

    def _named_files(self) -> tuple[str, ...]:
        """Return the task's files that exist."""
        tests = self.policy.tests
        named = dict.fromkeys(grant.path for grant in (*self.policy.grants, *(tests.files if tests else ())))
        with opened_top(self.view.reach) as top:
            return tuple(path for path in named if _is_there(top, path))

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
        if "\0" in pattern or isinstance(_encoded(pattern), ToolAnswer):
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


def _is_there(top: int, path: str) -> bool:
    try:
        return is_file(top, path)
    except OSError:
        return False


def _encoded(content: str) -> bytes | ToolAnswer:
    try:
        return content.encode()
    except UnicodeEncodeError:
        return ToolAnswer("the content has half of a surrogate pair in it, which no text file holds", Mishap.CONTENT)


def _replaced(content: bytes, old: str, new: str) -> bytes | ToolAnswer:
    wanted, put = _encoded(old), _encoded(new)
    if isinstance(wanted, ToolAnswer):
        return wanted
    if isinstance(put, ToolAnswer):
        return put
    count = content.count(wanted) if wanted else 0
    if count == 1:
        return content.replace(wanted, put)
    if count == 0:
        return ToolAnswer("the old text does not occur; read the file, and give it exactly", Mishap.NO_SUCH_TEXT)
    return ToolAnswer(f"the old text occurs {count} times; give more of the lines around it", Mishap.SEVERAL_TEXTS)


def _shown(content: bytes, first: int, count: int) -> ToolAnswer:
    if b"\0" in content:
        return ToolAnswer("this is no text", Mishap.BINARY_FILE)
    whole = visible(content[:_READ_BYTES].decode(errors="replace"), keep=LINES)
    lines = whole.splitlines(keepends=True)
    start = max(first, 1) - 1
    end = min(len(lines), start + max(count, 1))
    if start and start >= len(lines):
        return ToolAnswer(f"the file has {len(lines)} lines", Mishap.NO_SUCH_LINE)
    text = "".join(lines[start:end])
    notes: list[str] = []
    if (start, end) != (0, len(lines)):
        notes.append(f"lines {start + 1} to {end} of {len(lines)}")
    if len(content) > _READ_BYTES:
        notes.append(f"only the first {_READ_BYTES} bytes are shown")
    if not notes:
        return ToolAnswer(text)
    line_end = "" if text.endswith("\n") else "\n"
    return ToolAnswer(f"{text}{line_end}[{'; '.join(notes)}]")


def _failed(path: str, error: OSError) -> ToolAnswer:
    if isinstance(error, FileNotFoundError):
        return ToolAnswer(f"{path!r} is not there", Mishap.NO_SUCH_FILE)
    if isinstance(error, NotRegularError) or error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
        return ToolAnswer(
            f"{path!r} is no regular file, or is reached through a link; name the file itself", Mishap.FILE_KIND
        )
    return ToolAnswer(f"{path!r}: {error.strerror}", Mishap.FILE_SYSTEM)


def _output(completed: Completed, workspace: Path) -> str:
    output = (completed.stdout + completed.stderr).decode(errors="replace").replace(f"{workspace}/", "")
    return visible(output, keep=LINES)


def _told(completed: Completed, workspace: Path, timeout_s: float) -> ToolAnswer:
    if completed.timed_out:
        end = f"stopped after {timeout_s:g} seconds"
    elif completed.signal is not None:
        end = f"ended by {signal_words(completed.signal)}"
    else:
        end = f"exit code {completed.exit_code}"
    missing = ", the middle of the output is missing" if completed.truncated else ""
    return ToolAnswer(f"{_output(completed, workspace)}\n[{end}{missing}]", exit_code=completed.exit_code)
