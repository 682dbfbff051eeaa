"""The desk of a person who plays a role: a folder with a copy of the code, and the files around it.

It stays whatever becomes of the process that waits for it, so that Ctrl-C loses nothing. No agent is ever shown it, and
only its owner can look into it. The hand-in is a rename: `handed-in.json` is not there, or it is whole. Nobody calls a
report so that he fills in by hand.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from pipeline.agents.backends.layout import Manifest
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.judge.reports.artifacts import REFUTED
from pipeline.judge.reports.kinds import report_schema
from pipeline.judge.reports.markdown import parse
from pipeline.judge.reports.reviews import FAULTS, ToAnswer
from pipeline.outcomes import Reason
from pipeline.trees import read_regular
from pipeline.vocabulary import Question, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POINTER: Final = "desk"
"""The file in a dispatch's exchange folder that names its desk."""
_SCHEMA: Final = "redfirst.desk/1"
_LONGEST: Final = 64 * 1024 * 1024
_ABOVE: Final = 3
"""The folders above an exchange folder: the dispatch, all dispatches, the run."""
_BY_ACCEPTABLE: Final = {
    "criteria": "each criterion is met",
    "answers": "each question is answered by yes",
    "prior": "each open finding is resolved",
}
_MANIFEST: Final = TypeAdapter(Manifest)
_FINDING: Final = re.compile(r"### (?P<id>\S+) \[(?P<severity>\w+)\] *(?P<title>.*)")


@dataclass(frozen=True)
class OpenFinding:
    """A finding that a re-review has to answer."""

    id: str
    severity: str
    title: str


class Asked(Frozen):
    """The request to a person at a desk.

    Args:
        dispatch: Its name in the run.
        token: Stands for exactly this question about exactly this code; a hand-in to another one does not count.
        base: The digest of the code that the desk was laid out with.
        exchange: The folder of the dispatch that waits.
        without: Fields of the report that are not asked for.
        to_answer: What the report has to answer in `criteria`.
    """

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
    without: tuple[str, ...] = ()
    to_answer: tuple[ToAnswer, ...] = ()

    @field_validator("exchange")
    @classmethod
    def _in_a_run(cls, exchange: str) -> str:
        if not Path(exchange).is_absolute() or len(Path(exchange).parents) <= _ABOVE:
            raise ValueError("it is not the exchange of a dispatch")
        return exchange

    @property
    def request(self) -> str:
        """Return in few words what is asked."""
        question = f" ({self.question})" if self.question else ""
        return f"{self.kind}{question}{f', task {self.task}' if self.task else ''}"

    @property
    def named(self) -> frozenset[str]:
        """Return the paths that the request names."""
        return frozenset(grant.rpartition(" (")[0] for grant in self.write)

    def artifact(self, name: str) -> list[Path]:
        """Return the texts of an artifact that was handed over, a review before the advice; none where it is not."""
        return sorted((Path(self.exchange).parent / "artifacts" / name).glob("*.md"), key=lambda file: file.stem)

    def open_findings(self) -> list[OpenFinding]:
        """Return the findings that a re-review answers: those above what is refuted, and none that a proof quotes."""
        found: list[OpenFinding] = []
        for file in self.artifact("open_findings"):
            lines = [line.text for line in parse(file.read_text(encoding="utf-8")).prose]
            settled = lines.index(REFUTED) if REFUTED in lines else len(lines)
            matches = map(_FINDING.fullmatch, lines[:settled])
            found += [OpenFinding(**match.groupdict()) for match in matches if match is not None]
        return found

    @property
    def report_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the report, without the fields that are not asked for."""
        return report_schema(self.kind, self.role, self.question, without=self.without)

    @property
    def said_by_acceptable(self) -> str:
        """Return what `hand-in --verdict ACCEPTABLE` alone says of a review's other fields, empty if nothing.

        That nobody has to notice a fault is never said for a person.
        """
        if any(one.id == FAULTS for one in self.to_answer):
            return ""
        properties = self.report_schema.get("properties", {})
        told = [
            words
            for name, words in _BY_ACCEPTABLE.items()
            if name in properties and (name != "criteria" or self.to_answer)
        ]
        return f"`--verdict ACCEPTABLE` alone says that {', '.join(told)}." if told else ""

    @property
    def run_folder(self) -> Path:
        """Return the folder of the run."""
        return Path(self.exchange).parents[_ABOVE - 1]


@dataclass
class Desk:
    """A person's desk and the files around it, in one folder."""

    folder: Path

    def __post_init__(self) -> None:
        self.files = self.folder / "desk"
        """The code, in which the person works."""
        self.prompt = self.folder / "PROMPT.md"
        self.template = self.folder / "report-template.json"
        self.tests = self.folder / "run-tests"
        """The program that runs the tests over these files, if there is one."""
        self.report = self.folder / "handed-in.json"
        """The report that is handed in; it exists from then on."""
        self.artifacts = self.folder / "artifacts"
        """The artifacts: a link, so that their paths are short."""
        self.form = self.folder / "form.yaml"
        """The form in which the person begins the report at a terminal."""
        self.shown = self.folder / "shown"
        """The token of the request that the person was last shown here."""
        self.rules = self.folder / "rules.json"
        """The gate's rules for this desk; it exists if files may be changed."""
        self.base = self.folder / "base.json"
        """The manifest of the original code."""

    def asked(self) -> Asked | None:
        """Return the request of this desk, None if the folder is no desk."""
        try:
            return Asked.model_validate_json(_read(self.folder / "asked.json"))
        except (OSError, ValidationError):
            return None

    def waits(self) -> bool:
        """Return whether the dispatch that the request names also names this desk: any folder can pretend to be one."""
        asked = self.asked()
        try:
            return asked is not None and _place(Path(asked.exchange)) == self.folder.resolve()
        except (OSError, ValueError):
            return False

    def ask(self, asked: Asked) -> None:
        """Write the request; from now on the folder is a desk."""
        self.put(self.folder / "asked.json", asked.model_dump_json(by_alias=True, indent=2))

    def is_shown(self, asked: Asked) -> bool:
        """Return whether a request was shown to the person; whoever stands here has seen what is asked here first."""
        if asked.reask is None and Path.cwd().is_relative_to(self.files.resolve()):
            return True
        try:
            return _read(self.shown).decode() == asked.token
        except (OSError, ValueError):
            return False

    def put(self, path: Path, text: str) -> None:
        """Write a file of the folder atomically."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        fresh.unlink(missing_ok=True)
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)

    def lay_out(self, fill: Callable[[Path], None]) -> None:
        """Create the folder with the code, which *fill* writes; remains of an interrupted try are removed."""
        fresh = self.folder / "desk.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fill(fresh)
        fresh.rename(self.files)

    def manifest(self) -> Manifest:
        """Return the manifest of the original code (see `layout.manifest_of`).

        Raises:
            UserError: it does not say.
        """
        try:
            # not validate_json: it refuses the lone surrogates that a file name may bring
            return _MANIFEST.validate_python(json.loads(_read(self.base)))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(
                f"{self.base} does not say what the code was before: this is no desk that a run laid out.",
                Reason.USAGE,
                path=str(self.base),
            ) from error

    def set_aside(self, path: Path) -> Path | None:
        """Rename the entry at *path* out of the way; return its new path, None if there was none."""
        if not os.path.lexists(path):
            return None
        number = 1
        while os.path.lexists(aside := path.with_name(f"{path.stem}.old-{number}{path.suffix}")):
            number += 1
        path.rename(aside)
        return aside


def desk_around(place: Path) -> Desk | None:
    """Return the desk that contains *place*, or is the folder around it; None if there is none."""
    here = (one for one in map(Desk, (place, *place.parents)) if place == one.folder or place.is_relative_to(one.files))
    return next((desk for desk in here if desk.waits()), None)


def desks_of(run_folder: Path, state: Path) -> list[Desk]:
    """Return the desks of a run's unfinished dispatches, in their order.

    Agents can write where their desk is said to be: one that is elsewhere than a run lays desks out is none.

    Args:
        run_folder: The folder of the run.
        state: Its folder outside of the repository.
    """
    found: list[Desk] = []
    for exchange, place in open_places(run_folder):
        desk = Desk(place)
        asked = desk.asked() if any(place.is_relative_to(top.resolve()) for top in (exchange, state)) else None
        if asked is not None and asked.dispatch == exchange.parent.name:
            found.append(desk)
    return found


def desks_gone(run_folder: Path) -> list[str]:
    """Return the unfinished dispatches of a run whose desk is there no more."""
    return [exchange.parent.name for exchange, place in open_places(run_folder) if not place.exists()]


def open_places(run_folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the exchange folder of each unfinished dispatch that names a desk, and the place that it names."""
    for pointer in sorted(run_folder.glob(f"dispatches/*/exchange/{POINTER}")):
        dispatch = pointer.parents[1]
        if ".lost-" in dispatch.name or (dispatch / "result.json").exists():
            continue
        with suppress(OSError, ValueError):
            yield pointer.parent, _place(pointer.parent)


def _place(exchange: Path) -> Path:
    """Return the desk folder that a dispatch's exchange folder names."""
    return Path(_read(exchange / POINTER).decode()).resolve()


def _read(path: Path) -> bytes:
    content = read_regular(path, _LONGEST)
    if len(content) > _LONGEST:
        raise OSError(errno.EOVERFLOW, "too large", str(path))
    return content
