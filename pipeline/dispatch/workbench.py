"""The tools that a model gets when its loop is ours: run, run_tests, run_check, read, write, delete.

Each call is judged by the role's policy before it happens and answered in words, so that a model learns of a refusal
at once and not from the gate. Commands run in the box without a shell; files are reached through folder descriptors, so
no link leads out of the view. The gate judges the result all the same (architecture 6).
"""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.manifest import Limits
from pipeline.dispatch.request import Tools
from pipeline.dispatch.trees import NotRegularError, read_regular
from pipeline.dispatch.view_files import delete_file, is_file, names_in, opened_top, put_file, read_file
from pipeline.errors import UserError
from pipeline.policy.characters import visible
from pipeline.policy.commands import judge_command, judge_selectors
from pipeline.policy.filetools import judge_deletion, judge_path
from pipeline.policy.paths import malformed
from pipeline.process import Command
from pipeline.programs import locate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.policy.roles import RoleSpec
    from pipeline.policy.scope import Grant, TestScope
    from pipeline.process import Completed, Mount, Sandbox

_FILES: Final = "{files}"
_READ_BYTES: Final = 400_000
_MOST_BYTES: Final = Limits().file_bytes
_LINES: Final = "\r\n\t"
_FIXED: Final = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


@dataclass(frozen=True)
class ToolAnswer:
    """What a call comes to.

    Args:
        text: For the model; hidden characters are written as escapes.
        rule: The rule that refused it; None if it was done.
        exit_code: Of a command; None if it was none, or a signal or the time limit ended it.
    """

    text: str
    rule: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Workbench:
    """The tools of one dispatch.

    Args:
        spec: The role.
        view: How the box shows the workspace.
        sandbox: Where commands run.
        grants: The production files that the task names.
        tests: What counts as a test, and the task's test files.
        artifacts: Read-only mounts of what the prompt names by absolute path.
        tools: What the project's own tools need in the box.
        search_path: Where programs are looked up on the host; never a folder that an agent can write.
        test_command: The toolchain's own command, an argv that runs with test ids behind it.
        checks: `[checks] commands`; `{files}` stands for the files of the task that are there.
        timeout_s: Wall time limit of one command, in seconds.
        output_limit: Bytes kept of one command's output.
    """

    spec: RoleSpec
    view: Mount
    sandbox: Sandbox
    grants: tuple[Grant, ...] = ()
    tests: TestScope | None = None
    artifacts: tuple[Mount, ...] = ()
    tools: Tools = field(default_factory=Tools)
    search_path: str | None = None
    test_command: tuple[str, ...] = ()
    checks: tuple[tuple[str, ...], ...] = ()
    timeout_s: float = 300.0
    output_limit: int = 60_000

    async def run(self, text: str) -> ToolAnswer:
        """Run one listed command.

        Raises:
            SandboxError: the box did not work.
        """
        ruling = judge_command(text, shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        return await self._start(ruling.argv)

    async def run_tests(self, selectors: Sequence[str] = ()) -> ToolAnswer:
        """Run the tests with these ids, or all.

        Raises:
            SandboxError: the box did not work.
        """
        ruling = judge_selectors(selectors, shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        if not self.test_command:
            return ToolAnswer("no test command is known for this project", "no-test-command")
        return await self._start((*self.test_command, *ruling.argv))

    async def run_check(self) -> ToolAnswer:
        """Run the project's configured checks; the exit code is the first that is not 0.

        Raises:
            SandboxError: the box did not work.
        """
        ruling = judge_selectors((), shell=self.spec.shell)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        files = self._named_files()
        wanted = [argv for argv in self.checks if files or _FILES not in argv]
        if not wanted:
            return ToolAnswer("no checks are configured for this project", "no-checks")
        answers = [
            await self._start(tuple(word for part in argv for word in (files if part == _FILES else (part,))))
            for argv in wanted
        ]
        text = "\n".join(f"$ {' '.join(argv)}\n{answer.text}" for argv, answer in zip(wanted, answers, strict=True))
        failed = (answer.exit_code for answer in answers if answer.exit_code != 0)
        return ToolAnswer(text, exit_code=next(failed, 0))

    def read(self, path: str) -> ToolAnswer:
        """Return the text of a file, or the names in a folder (`.` is the top)."""
        artifact = next((mount.source for mount in self.artifacts if str(mount.target) == path), None)
        try:
            if artifact is not None:
                return _shown(read_regular(artifact, _READ_BYTES))
            if path != "." and (fault := malformed(path)):
                return ToolAnswer(fault.why, fault.rule)
            with opened_top(self.view.reach) as top:
                names = names_in(top, path)
                if names is not None:
                    return ToolAnswer("\n".join(map(visible, names)))
                return _shown(read_file(top, path, _READ_BYTES))
        except OSError as error:
            return _failed(path, error)

    def write(self, path: str, content: str) -> ToolAnswer:
        """Make the file hold exactly `content`; folders on the way are made."""
        try:
            new = content.encode()
        except UnicodeEncodeError:
            return ToolAnswer("the content has half of a surrogate pair in it, which no text file holds", "content")
        if len(new) > _MOST_BYTES:
            return ToolAnswer(f"the content is larger than {_MOST_BYTES} bytes", "content")
        try:
            with opened_top(self.view.reach) as top:
                exists = is_file(top, path)
                contents = (read_file(top, path, _MOST_BYTES), new) if exists and self.spec.test_regions else None
                ruling = judge_path(
                    self.spec, path, exists=exists, grants=self.grants, tests=self.tests, contents=contents
                )
                if not ruling.allowed:
                    return ToolAnswer(ruling.why, ruling.rule)
                put_file(top, path, new)
        except OSError as error:
            return _failed(path, error)
        return ToolAnswer(f"{path}: {len(new)} bytes written")

    def delete(self, path: str) -> ToolAnswer:
        """Remove a file that the task lets be deleted, or renamed away."""
        ruling = judge_deletion(self.spec, path, grants=self.grants, tests=self.tests)
        if not ruling.allowed:
            return ToolAnswer(ruling.why, ruling.rule)
        try:
            with opened_top(self.view.reach) as top:
                delete_file(top, path)
        except OSError as error:
            return _failed(path, error)
        return ToolAnswer(f"{path}: deleted")

    async def _start(self, argv: tuple[str, ...]) -> ToolAnswer:
        try:
            program = locate(argv[0], self.search_path)
        except UserError as error:
            return ToolAnswer(error.message, "program-missing")
        workspace = self.sandbox.inside(self.view.source, self.view.target)
        mounts = (*program.mounts, *self.tools.mounts, self.view)
        completed = await self.sandbox.run(
            Command(
                argv=program.argv(*argv[1:]),
                cwd=workspace,
                mounts=tuple({mount.target: mount for mount in mounts}.values()),
                env={**self.tools.env, **_FIXED},
                timeout_s=self.timeout_s,
                output_limit=self.output_limit,
            )
        )
        return _told(completed, f"{workspace}/", self.timeout_s)

    def _named_files(self) -> tuple[str, ...]:
        named = dict.fromkeys(grant.path for grant in (*self.grants, *(self.tests.files if self.tests else ())))
        with opened_top(self.view.reach) as top:
            return tuple(path for path in named if _is_there(top, path))


def _is_there(top: int, path: str) -> bool:
    try:
        return is_file(top, path)
    except OSError:
        return False


def _shown(content: bytes) -> ToolAnswer:
    if b"\0" in content:
        return ToolAnswer("this is no text", "binary-file")
    rest = f"\n[only the first {_READ_BYTES} bytes are shown]" if len(content) > _READ_BYTES else ""
    return ToolAnswer(visible(content[:_READ_BYTES].decode(errors="replace"), keep=_LINES) + rest)


def _failed(path: str, error: OSError) -> ToolAnswer:
    if isinstance(error, FileNotFoundError):
        return ToolAnswer(f"{path!r} is not there", "no-such-file")
    if isinstance(error, NotRegularError) or error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
        return ToolAnswer(
            f"{path!r} is no regular file, or is reached through a link; name the file itself", "file-kind"
        )
    return ToolAnswer(f"{path!r}: {error.strerror}", "file-system")


def _told(completed: Completed, workspace: str, timeout_s: float) -> ToolAnswer:
    output = (completed.stdout + completed.stderr).decode(errors="replace").replace(workspace, "")
    if completed.timed_out:
        end = f"stopped after {timeout_s:g} seconds"
    elif completed.signal is not None:
        end = f"ended by {signal.Signals(completed.signal).name}"
    else:
        end = f"exit code {completed.exit_code}"
    missing = ", the middle of the output is missing" if completed.truncated else ""
    return ToolAnswer(f"{visible(output, keep=_LINES)}\n[{end}{missing}]", exit_code=completed.exit_code)
