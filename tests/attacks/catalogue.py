"""The attacks as data: the corpus as it was handed down, our own cases, and how a text is changed before it runs."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE: Final = Path(__file__).parent
CORPUS_CASES: Final = 131
_PLACEHOLDER: Final = re.compile(r"\{(view|real|host|run|tcp|udp|abstract|pty|victim|driver)\}")


class Verdict(StrEnum):
    """How an attack may end; the meanings are in the head of corpus.yaml."""

    BLOCKED = "blocked"
    VIOLATION = "violation"
    DISCARDED = "discarded"
    DROPPED = "dropped"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_GREEN = "not-green"
    NEUTRALISED = "neutralised"
    FLAGGED = "flagged"


class Layer(StrEnum):
    """What of the product has to answer."""

    DISPATCH = "kernel+gate"
    FILE_TOOL = "filetool"
    CONTENT = "content"
    COMMAND = "bash"
    VERDICT = "verdict"
    TEXT = "text"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shell(_Data):
    """A script that the agent runs in its view."""

    kind: Literal["shell"]
    text: str


class FileTool(_Data):
    """A path that an in-process file tool is asked to write."""

    kind: Literal["file_tool"]
    path: str


class RustDiff(_Data):
    """A Rust file before and after."""

    kind: Literal["rust_diff"]
    title: str
    old: str
    new: str


class BashCommand(_Data):
    """A command line that an in-process shell tool is asked to run."""

    kind: Literal["bash_cmd"]
    text: str


class PytestTree(_Data):
    """A project whose tests lie; the tree itself is in code, by id."""

    kind: Literal["pytest_tree"]
    text: str


class Words(_Data):
    """Something that is said where it must be no more than text; what is done with it is in code, by id."""

    kind: Literal["text"]
    text: str


class Expected(_Data):
    """How it has to end, and by what; `path` is the file that has to be gone where it is dropped."""

    verdict: Verdict
    by: str
    path: str = ""


class Case(_Data):
    """One attack, or one positive control."""

    id: str
    role: Role
    category: str
    layer: Layer
    attempt: Annotated[
        Shell | FileTool | RustDiff | BashCommand | PytestTree | Words,
        Field(discriminator="kind"),
    ]
    expected: Expected
    note: str = ""
    known_gap: bool

    @property
    def text(self) -> str:
        """Return the text of an attempt that has one."""
        assert isinstance(self.attempt, Shell | BashCommand | PytestTree | Words)
        return self.attempt.text


class _Attacks(_Data):
    version: Literal[1]
    placeholders: dict[str, str]
    vocabulary: dict[Verdict, str]
    attacks: tuple[Case, ...]


class Change(_Data):
    """How the text of one case is changed before it runs, so that it harms nobody where the defence fails.

    Args:
        id: The case.
        where: `everywhere`, or `shared`: only where commands use the host's own paths.
        replace: Old words to new words; each old word has to be there.
        text: The whole new text, instead.
        why: The reason.
    """

    id: str
    where: Literal["everywhere", "shared"]
    replace: dict[str, str] = {}
    text: str | None = None
    why: str


class _Changes(_Data):
    changes: tuple[Change, ...]


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Each worker reads the catalogue, and in C that takes a tenth."""


@cache
def corpus() -> tuple[Case, ...]:
    """Return the cases that were handed down."""
    return _read("corpus.yaml").attacks


@cache
def own() -> tuple[Case, ...]:
    """Return the cases that the corpus lacks."""
    return _read("own.yaml").attacks


def cases(layer: Layer) -> tuple[Case, ...]:
    """Return all cases of one layer."""
    return tuple(case for case in (*corpus(), *own()) if case.layer is layer)


def script(case: Case, *, shared: bool, places: Mapping[str, str]) -> str:
    """Return the text of a case as it is run.

    Args:
        case: A case of the layer kernel+gate.
        shared: Whether commands use the host's own paths.
        places: What stands for each placeholder.
    """
    text = case.text
    for change in changes():
        if change.id == case.id and (shared or change.where == "everywhere"):
            text = _changed(text, change)
    return _PLACEHOLDER.sub(lambda found: places[found[1]], text)


@cache
def changes() -> tuple[Change, ...]:
    """Return every change of a text, in the order in which they are made."""
    return _Changes.model_validate(yaml.safe_load((HERE / "changes.yaml").read_text(encoding="utf-8"))).changes


def _changed(text: str, change: Change) -> str:
    if change.text is not None:
        return change.text
    for old, new in change.replace.items():
        assert old in text, f"{change.id}: {old!r} is not in the text any more"
        text = text.replace(old, new)
    return text


def _read(name: str) -> _Attacks:
    return _Attacks.model_validate(yaml.load((HERE / name).read_text(encoding="utf-8"), Loader=_LOADER))  # noqa: S506  (either is a safe one)
