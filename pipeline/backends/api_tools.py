"""The tools that a model can call in our own loop: each is a class whose fields are the arguments.

The bench does the work and judges it; here is only what a model reads of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.backends.protocol import Mishap, ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.backends.protocol import AgentJob, Bench

_MOST_LINES: Final = 1000
_CHARACTERS: Final = 60_000
"""The longest answer of a tool, in characters; every later request repeats it."""

FilePath = Annotated[str, Field(description="Path, relative to the workspace or as the request names it")]


class Tool(BaseModel, ABC):
    """One call; the docstring of a tool is what the model is told about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]

    @abstractmethod
    async def on(self, bench: Bench) -> ToolAnswer:
        """Carry out the call and return its answer.

        Raises:
            BoxError: the box did not work.
        """

    @property
    def subject(self) -> str:
        """Return the call's main argument, for a line of the log."""
        return next((str(value) for _, value in self), "")


class Read(Tool):
    """Read a text file, or list what is in a folder."""

    name = "read"
    path: FilePath
    first: Annotated[int, Field(ge=1, description="First line, counted from 1")] = 1
    count: Annotated[int, Field(ge=1, description="How many lines at most")] = _MOST_LINES

    async def on(self, bench: Bench) -> ToolAnswer:
        """Return the file's lines or the folder's entries."""
        return bench.read(self.path, self.first, self.count)


class Search(Tool):
    """Search the files of the workspace for a regular expression (Python's), line by line."""

    name = "search"
    pattern: str
    path: Annotated[str, Field(description="File or folder to search")] = "."

    async def on(self, bench: Bench) -> ToolAnswer:
        """Return the matching lines."""
        return await bench.search(self.pattern, self.path)


class Write(Tool):
    """Give a file exactly this content; a new file and its folders are made."""

    name = "write"
    path: FilePath
    content: str

    async def on(self, bench: Bench) -> ToolAnswer:
        """Write the file."""
        return bench.write(self.path, self.content)


class Edit(Tool):
    """Replace a passage that occurs exactly once in a file, blanks and line ends included."""

    name = "edit"
    path: FilePath
    old: Annotated[str, Field(description="The passage as it stands in the file")]
    new: str

    async def on(self, bench: Bench) -> ToolAnswer:
        """Replace the passage."""
        return bench.edit(self.path, self.old, self.new)


class Delete(Tool):
    """Remove a file that the task says is to be deleted or renamed."""

    name = "delete"
    path: FilePath

    async def on(self, bench: Bench) -> ToolAnswer:
        """Remove the file."""
        return bench.delete(self.path)


class Changes(Tool):
    """Show what was changed in the workspace so far, as `git status` and `git diff` would."""

    name = "changes"

    async def on(self, bench: Bench) -> ToolAnswer:
        """Return the changes."""
        return await bench.changes()


class RunTests(Tool):
    """Run the project's tests: those with the given ids, or all."""

    name = "run_tests"
    ids: Annotated[tuple[str, ...], Field(description="Such as tests/test_a.py::test_b; empty for all")] = ()

    async def on(self, bench: Bench) -> ToolAnswer:
        """Run the tests and return their output."""
        return await bench.run_tests(self.ids)


class RunCheck(Tool):
    """Run the linters and type checkers that the project configures."""

    name = "run_check"

    async def on(self, bench: Bench) -> ToolAnswer:
        """Run the checks and return their output."""
        return await bench.run_check()


class Run(Tool):
    """Run one command in the workspace: a program and its words. No shell reads it, so no pipes and no redirection."""

    name = "run"
    command: str

    async def on(self, bench: Bench) -> ToolAnswer:
        """Run the command and return its output."""
        return await bench.run(self.command)


_READING: Final[tuple[type[Tool], ...]] = (Read, Search)
_WRITING: Final[tuple[type[Tool], ...]] = (Write, Edit, Delete, Changes)
_RUNNING: Final[tuple[type[Tool], ...]] = (RunTests, RunCheck, Run)


def tools_of(job: AgentJob) -> Mapping[str, type[Tool]]:
    """Return the tools that the role may use, by name."""
    kinds = (*_READING, *(_WRITING if job.view.writable else ()), *(_RUNNING if job.shell else ()))
    return {kind.name: kind for kind in kinds}


def asked_for(tools: Mapping[str, type[Tool]], name: str, arguments: str | Mapping[str, Any]) -> Tool | ToolAnswer:
    """Return the call that a model makes, or the answer that it is not possible."""
    kind = tools.get(name)
    if kind is None:
        return ToolAnswer(f"there is no tool {name!r} for you; there are: {', '.join(tools)}", "no-such-tool")
    try:
        return kind.model_validate_json(arguments) if isinstance(arguments, str) else kind.model_validate(arguments)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or name}: {fault['msg']}" for fault in error.errors())
        return ToolAnswer(f"these are not the arguments of {name}: {faults}", Mishap.ARGUMENTS)


def shortened(text: str) -> str:
    """Return *text* with its middle left out where it is too long for a conversation."""
    if len(text) <= _CHARACTERS:
        return text
    half = _CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[-half:]}"
