"""Finds the tasks that want stubs, says what stubs look like, and which are left in a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.steps.evidence_records import baseline_of
from pipeline.testing.languages.projects.combined import for_files
from pipeline.testing.measure.measuring import changed_paths
from pipeline.testing.measure.red import texts

if TYPE_CHECKING:
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.testing.languages.toolchain import Toolchain


def waiting_name(task: str) -> str:
    """Return the artifact with the ids of the tests that the accepted stubs break, and that the task may change."""
    return f"evidence/stubs-{task}.json"


def stubs_left(ctx: Context, tree: str) -> tuple[str, ...]:
    """Return where the candidate still has stubs that the stub pass of its task put there: `path:line`."""
    task = ctx.state.task
    if task.stubs is None or not task.testable:
        return ()
    layout = baseline_of(ctx).layout
    paths = [
        path
        for path in changed_paths(ctx, task.start, task.stubs)
        if path.endswith(ctx.toolchain.sources) and not layout.is_test_side(path)
    ]
    before, stubbed, after = (texts(ctx, one, paths) for one in (task.start or task.stubs, task.stubs, tree))
    found: list[str] = []
    for path, text in after.items():
        places, was, had = (
            [one.count("\n", 0, at) + 1 for at in _stubs(ctx, path, one)]
            for one in (text, before.get(path, ""), stubbed.get(path, ""))
        )
        extra = min(len(had), len(places)) - len(was)
        found += [f"{path}:{line}" for line in places[len(places) - extra :]] if extra > 0 else []
    return tuple(found)


def _stubs(ctx: Context, path: str, text: str) -> list[int]:
    """Return where stubs begin, in characters; a file that no toolchain owns has none."""
    return [match.start() for one in for_files(ctx.toolchain, [path]) for match in one.stub_like.finditer(text)]


def symbols_of(task: Task) -> tuple[Symbol, ...]:
    """Return what the task introduces or changes, as the toolchain and the classification know it."""
    return tuple(Symbol(path=s.path or "", name=s.name, new=s.new) for s in task.symbols)


def wants_stubs(ctx: Context, task: Task) -> bool:
    """Return whether the task's new symbols are scaffolded first: by `[stub_first]`, for the files' languages."""
    return wants_stubs_in(ctx, task) and any(symbol.new for symbol in task.symbols)


def wants_stubs_in(ctx: Context, task: Task) -> bool:
    """Return whether new symbols in some of the task's files would be scaffolded first, whatever it introduces."""
    return any(ctx.config.stub_first.holds_for(toolchain.name) for toolchain in _languages(ctx, task))


def scaffolds(ctx: Context, task: Task) -> bool:
    """Return whether new symbols in all of the task's files would be, so that none is missing when tests are run."""
    languages = _languages(ctx, task) if task.files else ()
    return bool(languages) and all(ctx.config.stub_first.holds_for(toolchain.name) for toolchain in languages)


def stub_of(ctx: Context, task: Task) -> str:
    """Return what the body of a stub is in the languages of the task's files, for people and agents."""
    return " or ".join(f"`{toolchain.stub}`" for toolchain in _languages(ctx, task))


def _languages(ctx: Context, task: Task) -> tuple[Toolchain, ...]:
    return for_files(ctx.toolchain, [change.path for change in task.files])
