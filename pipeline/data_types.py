"""Types of what comes in, validated there: whole data, and names for a path or a word of a git command.

A run folder, a ref or a commit may be a stranger's. What reads a journal, run.json, result.json or the evidence has
these types in its models, so that nobody who uses such a name has to look at it again.
"""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

_BARE: Final = r"[A-Za-z0-9_][A-Za-z0-9._@-]*"

BareName = Annotated[str, StringConstraints(pattern=rf"^{_BARE}$", max_length=200)]
"""The name of a file, folder, run, issue, task or dispatch: without separator, not hidden and not `..`."""

ArtifactName = Annotated[str, StringConstraints(pattern=rf"^(?:{_BARE}/)*{_BARE}$", max_length=1000)]
"""The path of an artifact below its run folder."""

ObjectName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
"""The name of a commit or tree as a run records it: never an option, a range or a path."""

BranchName = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]*$", max_length=1000)]
"""The name of a branch, which is never an option; git decides what else is valid."""

SESSION: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}"
SessionName = Annotated[str, StringConstraints(pattern=rf"^{SESSION}$")]
"""The name of a conversation of an agent's product; never an option, since it becomes a word of a command line."""

Timestamp = Annotated[str, StringConstraints(pattern=r"^[0-9T:.+Z-]{1,40}$")]


class Frozen(BaseModel):
    """Data that cannot be changed. A key that it does not know is an error, also in a file that a person wrote.

    Its validator is built by who first needs it: a command imports many of these and uses few.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    @classmethod
    def from_fields(cls, *sources: object, **own: object) -> Self:
        """Return it with its *own* fields as given, each other one as the first source says that has its name."""
        names = cls.model_fields.keys() - own.keys() - {"schema_"}
        found = {name: getattr(one, name) for one in reversed(sources) for name in names if hasattr(one, name)}
        return cls.model_validate({**found, **own})


_BRANCH: Final = TypeAdapter[str](BranchName)


def is_branch_name(name: str) -> bool:
    """Return whether a run can record the name of this branch; git allows bytes that are no text."""
    try:
        _BRANCH.validate_python(name)
    except ValidationError:
        return False
    return True
