"""What @test's changes loosen: against the tests as they were, and against its own last ones (issue "freeze")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.policy.weakening import weakenings
from pipeline.steps.measuring import changed_paths

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_PYTHON = ".py"


def loosened(ctx: Context, before: str, after: str) -> tuple[str, ...]:
    """Return what the tree *after* no longer notices that *before* did, one line each; by file.

    Only Python is read so far; of other files nothing is said.
    """
    found: list[str] = []
    for path in changed_paths(ctx, before, after):
        old, new = (ctx.repository.blob(f"{tree}:{path}") for tree in (before, after))
        if path.endswith(_PYTHON) and old is not None:
            lines = weakenings(old, new if new is not None else b"")
            found += [f"{path}: {line}" for line in lines]
    return tuple(found)
