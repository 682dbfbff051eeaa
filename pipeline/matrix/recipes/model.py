"""Defines what a recipe may say: closed types whose fields are the words of the file (docs/reference/recipes.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SLUG: Final = r"^[a-z][a-z0-9]*(?:(?:--|[-_])[a-z0-9]+)*$"
"""A name. Ids with two hyphens are in the recipes of earlier runs."""
LARGEST_STEPS: Final = 1_000
TAKEN: Final = frozenset({"trunk", "outcome", "request", "payload_schema"})
"""What no step may be called: the trunk of a run, and files that lie beside those that have the name of the step."""


class Kind(StrEnum):
    """What a step is; the key of the file that says so."""

    AGENT = "agent"
    RUN = "run"
    TESTS = "tests"
    GATE = "gate"
    PHASE = "phase"
    APPLY_FROM = "apply_from"
    FILE_ISSUES = "file_issues"
    PUBLISH = "publish"


_KINDS: Final = tuple((kind, kind.value) for kind in Kind)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Input(_Part):
    """A value that whoever runs the recipe gives, or its default."""

    name: str = Field(pattern=SLUG)
    type: Literal["text", "path", "issue", "issues", "change"] = "text"
    required: bool = False
    default: str | None = None
    description: str = ""


class Accept(_Part):
    """What is measured of a writer's work before it counts: tests that have to pass, and that nothing else broke."""

    tests: str | None = None
    regression: bool = False


class Step(_Part):
    """One step of the file. Exactly one of the keys of `Kind` is given."""

    id: str = Field(pattern=SLUG)
    depends_on: tuple[str, ...] = ()
    agent: Literal["check", "simplify", "explore", "make"] | None = None
    prompt: str | None = None
    run: tuple[str, ...] | None = Field(default=None, min_length=1)
    tests: str | tuple[str, ...] | None = None
    gate: Literal["approve", "ask", "note"] | None = None
    phase: Literal["issue", "plan", "split", "tasks", "build", "review", "publish"] | None = None
    given: Mapping[str, Any] | None = None
    apply_from: str | None = None
    file_issues: str | tuple[str, ...] | None = None
    publish: str | None = None
    accepts: Literal["ready", "partial"] = "ready"
    for_each: str | None = None
    timeout_s: int | None = Field(default=None, ge=1, le=86_400)
    read_set: tuple[str, ...] | None = None
    write_set: tuple[str, ...] | None = None
    workspace_mode: Literal["shared", "isolated", "scratch"] | None = None
    payload: str | dict[str, Any] | None = None
    accept: Accept | None = None
    review: tuple[Literal["check", "simplify"], ...] = ()
    attempts: int | None = Field(default=None, ge=1, le=10)
    expect: Literal["pass", "fail"] | None = None
    otherwise: Literal["fail", "nothing-to-do"] | None = None
    back_to: str | None = None
    model: str | None = None
    effort: Literal["low", "medium", "high"] | None = None
    provides: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return what the step is called to be; a sound one is one thing."""
        return tuple(kind for kind, key in _KINDS if getattr(self, key) is not None)

    @property
    def kind(self) -> Kind:
        """Return what a sound step is."""
        return self.kinds[0]

    @property
    def writes(self) -> bool:
        """Return whether the step may change files of the repository."""
        return self.agent == "make" or self.kind in SHARED_WRITERS or self.kind is Kind.APPLY_FROM


class Recipe(_Part):
    """A whole file, or what a file comes down to that extends another."""

    name: str = Field(pattern=SLUG)
    description: str = ""
    version: int = Field(default=1, ge=1)
    inputs: tuple[Input, ...] = ()
    max_concurrency: int = Field(default=3, ge=1, le=64)
    steps: tuple[Step, ...] = Field(min_length=1)
    output: str | None = None


class Edit(_Part):
    """A change of the recipe that is extended. Exactly one of the first five keys says what is done, and where."""

    insert_after: str | None = None
    insert_before: str | None = None
    replace: str | None = None
    remove: str | None = None
    change: str | None = None
    step: Step | None = None
    keys: dict[str, Any] | None = Field(default=None, alias="set")


class Extension(_Part):
    """A file that says another recipe with changes."""

    name: str = Field(pattern=SLUG)
    extends: str
    description: str | None = None
    version: int = Field(default=1, ge=1)
    inputs: tuple[Input, ...] = ()
    max_concurrency: int | None = Field(default=None, ge=1, le=64)
    edits: tuple[Edit, ...] = ()
    output: str | None = None


SHARED_WRITERS: Final = frozenset({Kind.PUBLISH, Kind.FILE_ISSUES, Kind.PHASE})
"""Kinds that change what everybody sees: each claims the whole repository."""

_ANY: Final = frozenset({"id", "depends_on", "accepts", "for_each", "provides", "requires"})
_ASKED: Final = frozenset({"timeout_s", "attempts"})
KEYS: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.AGENT: _ANY
    | _ASKED
    | {"agent", "prompt", "read_set", "write_set", "workspace_mode", "payload", "accept", "review", "model", "effort"},
    Kind.RUN: _ANY | {"run", "read_set", "expect", "otherwise", "timeout_s"},
    Kind.TESTS: _ANY | {"tests", "expect", "otherwise", "timeout_s"},
    Kind.GATE: _ANY | {"gate", "prompt", "back_to"},
    Kind.PHASE: _ANY | {"phase", "review", "given"},
    Kind.APPLY_FROM: _ANY | {"apply_from", "accept"},
    Kind.FILE_ISSUES: _ANY | {"file_issues"},
    Kind.PUBLISH: _ANY | {"publish"},
}
"""The keys that mean something for each kind."""
SCHEMAS: Final = frozenset({"findings.v1", "diagnosis.v1", "issues.v1", "test_evidence.v1"})
"""Payloads that are known by name."""
