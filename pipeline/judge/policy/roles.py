"""Roles and their permissions: the front matter of `agents/*.md`, parsed strictly.

A file is a contract and a prompt. The contract is closed: an unknown key, a misspelt word or a key given twice is an
error with its line, because a typo that is silently ignored would widen a permission. The body is the prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from pipeline.data_types import Frozen
from pipeline.vocabulary import Role
from pipeline.yaml_text import YamlError, read, text_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails


class Writes(StrEnum):
    """The set of paths that a role may change; `policy.rights` gives each its meaning."""

    NOTHING = "nothing"
    TESTS = "tests"
    TASK = "task"
    AREA = "area"
    """The paths that a dispatch's patterns cover, in place of a task's files; a dispatch sets it, no role's file
    may."""


class Network(StrEnum):
    """The network that a box opens: none, the model's endpoint, or all (contract 4)."""

    NONE = "none"
    MODEL = "model"
    OPEN = "open"


KINDS_OF: Final[Mapping[Role, tuple[str, ...]]] = {
    Role.ORCHESTRATOR: ("plan", "plan-and-tasks", "split"),
    Role.CHECK: ("review-plan", "review-split", "review-result", "review-step", "judge", "answer"),
    Role.SIMPLIFY: ("review-plan", "review-result", "review-step", "answer"),
    Role.TEST: ("write-tests",),
    Role.MAKE: ("stub", "seam", "implement", "build", "change"),
    Role.PM: ("follow-ups",),
    Role.EXPLORE: ("answer",),
}
"""The kinds of questions that each role can be asked (contract 5). `reports.kinds` says how each is answered; a test
compares the two, since reports may import policy and not the reverse."""

FAMILY: Final[Mapping[Role, Writes]] = {
    Role.ORCHESTRATOR: Writes.NOTHING,
    Role.CHECK: Writes.NOTHING,
    Role.SIMPLIFY: Writes.NOTHING,
    Role.TEST: Writes.TESTS,
    Role.MAKE: Writes.TASK,
    Role.PM: Writes.NOTHING,
    Role.EXPLORE: Writes.NOTHING,
}
"""The largest set that each role may write. A role's file may say `nothing` instead, no other set."""


@dataclass(frozen=True)
class Problem:
    """A fault in a file: the line, counted from 1, the message, and the words accepted there."""

    line: int
    message: str
    accepted: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = f" (accepted: {', '.join(self.accepted)})" if self.accepted else ""
        return f"{self.message}{words}"


class ContractError(ValueError):
    """A file of `agents/` or `commands/` is not valid.

    Args:
        name: The file's name without `.md`.
        problems: What is wrong, in order of the lines; at least one.
    """

    def __init__(self, name: str, *problems: Problem) -> None:
        super().__init__("\n".join(f"{name}.md:{problem.line}: {problem}" for problem in problems))
        self.name = name
        self.problems = problems


def _flag(value: object) -> object:
    """Return the boolean of `true` or `false`; YAML's other spellings are refused."""
    if isinstance(value, str):
        if value not in {"true", "false"}:
            raise ValueError("accepted: true, false")
        return value == "true"
    return value


Flag = Annotated[bool, BeforeValidator(_flag)]


class RoleSpec(Frozen):
    """The permissions and the prompt of one role."""

    name: Role
    description: str = Field(min_length=1, max_length=200)
    kinds: tuple[str, ...]
    writes: Writes
    test_regions: Flag = False
    """Whether the role may change test regions in production files, such as `#[cfg(test)]` modules."""
    shell: Flag
    """Whether the role may run commands in the box."""
    network: Network
    """The network that the box opens unless the backend or the user says otherwise."""
    timeout_s: int = Field(ge=1, le=86_400)
    prompt: str = Field(min_length=1)

    @field_validator("kinds")
    @classmethod
    def _kinds_of_the_role(cls, kinds: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        wanted = KINDS_OF[info.data["name"]] if "name" in info.data else kinds
        if sorted(kinds) != sorted(wanted):
            raise ValueError(f"the kinds of this role are: {', '.join(wanted)}")
        return kinds

    @field_validator("writes")
    @classmethod
    def _family_of_the_role(cls, writes: Writes, info: ValidationInfo) -> Writes:
        family = FAMILY[info.data["name"]] if "name" in info.data else writes
        if writes not in {Writes.NOTHING, family}:
            words = " or ".join(dict.fromkeys((Writes.NOTHING, family)))
            raise ValueError(f"this role writes {words}")
        return writes

    @field_validator("test_regions")
    @classmethod
    def _regions_of_test_only(cls, allowed: bool, info: ValidationInfo) -> bool:
        if allowed and info.data.get("name") is not Role.TEST:
            raise ValueError("only the role test has test regions")
        return allowed

    @field_validator("shell")
    @classmethod
    def _no_shell_for_readers(cls, allowed: bool, info: ValidationInfo) -> bool:
        name = info.data.get("name")
        if allowed and name is not None and FAMILY[name] is Writes.NOTHING:
            raise ValueError("a role that only reads has no shell")
        return allowed


def parse_role(text: str, name: str) -> RoleSpec:
    """Return the role that the file `<name>.md` describes.

    Raises:
        ContractError: anything in the file is not understood, or `name` is not the role's.
    """
    spec = parse_contract(RoleSpec, text, name, body="prompt")
    if spec.name != name:
        raise ContractError(name, Problem(1, f"the file is called {name}.md but names the role {spec.name.value!r}"))
    return spec


_Model = TypeVar("_Model", bound=BaseModel)


def parse_contract(model: type[_Model], text: str, name: str, *, body: str) -> _Model:
    """Return a `model` with the values of a file's front matter, and the rest of the file in its field `body`.

    Raises:
        ContractError: with every problem of the front matter, or the first one of its syntax.
    """
    head, rest = _split(text, name)
    keys = [key for key in model.model_fields if key != body]
    values: dict[str, object] = {}
    lines: dict[str, int] = {}
    for key, value, line in _entries(head, name):
        if key not in keys:
            raise ContractError(name, Problem(line, f"unknown key {key!r}", tuple(keys)))
        values[key], lines[key] = value, line
    try:
        return model.model_validate({**values, body: rest})
    except ValidationError as error:
        problems = [_explain(fault, lines) for fault in error.errors()]
        raise ContractError(name, *sorted(problems, key=lambda problem: problem.line)) from None


def _explain(error: ErrorDetails, lines: Mapping[str, int]) -> Problem:
    key = str(error["loc"][0]) if error["loc"] else "?"
    line = lines.get(key, 1)
    if error["type"] == "missing":
        return Problem(line, f"the key {key!r} is missing")
    if key not in lines:  # the body: nothing of it is worth repeating
        return Problem(line, f"the {key} after the front matter is empty")
    if error["type"] == "enum":
        words = tuple(_QUOTED.findall(str(error.get("ctx", {}).get("expected", ""))))
        return Problem(line, f"{key}: unknown word {error['input']!r}", words)
    return Problem(line, f"{key}: {error['msg'].removeprefix('Value error, ')}, found {error['input']!r}")


_FENCE: Final = "---"
_BREAK: Final = re.compile(r"\r\n?|\n")
"""The line ends of YAML. Python's `splitlines` has more, which would split lines that YAML refuses."""
_QUOTED: Final = re.compile(r"'([^']*)'")
_DEPTH: Final = 2
"""The deepest nesting: a mapping with lists in it."""


def _split(text: str, name: str) -> tuple[str, str]:
    first, *rest = _BREAK.split(text.removeprefix("\ufeff"))
    if first != _FENCE or _FENCE not in rest:
        raise ContractError(name, Problem(1, "the file must start with front matter between two lines of ---"))
    end = rest.index(_FENCE)
    return "\n".join(rest[:end]), "\n".join(rest[end + 1 :]).strip()


def _entries(head: str, name: str) -> list[tuple[str, object, int]]:
    """Return key, value (a string or a list of strings) and line of each front matter entry."""
    try:
        front = read(head, scalar=text_only, deepest=_DEPTH, first_line=2)
    except YamlError as error:
        raise ContractError(name, Problem(error.line, error.message)) from None
    if front.mapping is None:
        raise ContractError(name, Problem(2, "front matter is a list of `key: value` lines"))
    entries = [(key, value, front.place(f"/{key}")[0]) for key, value in front.mapping.items()]
    for _, value, line in entries:
        words = cast("list[object]", value) if isinstance(value, list) else [value]
        if not all(isinstance(word, str) for word in words):
            raise ContractError(name, Problem(line, "a value is a word or a list of words"))
    return entries
