"""Adds stand-ins for new names to production, so that an old test file that imports one can be loaded.

Over production that lacks the name nothing in that file can be collected, its old tests included. With a stand-in it is
as if each new test imported the name for itself: it has to fail, and by the same rules. Python's files only: elsewhere
new names are scaffolded by @make.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Final

from pipeline.git import Entry, TreeChange
from pipeline.languages.names import is_module
from pipeline.measure.red.over_stubs import texts
from pipeline.reports.tasks import MAKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.evidence.observation import CollectionError
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.reports.tasks import Task

_PYTHON: Final = ".py"
_FUNCTION: Final = """

if "{name}" not in globals():

    def {name}(*_args, **_kwargs):
        raise NotImplementedError
"""
_CLASS: Final = """

if "{name}" not in globals():

    class {name}(Exception):
        def __init__(self, *_args, **_kwargs):
            raise NotImplementedError
"""


def with_stand_ins(
    ctx: MeasurementContext, tasks: Sequence[Task], production: str, errors: Iterable[CollectionError]
) -> str | None:
    """Return production with a stand-in for each new name that it lacks; None if none is lacking.

    What is there is never replaced. A class is an exception at the same time, so that a test may expect it.

    Args:
        ctx: The run, or what measures without one.
        tasks: The tasks that introduce the names.
        production: The tree.
        errors: Why files of tests cannot be imported over it: a name that a task's file lacks needs not be listed.
    """
    wanted = _names(tasks, errors)
    there = {entry.path: entry for entry in ctx.repository.entries(production, *wanted)} if wanted else {}
    known = texts(ctx, production, [*there])
    changes: list[TreeChange] = []
    for path, names in wanted.items():
        text = known.get(path, "") + "".join(_stand_in(name) for name in names)
        if path not in there or text != known.get(path):
            mode = there[path].mode if path in there else "100644"
            changes.append(TreeChange(path, Entry(path, mode, ctx.repository.write_blob(text.encode()))))
    return ctx.repository.build_tree(production, changes) if changes else None


def _names(tasks: Sequence[Task], errors: Iterable[CollectionError]) -> Mapping[str, list[str]]:
    """Return the new names by file: those that tasks list, and those that imports look for in a task's file."""
    files = [change for task in tasks for change in task.files if change.path.endswith(_PYTHON)]
    found: dict[str, list[str]] = {change.path: [] for change in files if change.action in MAKING}
    pairs = [(s.path or files[0].path, s.name) for task in tasks for s in task.symbols if s.new and (s.path or files)]
    missing = [error.fault.missing for error in errors if error.fault.missing is not None]
    pairs += [(change.path, one.name) for change in files for one in missing if is_module(change.path, one.owner)]
    for path, name in dict.fromkeys(pairs):
        top = name.partition(".")[0].strip()
        names = found.setdefault(path, []) if path.endswith(_PYTHON) else []
        if top.isidentifier() and not iskeyword(top) and top not in names:
            names.append(top)
    return found


def _stand_in(name: str) -> str:
    is_class = name[:1].isupper() and not name.isupper()
    return (_CLASS if is_class else _FUNCTION).format(name=name)
