"""Shares what PLAN and SPLIT need: the artifacts that lead to a draft, and findings as input of the next one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.results import refusal_of
from pipeline.reports.markdown import bullets
from pipeline.reports.problems import Problem, misplaced
from pipeline.routing.refusals import told_why, why_unusable
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Loop, Signal
from pipeline.runs import plans
from pipeline.steps.asking.questions import answers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeline.reports.drafts import PlanAndTasks, PlanReport
    from pipeline.reports.fields import FileChange
    from pipeline.steps.context import Context

REFUSED: Final = "drafts/"
"""Where task files lie that hygiene refused: nobody but the next draft is given them."""


def draft_artifacts(ctx: Context) -> dict[str, list[Path]]:
    """Return the artifacts of a draft: the issue, and what the decision that led here was based on.

    A person's feedback is an artifact of its own name; everything else that sends a draft back is `findings`.
    """
    artifacts = {"issue": [ctx.path("issue.md")], **answers(ctx)}
    came_back = [ctx.path(name) for name in ctx.handed_words() if not name.startswith(REFUSED)]
    if ctx.lane.via is Loop.HUMAN:
        artifacts["feedback"] = came_back
    elif ctx.lane.via is not None and came_back:
        artifacts["findings"] = came_back
    return artifacts


def hygiene_evidence(
    ctx: Context,
    what: str,
    problems: Sequence[Problem],
    number: str,
    drafts: Sequence[str] = (),
    *,
    report_sha256: str | None,
) -> Event:
    """Return HYGIENE with the problems as an artifact: rule, line, sentence; `drafts` are what they were found in.

    `number` tells the file from those of other drafts; `report_sha256` is of what was handed in, None of what was not.
    """
    lines = bullets(f"{p.severity} {p.rule}, line {p.line}: {p.message}" for p in problems)
    text = f"# Dispatch hygiene: this {what} cannot be handed to anybody yet\n\n{lines}\n"
    name = ctx.write(f"reviews/hygiene-{what}-{number}.md", text)
    first = next((p for p in problems if p.severity == "error"), problems[0])
    refusal = refusal_of(report_sha256, text) if report_sha256 is not None else None
    why = why_unusable(ctx.state, None, Signal.HYGIENE, refusal)
    note = told_why(why, f"{first.rule}: {first.message}", Signal.HYGIENE)
    return Event(signal=Signal.HYGIENE, note=note, evidence=(name, *drafts), refusal=refusal)


def planned(ctx: Context) -> PlanReport | PlanAndTasks:
    """Return the report that plan.md was rendered from: the last draft that counted."""
    return plans.planned(ctx.run)


def planned_files(ctx: Context) -> frozenset[str]:
    """Return the files of the plan; none where nobody plans."""
    return frozenset() if ctx.state.one_writer else frozenset(file.path for file in planned(ctx).files)


def as_given(ctx: Context) -> PlanAndTasks | None:
    """Return the plan that the recipe brings along, where it is what counts here: nothing has come back yet."""
    return plans.as_given(ctx.run) if ctx.lane.via is None else None


_LINK: Final = "120000"
_UNTRUE: Final = frozenset({"H007", "H008", "H016"})
"""What is said of a path as if it were a place of its own: not said of one that is none."""


def lint_places(ctx: Context, changes: Iterable[FileChange], asked: Collection[str] = ()) -> list[tuple[str, Problem]]:
    """Return what is wrong with the places of a draft's files, by the path.

    Of one place one thing is said: a path behind a link is none of its own, whatever else is wrong with it. Of the
    paths in `asked` git was asked already: they are looked at for links and twins only.
    """
    changes = tuple(changes)
    entries = ctx.repository.entries(ctx.state.head)
    links = {entry.path: entry.oid for entry in entries if entry.mode == _LINK}
    existing = {entry.path for entry in entries}

    def target(link: str) -> str:
        return (ctx.repository.blob(links[link]) or b"").decode(errors="surrogateescape")

    found = list(dict.fromkeys(misplaced(changes, existing, links, target)))
    wrong = {path for path, _ in found}
    paths = [path for path in dict.fromkeys(change.path for change in changes) if path not in {*wrong, *asked}]
    return [*found, *_filtered(ctx, paths), *_private(ctx, paths)] if paths else found


def true_of(problems: Iterable[Problem], places: Iterable[tuple[str, Problem]]) -> list[Problem]:
    """Return the problems without those that take a misplaced path for a place of its own."""
    starts = tuple(f"{path} " for path, problem in places if problem.rule in {"H023", "H024"})
    return [one for one in problems if not (one.rule in _UNTRUE and starts and one.message.startswith(starts))]


def _filtered(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse paths whose content goes through a filter other than the user's LFS."""
    for path, why in ctx.repository.foreign_filters(ctx.checkout.tree, paths).items():
        way = "Leave it to a person and plan without it, or say in the plan that the issue cannot be done here"
        yield path, Problem(1, "H015", f"{path} {why}. {way}")


def _private(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse new files where the user has one that git does not know: publication would never overwrite it."""
    if ctx.repository.branch() != ctx.run.info.branch:
        return
    for path in paths:
        met = ctx.repository.untracked_at(ctx.state.head, [path])
        if met:
            shown = f"git check-ignore -v -- {shlex.quote(met[0])}"
            why = f"{met[0]} is there in the user's worktree, and git does not know it ({shown}); choose another path"
            yield path, Problem(1, "H021", why)
