"""Fields that several reports share: paths, texts, severities. Every model is closed, frozen and strict."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pipeline.characters import HIDDEN
from pipeline.judge.policy.paths import protected
from pipeline.judge.policy.rights import Action

_LONGEST_PATH: Final = 1024
_BREAKS: Final = frozenset({"Cc", "Zl", "Zp"})


class StrictModel(BaseModel):
    """The base of values from outside: unknown keys are errors, types are not converted, values are frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def path_problem(path: str) -> str | None:
    """Return why `path` may not stand in a report, None if it may (contract 5).

    The gate judges paths again with the file system at hand; this refuses what no file system is needed for.
    """
    if not path.strip():
        return "is empty"
    if len(path) > _LONGEST_PATH:
        return f"is longer than {_LONGEST_PATH} characters"
    if path.startswith("/"):
        return "is absolute"
    if "\\" in path:
        return "contains a backslash"
    if HIDDEN.search(path):
        return "contains a control or invisible character"
    parts = path.split("/")
    if ".." in parts:
        return "contains '..'"
    if "." in parts or "" in parts:
        return "contains an empty or '.' component"
    if protected(path) is not None:
        return "goes into .git or .workflow"
    return None


def _checked_path(path: str) -> str:
    problem = path_problem(path)
    if problem is not None:
        raise PydanticCustomError(
            "path", "the path {problem}; accepted: a relative POSIX path inside the repository", {"problem": problem}
        )
    return path


RelPath = Annotated[str, AfterValidator(_checked_path), Field(description="relative POSIX path inside the repository")]
"""A path in a report, relative to the workspace."""


def _checked_line(text: str) -> str:
    if not text.strip() or any(unicodedata.category(character) in _BREAKS for character in text):
        raise PydanticCustomError("line", "accepted is one line of text that says something")
    return text


Line = Annotated[str, Field(max_length=300), AfterValidator(_checked_line)]
"""A non-empty line, such as a title or a name."""

Prose = Annotated[str, StringConstraints(pattern=r"\S")]
"""A non-empty text."""

Texts = tuple[str, ...]


class FileChange(StrictModel):
    """A file of a plan or task, with the action on it; `origin` is the old path of a rename ("from" in a report)."""

    path: RelPath
    action: Action
    origin: RelPath | None = Field(default=None, alias="from")

    @model_validator(mode="after")
    def _only_a_rename_has_an_origin(self) -> FileChange:
        if (self.action is Action.RENAME) != (self.origin is not None):
            raise PydanticCustomError("rename", 'the key "from" belongs to action "rename", and only to it')
        if self.origin == self.path:
            raise PydanticCustomError("rename", 'a rename needs two different paths in "from" and "path"')
        return self


SimpleAction = Literal["modify", "create", "delete"]


class Need(StrictModel):
    """A file that an agent asks for because the task does not name it (matrix 3)."""

    path: RelPath
    action: SimpleAction = "modify"
    why: str = ""


class HonouredSeam(StrictModel):
    """Whether the work keeps a contract between steps, which `name` names."""

    name: Line
    honoured: bool
    note: str = ""


AGREED: Final = "agreed by @check"
"""Why an old test may have another text where nothing else says so: who agreed has seen no code for it."""


class OldTest(StrictModel):
    """An existing test that may change, and why."""

    id: Line
    reason: str = ""

    @property
    def is_text_only(self) -> bool:
        """Return whether only another text of the test was agreed to: its old form has to hold all the same."""
        return self.reason == AGREED


class Symbol(StrictModel):
    """A name that a task introduces or changes, which a legal RED may miss (matrix 5)."""

    name: Line
    path: RelPath | None = None
    signature: str = ""
    new: bool = True


class OutOfScope(StrictModel):
    """An existing bug outside the task; filed as a sub-issue with label bug."""

    title: Line
    description: str = ""


class Report(StrictModel):
    """The fields of every report, whatever its kind."""

    out_of_scope: tuple[OutOfScope, ...] = ()


class Severity(StrEnum):
    """The severity of a finding, in @check's words."""

    BLOCK = "BLOCK"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"

    @property
    def rank(self) -> int:
        """Return the rank of the severity, 0 for the worst."""
        return list(Severity).index(self)


class Verdict(StrEnum):
    """The verdicts of @check."""

    ACCEPTABLE = "ACCEPTABLE"
    NEEDS_WORK = "NEEDS WORK"
    BLOCK = "BLOCK"


class Concern(StrEnum):
    """The subject of a finding, by which the final review is routed."""

    PRODUCTION = "production"
    TEST = "test"
    PLAN = "plan"
    SPLIT = "split"
    COSMETIC = "cosmetic"


class Evidence(StrEnum):
    """The proof of a task: tests that fail first, or only that nothing else breaks."""

    RED = "red"
    REGRESSION = "regression"


class Symptom(StrEnum):
    """How a bug shows if not by a failing assertion."""

    HANG = "hang"
    CRASH = "crash"
