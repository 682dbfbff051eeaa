"""Writes our roles as agent files of other products, and says what of ours such a file cannot express.

An agent file only tells a product which of its tools to offer. What holds in a run (box, gate, measured tests) does not
travel, so a key without an equivalent is named with its reason and never approximated in silence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.agents.dispatch.roles import load_roles
from pipeline.config.sources import tracker_folder
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.judge.policy.roles import RoleSpec, Writes
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PREFIX: Final = "redfirst-"


_OUTSIDE: Final = """\
# Outside redfirst

These are the rules of a role of redfirst, exported for another program. Here you are asked by a person or by another
agent, not by a run. Nobody hands you artifacts, and there is no report file. No gate compares the workspace afterwards,
and nothing that you say is measured. Keep to the rules all the same: they now rest on you alone. Ask for what is
missing (the issue, the plan, the task, the diff), and give the report in your last message."""
_WEAKER: Final = (
    "These permissions are the product's own and weaker than a run's: no box, no gate, no measured tests. The "
    "repository's own plugins and settings apply."
)


class Target(StrEnum):
    """The products that we can write agent files for."""

    OPENCODE = "opencode"
    CLAUDE = "claude"


FOLDERS: Final[Mapping[Target, str]] = {Target.OPENCODE: ".opencode/agents", Target.CLAUDE: ".claude/agents"}
"""Where each product looks, relative to the top of a repository."""


class Written(StrEnum):
    """What happened to one file."""

    WRITTEN = "written"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class IgnoredKey(Frozen):
    """A key of ours that the product does not keep, or keeps less strictly."""

    key: str
    value: str
    why: str


class ExportedRole(Frozen):
    """One role and its file."""

    role: str
    name: str
    file: str
    state: Written
    ignored: tuple[IgnoredKey, ...]


class ExportDocument(Frozen):
    """What `agents export --json` prints."""

    document: Literal["redfirst.agents-export/1"] = Field(default="redfirst.agents-export/1", alias="schema")
    to: Target
    folder: str
    roles: tuple[ExportedRole, ...]
    note: str = _WEAKER


@dataclass(frozen=True)
class AgentFile:
    """One role as a file of the product."""

    role: str
    name: str
    text: str
    ignored: tuple[IgnoredKey, ...]


def export_roles(target: Target, folder: Path | None, *, force: bool) -> ExportDocument:
    """Write a file of the product for each role, by default into the product's folder here; say what became of it.

    Raises:
        UserError: a file is there and differs (and `force` was not given), or cannot be written.
    """
    from pipeline.run.files import write_atomic  # noqa: PLC0415  (only who writes needs it)

    tracker = tracker_folder(Path.cwd())
    place = product_folder(target) if folder is None else folder.expanduser()
    made = [agent_file(spec, target, tracker) for spec in load_roles().values()]
    files = {place / f"{file.name}.md": file for file in made}
    states = {path: _state(path, file.text.encode()) for path, file in files.items()}
    differing = [str(path) for path, state in states.items() if state is Written.REPLACED]
    if differing and not force:
        raise UserError(
            f"These files are there and differ: {', '.join(differing)}. Nothing was written. --force replaces them.",
            Reason.USAGE,
            path=differing[0],
            details={"differ": differing},
        )
    for path, file in files.items():
        if states[path] is not Written.UNCHANGED:
            write_atomic(path, file.text)
    roles = tuple(
        ExportedRole(role=file.role, name=file.name, file=str(path), state=states[path], ignored=file.ignored)
        for path, file in files.items()
    )
    return ExportDocument(to=target, folder=str(place), roles=roles)


def agent_file(spec: RoleSpec, target: Target, tracker: str) -> AgentFile:
    """Return the role as a file of the product."""
    name = f"{PREFIX}{spec.name}"
    front = _opencode(spec, tracker) if target is Target.OPENCODE else _claude(spec, name)
    text = "\n".join(["---", *front, "---", "", spec.prompt, "", _OUTSIDE, ""])
    return AgentFile(spec.name.value, name, text, tuple(_ignored(spec, target, tracker)))


def _edits(spec: RoleSpec) -> bool:
    """Return whether the role changes files itself; the tracker is written by our library, from an answer."""
    return spec.writes in {Writes.TASK, Writes.TESTS}


def _opencode(spec: RoleSpec, tracker: str) -> Iterator[str]:
    """Yield front matter. Of the rules that match, the last one counts, so what is refused in general comes first."""
    yield f"description: {_scalar(spec.description)}"
    yield "mode: all"
    yield "permission:"
    yield '  "*": deny'
    yield '  read: {"*": allow, "*.env": deny, "*.env.*": deny, "*.env.example": allow}'
    yield from (f"  {tool}: allow" for tool in ("glob", "grep", "list"))
    if _edits(spec):
        denied = "".join(f", {_scalar(f'{folder}/*')}: deny" for folder in (tracker, ".git", ".workflow"))
        yield f'  edit: {{"*": allow{denied}}}'
    if spec.shell:
        # No pattern of commands: one that allows `pytest *` also allows `pytest > any/file`.
        yield "  bash: ask"


def _claude(spec: RoleSpec, name: str) -> Iterator[str]:
    tools = ["Read", "Grep", "Glob", *(["Edit", "Write"] if _edits(spec) else []), *(["Bash"] if spec.shell else [])]
    yield f"name: {name}"
    yield f"description: {_scalar(spec.description)}"
    yield f"tools: {', '.join(tools)}"
    yield "model: inherit"
    yield "permissionMode: default"


def _scalar(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # which is YAML too


def _ignored(spec: RoleSpec, target: Target, tracker: str) -> Iterator[IgnoredKey]:
    yield IgnoredKey(
        key="kinds",
        value=", ".join(spec.kinds),
        why="what it is asked for, and the schema of its report, stay in a run",
    )
    if spec.writes is not Writes.NOTHING:
        spared = f" but {tracker}/, .git/ and .workflow/" if target is Target.OPENCODE else ""
        why = f"its edit tools reach every file{spared}; the files of a task are known to a run only"
        yield IgnoredKey(key="writes", value=spec.writes.value, why=why)
    if spec.test_regions:
        yield IgnoredKey(
            key="test_regions", value="true", why="edits inside production files are not told apart from others"
        )
    if spec.shell:
        yield IgnoredKey(key="shell", value="true", why=_SHELL[target])
        yield IgnoredKey(
            key="network", value=spec.network.value, why="web tools are off, but a command reaches the network"
        )
    yield IgnoredKey(key="timeout_s", value=str(spec.timeout_s), why="an agent file sets no time limit")


_SHELL: Final[Mapping[Target, str]] = {
    Target.OPENCODE: "every command asks the user. There is no box, and an approved one can write anywhere",
    Target.CLAUDE: "commands go by the user's own rules. There is no box, and an allowed one can write anywhere",
}


def _state(path: Path, content: bytes) -> Written:
    if path.is_symlink():
        return Written.REPLACED  # the link, not what it points to
    try:
        return Written.UNCHANGED if path.read_bytes() == content else Written.REPLACED
    except FileNotFoundError:
        return Written.WRITTEN
    except OSError as error:  # a folder of this name, a file where a folder should be, a file that is not ours to read
        raise UserError(f"Cannot read {path}: {error.strerror}.", Reason.USAGE, path=str(path)) from None


def product_folder(to: Target) -> Path:
    """Return the product's folder in the repository here.

    Raises:
        UserError: there is no repository, or the folder leads out of it.
    """
    from pipeline.repo import Repository  # noqa: PLC0415  (heavy; not for --dir)

    top = Repository.find(Path.cwd()).worktree
    folder = top / FOLDERS[to]
    if not folder.resolve().is_relative_to(top.resolve()):
        raise UserError(
            f"{folder} leads out of the repository, to {folder.resolve()}. Name the folder: --dir DIR.",
            Reason.USAGE,
            path=str(folder),
        )
    return folder
