"""Names that become part of a path or a word of a git command: checked once, where they come in.

A run folder, a ref or a commit may be a stranger's. What reads a journal, run.json, result.json or the evidence has
these types in its models, so that nobody who uses such a name has to look at it again.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import StringConstraints, TypeAdapter, ValidationError

_BARE: Final = r"[A-Za-z0-9_][A-Za-z0-9._@-]*"

BareName = Annotated[str, StringConstraints(pattern=rf"^{_BARE}$", max_length=200)]
"""The name of a file or folder, a run, an issue, a task, a dispatch: no separator, hidden or `..`."""

ArtifactName = Annotated[str, StringConstraints(pattern=rf"^(?:{_BARE}/)*{_BARE}$", max_length=1000)]
"""The path of an artifact below its run folder."""

ObjectName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
"""A commit or tree as a run writes it down: never an option, a range or a path."""

BranchName = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]*$", max_length=1000)]
"""A branch: what of it is legal git says, but it is never an option."""

SESSION: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}"
SessionName = Annotated[str, StringConstraints(pattern=rf"^{SESSION}$")]
"""A conversation of an agent's product: never an option, since it becomes a word of a command line."""

Timestamp = Annotated[str, StringConstraints(pattern=r"^[0-9T:.+Z-]{1,40}$")]

_BRANCH: Final = TypeAdapter[str](BranchName)


def is_branch_name(name: str) -> bool:
    """Return whether a run can write the name of this branch down; git allows bytes that are no text."""
    try:
        _BRANCH.validate_python(name)
    except ValidationError:
        return False
    return True
