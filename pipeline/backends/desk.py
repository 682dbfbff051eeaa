"""The desk of a person: a copy of the code that they work at, and what lies around it.

It stays whatever becomes of the process that waits for it, so that Ctrl-C loses nothing. No agent is ever shown it, and
only its owner can look into it. The hand-in is a rename: `report.json` is not there, or it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from pipeline.backends.layout import Manifest, opened_file
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.routing.vocabulary import Question, Role

if TYPE_CHECKING:
    from collections.abc import Callable

POINTER: Final = "desk"
"""The file in the exchange folder of a dispatch that says where its desk is."""
_SCHEMA: Final = "redfirst.desk/1"
_LONGEST: Final = 64 * 1024 * 1024
_ABOVE: Final = 3
"""Folders above an exchange: the dispatch, all dispatches, the run."""
_MANIFEST: Final = TypeAdapter(Manifest)


class Asked(BaseModel):
    """What a person is asked at a desk.

    Args:
        dispatch: Its name in the run.
        token: Stands for exactly this question about exactly this code; a hand-in to another one does not count.
        base: The digest of the code that the desk was laid out with.
        exchange: The folder of the dispatch that waits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.desk/1"] = Field(default=_SCHEMA, alias="schema")
    run_id: str
    dispatch: str
    role: Role
    kind: str
    question: Question | None = None
    task: str | None = None
    reask: str | None = None
    writable: bool
    write: tuple[str, ...] = ()
    token: str
    base: str
    exchange: str

    @field_validator("exchange")
    @classmethod
    def _in_a_run(cls, exchange: str) -> str:
        if not Path(exchange).is_absolute() or len(Path(exchange).parents) <= _ABOVE:
            raise ValueError("it is not the exchange of a dispatch")
        return exchange

    @property
    def named(self) -> frozenset[str]:
        """Return the paths that the person is asked for by name."""
        return frozenset(grant.rpartition(" (")[0] for grant in self.write)

    @property
    def run_folder(self) -> Path:
        """Return the folder of the run."""
        return Path(self.exchange).parents[_ABOVE - 1]


@dataclass(frozen=True)
class Desk:
    """A folder with a desk in it."""

    folder: Path

    @property
    def files(self) -> Path:
        """Return where the person works."""
        return self.folder / "desk"

    @property
    def prompt(self) -> Path:
        """Return what is asked."""
        return self.folder / "PROMPT.md"

    @property
    def template(self) -> Path:
        """Return the report to fill in."""
        return self.folder / "report-template.json"

    @property
    def tests(self) -> Path:
        """Return the program that runs the tests over what lies at the desk, where one is known."""
        return self.folder / "run-tests"

    @property
    def report(self) -> Path:
        """Return what is handed in; it is there once that has happened."""
        return self.folder / "report.json"

    @property
    def artifacts(self) -> Path:
        """Return what there is to read: a link, so that its paths are short."""
        return self.folder / "artifacts"

    @property
    def form(self) -> Path:
        """Return the form in which the person begins the report at a terminal."""
        return self.folder / "form.txt"

    @property
    def rules(self) -> Path:
        """Return what may be changed here, as the gate says it; it is there where something may."""
        return self.folder / "rules.json"

    @property
    def base(self) -> Path:
        """Return what the code was before, file by file."""
        return self.folder / "base.json"

    def asked(self) -> Asked | None:
        """Return what is asked here, None if this is no desk."""
        try:
            return Asked.model_validate_json(_read(self.folder / "asked.json"))
        except (OSError, ValidationError):
            return None

    def waits(self) -> bool:
        """Return whether the dispatch that is said to wait names this desk, too: any folder can look like one."""
        asked = self.asked()
        try:
            return asked is not None and _place(Path(asked.exchange)) == self.folder.resolve()
        except (OSError, ValueError):
            return False

    def ask(self, asked: Asked) -> None:
        """Write down what is asked: from now on there is a desk."""
        self.put(self.folder / "asked.json", asked.model_dump_json(by_alias=True, indent=2))

    def put(self, path: Path, text: str) -> None:
        """Write a file of the folder so that nobody ever meets half of it."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        fresh.unlink(missing_ok=True)
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)

    def lay_out(self, fill: Callable[[Path], None]) -> None:
        """Let *fill* make the desk, which is not there yet; what a crash left of another try is nobody's work."""
        fresh = self.folder / "desk.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fill(fresh)
        fresh.rename(self.files)

    def manifest(self) -> Manifest:
        """Return what the code was before, as `layout.manifest_of` says it.

        Raises:
            UserError: it does not say.
        """
        try:
            return _MANIFEST.validate_json(_read(self.base))
        except (OSError, ValidationError) as error:
            raise UserError(
                f"{self.base} does not say what the code was before: this is no desk that a run laid out.",
                Reason.USAGE,
                path=str(self.base),
            ) from error

    def set_aside(self, path: Path) -> Path | None:
        """Rename what is at *path*, so that it is kept and not in the way; return where it is now."""
        if not os.path.lexists(path):
            return None
        number = 1
        while os.path.lexists(aside := path.with_name(f"{path.stem}.old-{number}{path.suffix}")):
            number += 1
        path.rename(aside)
        return aside


def desk_around(place: Path) -> Desk | None:
    """Return the desk that *place* is at or below, None if it is at none."""
    for folder in (place, *place.parents):
        desk = Desk(folder.parent)
        if folder.name == desk.files.name and desk.waits():
            return desk
    return None


def desks_of(run_folder: Path, state: Path) -> list[Desk]:
    """Return the desks of a run whose hand-in has not been answered for, in the order of their dispatches.

    Agents can write where their desk is said to be: one that is elsewhere than a run lays desks out is none.

    Args:
        run_folder: The folder of the run.
        state: Its folder outside of the repository.
    """
    found: list[Desk] = []
    for pointer in sorted(run_folder.glob(f"dispatches/*/exchange/{POINTER}")):
        dispatch = pointer.parents[1]
        if ".lost-" in dispatch.name or (dispatch / "result.json").exists():
            continue
        try:
            place = _place(pointer.parent)
        except (OSError, ValueError):
            continue
        desk = Desk(place)
        asked = desk.asked() if any(place.is_relative_to(top.resolve()) for top in (pointer.parent, state)) else None
        if asked is not None and asked.dispatch == dispatch.name:
            found.append(desk)
    return found


def _place(exchange: Path) -> Path:
    """Return where the desk of a dispatch is said to be."""
    return Path(_read(exchange / POINTER).decode()).resolve()


def _read(path: Path) -> bytes:
    with opened_file(path) as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise OSError(errno.EOVERFLOW, "too large", str(path))
    return content
