"""`redfirst agents export`: our roles as another product's own agent files (contract 1)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field

from pipeline.cli.exporting import FOLDERS, Target, agent_file
from pipeline.dispatch.roles import load_roles
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.terminal import block, print_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.cli.exporting import AgentFile

_WEAKER: Final = (
    "These permissions are the product's own and weaker than a run's: no box, no gate, no measured tests, and the "
    "repository's own plugins and settings apply."
)


class Written(StrEnum):
    """What happened to one file."""

    WRITTEN = "written"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class IgnoredKey(_Document):
    """A key of ours that the product does not keep, or keeps less strictly."""

    key: str
    value: str
    why: str


class ExportedRole(_Document):
    """One role and its file."""

    role: str
    name: str
    file: str
    state: Written
    ignored: tuple[IgnoredKey, ...]


class ExportDocument(_Document):
    """What `agents export --json` prints."""

    document: Literal["redfirst.agents-export/1"] = Field(default="redfirst.agents-export/1", alias="schema")
    to: Target
    folder: str
    roles: tuple[ExportedRole, ...]
    note: str = _WEAKER


def export(
    to: Annotated[Target, typer.Option("--to", help="The product.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where to; by default the product's folder here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that differ.")] = False,
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Write the roles as another product's own agent files, and say what those files cannot keep."""
    files = [agent_file(spec, to) for spec in load_roles().values()]
    place = _product_folder(to) if folder is None else folder.expanduser()
    states = write_files(place, files, force=force)
    roles = tuple(
        ExportedRole(
            role=file.role,
            name=file.name,
            file=str(place / file.file),
            state=states[file.name],
            ignored=tuple(IgnoredKey(key=key.key, value=key.value, why=key.why) for key in file.ignored),
        )
        for file in files
    )
    document = ExportDocument(to=to, folder=str(place), roles=roles)
    if as_document:
        print_document(document)
    else:
        typer.echo(block(plain_text(document)))


def write_files(folder: Path, files: Sequence[AgentFile], *, force: bool) -> dict[str, Written]:
    """Write the files, none of them if one may not be written; return what happened to each, by the agent's name.

    Raises:
        UserError: some are there and differ (and `force` was not given), or the disk does not take them.
    """
    from pipeline.runs.files import write_atomic  # noqa: PLC0415  (only who writes needs it)

    states = {file.name: _state(folder / file.file, file.text.encode()) for file in files}
    differing = [folder / file.file for file in files if states[file.name] is Written.REPLACED]
    if differing and not force:
        names = ", ".join(str(path) for path in differing)
        raise UserError(
            f"These files are there and differ: {names}. Nothing was written; --force replaces them.",
            Reason.USAGE,
            path=str(differing[0]),
            details={"differ": [str(path) for path in differing]},
        )
    for file in files:
        if states[file.name] is not Written.UNCHANGED:
            write_atomic(folder / file.file, file.text)
    return states


def _state(path: Path, content: bytes) -> Written:
    if path.is_symlink():
        return Written.REPLACED  # the link, not what it points to
    try:
        return Written.UNCHANGED if path.read_bytes() == content else Written.REPLACED
    except FileNotFoundError:
        return Written.WRITTEN
    except OSError as error:  # a folder of this name, a file where a folder should be, a file that is not ours to read
        raise UserError(f"Cannot read {path}: {error.strerror}.", Reason.USAGE, path=str(path)) from None


def _product_folder(to: Target) -> Path:
    """Return the product's folder in the repository here.

    Raises:
        UserError: there is no repository, or the folder leads out of it.
    """
    from pipeline.git import Repository  # noqa: PLC0415  (heavy; not for --dir)

    top = Repository.find(Path.cwd()).worktree
    folder = top / FOLDERS[to]
    if not folder.resolve().is_relative_to(top.resolve()):
        raise UserError(
            f"{folder} leads out of the repository, to {folder.resolve()}. Name the folder: --dir DIR.",
            Reason.USAGE,
            path=str(folder),
        )
    return folder


def plain_text(document: ExportDocument) -> str:
    """Return what a person reads."""
    lines: list[str] = []
    for role in document.roles:
        lines.append(f"{role.state:<9}  {role.file}")
        lines += [f"{'':<11}not kept: {key.key} = {key.value} ({key.why})" for key in role.ignored]
    return "\n".join((*lines, document.note))
