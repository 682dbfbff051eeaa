"""Finds what tools leave behind in a view and `.gitignore` names: it is dropped, and the work is not refused.

It goes nowhere: into no tree, so into no measurement and no commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.policy.control_files import is_control
from pipeline.views.manifest import EntryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.views.view import Survey

DROPPED_WHERE_IGNORED: Final = frozenset(
    {
        *("outside-task", "outside-area", "test-file", "beside-tests"),
        *("symlink", "hard-link", "special-file", "unreadable"),
    }
)
"""The rulings on new files that are dropped where the project ignores them; whatever else is wrong is refused.

A folder that a tool fills has links and sockets in it. They are not even opened, and lie in a view that is thrown away.
"""


def left_behind(
    survey: Survey, ignored: Callable[[Sequence[str]], Mapping[str, str]], named: Callable[[str], bool]
) -> dict[str, str]:
    """Return what is new and the project ignores, each with a line that says by which pattern.

    Not what the task names, and no file that git, an agent or a tool obeys by its name: that is refused as ever.

    Args:
        survey: What was found in the view.
        ignored: Returns, of some paths (a folder ends with `/`), those that a `.gitignore` names, with the pattern.
        named: Whether the task names a path.
    """
    new = [
        change.path
        for change in survey.changes
        if change.path in survey.after
        and change.path not in survey.base
        and not named(change.path)
        and not is_control(change.path)
    ]
    ways = {path: _ways(path, survey) for path in new}
    asked = list(dict.fromkeys(name for names in ways.values() for name in names))
    found: Mapping[str, str] = ignored(asked) if asked else {}
    hits = ((path, next((name for name in names if name in found), None)) for path, names in ways.items())
    return {path: f"{name.rstrip('/')} ({found[name]})" for path, name in hits if name is not None}


def _ways(path: str, survey: Survey) -> tuple[str, ...]:
    """Return the names to ask about a new path by: its new folders, the outermost first, then itself."""
    parts = path.split("/")
    folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
    is_folder = survey.after[path].kind is EntryKind.FOLDER  # git says nothing of one that holds nothing
    return (*(f"{one}/" for one in folders if one not in survey.base), f"{path}/" if is_folder else path)
