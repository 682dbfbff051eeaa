"""Makes the commits of a run, reproducibly: one for each accepted task in order, then the tracker's."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.characters import on_one_line, visible
from pipeline.config.commits import split_type, styled
from pipeline.judge.reports.fields import Evidence
from pipeline.judge.reports.hygiene import SUBJECT
from pipeline.repo import Signature
from pipeline.run import tracker
from pipeline.steps.evidence_records import baseline_of, read_evidence
from pipeline.steps.publication.follow_ups import Item, file_items
from pipeline.steps.publication.publisher import Built, start_of
from pipeline.steps.publication.trees import put_on
from pipeline.steps.wanted_stubs import stub_of, waiting_name
from todo import NO_EDITS, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pipeline.judge.evidence.observation import Layout
    from pipeline.judge.reports.tasks import Task
    from pipeline.matrix.routing.state import TaskState
    from pipeline.steps.context import Context, DriverContext
    from pipeline.steps.publication.publisher import Base, Publisher

_WRITING: Final = frozenset({"write-tests", "implement", "seam", "stub", "build", "change"})
"""Kinds of dispatches whose work is in the commits."""
_TEXTS: Final = (".md", ".rst", ".adoc")
_ENDS: Final = ",;:.!?"
_JOINS: Final = "-'\u2019"
"""What stands within plain words."""
_PARTS: Final = re.compile(r"::|[.#]")


def run_time(ctx: Publisher) -> datetime:
    """Return the time that the run's commits carry: SOURCE_DATE_EPOCH where it is set, else when the run started."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdecimal():
        return datetime.fromtimestamp(int(epoch), UTC)
    return datetime.fromisoformat(ctx.run.info.started_at)


def signature(ctx: Publisher) -> Signature:
    """Return the user's identity with the run's time.

    Raises:
        UserError: git has no identity.
    """
    name, email = ctx.repository.identity()
    return Signature(name, email, f"{int(run_time(ctx).timestamp())} +0000")


@dataclass(frozen=True)
class Planned:
    """A commit to be: the trees that it leads from and to in the run, its message, and what it is of, in words."""

    before: str
    after: str
    message: str
    of: str


def planned(ctx: Context, base: Base) -> tuple[Planned, ...]:
    """Return the commits of the run's work in order, as they are to be put on *base*; without the tracker's."""
    tree = ctx.run.info.start_tree
    found: list[Planned] = []
    for number, task in enumerate(ctx.state.done_tasks):
        found += _own(ctx, tree, number)
        tree = found[-1].after if found else tree
        accepted = _accepted_tree(task)
        if accepted == tree:
            continue
        paths = [change.path for change in ctx.repository.diff(tree, accepted)]
        message = task_message(ctx, task, paths, base.commit)
        if _is_scaffolded(ctx, task, tree):
            found.append(Planned(tree, task.stubs or tree, _scaffold_message(ctx, task), f"task {task.id}"))
            tree = task.stubs or tree
        found.append(Planned(tree, accepted, message, f"task {task.id}"))
        tree = accepted
    found += _own(ctx, tree, len(ctx.state.done_tasks))
    tree = found[-1].after if found else tree
    if ctx.state.head != tree:  # a cosmetic edit after the last task
        message = message_of("style: apply cosmetic findings of the final review", "", trailers(ctx))
        found.append(Planned(tree, ctx.state.head, message, "the final review"))
    return tuple(found)


def _own(ctx: Context, tree: str, accepted: int) -> Iterator[Planned]:
    """Yield the commits of the recipe's own steps that were done when so many tasks were accepted."""
    for one in ctx.state.written:
        if one.accepted == accepted and one.tree != tree:
            yield Planned(tree, one.tree, _own_message(ctx, one.step, tree, one.tree), f"step {one.step}")
            tree = one.tree


def request_name(step: str) -> str:
    """Return where it is kept what a step was asked."""
    return f"steps/{step}/request-{step}.md"


def _own_message(ctx: Context, step: str, before: str, after: str) -> str:
    """Return the message of a step's commit: what the recipe asks for, in its first line."""
    paths = [change.path for change in ctx.repository.diff(before, after)]
    kind = commit_type(paths, baseline_of(ctx).layout, Evidence.REGRESSION, is_fix=False, sources=ctx.toolchain.sources)
    asked = ctx.read(request_name(step)).strip().partition("\n")[0].rstrip(" .:")
    return message_of(first_line(kind, asked), "", [*trailers(ctx), ("Step", step)])


class Chain:
    """Commits on a base, each on the one before, in the user's name; only objects are written.

    Raises:
        SigningError: the user signs commits, and it did not work in time.
        UserError: git has no identity.
    """

    def __init__(self, ctx: DriverContext, base: Base) -> None:
        self.ctx = ctx
        self.commits: tuple[str, ...] = ()
        self.tree = ctx.repository.tree_of(base.commit)
        self._tip = base.commit
        self._who, self._key = signature(ctx), ctx.repository.signing_key()

    def add(self, tree: str, message: str) -> None:
        """Add a commit with the files of *tree*."""
        told = in_form(self.ctx, message, self._who)
        self._tip = self.ctx.repository.commit_tree(tree, (self._tip,), told, self._who, sign=self._key)
        self.commits, self.tree = (*self.commits, self._tip), tree

    def tracked(self, issue: str, status: Status, comment: str, wanted: Sequence[Item]) -> tuple[str, tuple[str, ...]]:
        """Return the files as they are with a status and a comment of the issue, and the ids of what it files.

        What the user has committed as it was before the run is not put back to Todo.

        Raises:
            UserError: the tracker is broken.
        """
        issues = tracker.in_tree(self.ctx.repository, self.tree)
        with tracker.as_user_errors(issues):
            stays = status is Status.TODO and issues.read(issue).status is not Status.IN_PROGRESS
            edits = NO_EDITS if stays else issues.set_status(issue, status)
            edits = edits.then(issues.with_edits(edits).comment(issue, run_time(self.ctx).date(), comment))
            filed, more = file_items(issues.with_edits(edits), issue, wanted)
        return tracker.tree_with(self.ctx.repository, self.tree, issues, edits.then(more)), filed


def build_commits(ctx: Context, wanted: tuple[Item, ...], base: Base) -> Built:
    """Return the new commits, with the ids of the filed follow-ups; only objects are written.

    Args:
        ctx: The run.
        wanted: What the run saw and did not do, as it is to be filed.
        base: What they are put on.

    Raises:
        SigningError: the user signs commits, and it did not work in time.
        UserError: git has no identity, or the tracker is broken.
    """
    chain = Chain(ctx, base)
    for each in planned(ctx, base):
        chain.add(put_on(ctx.repository, chain.tree, each.before, each.after).tree, each.message)
    text = closing_text(ctx.run.info.branch, ctx.run.info.run_id, chain.commits)
    final, filed = chain.tracked(ctx.issue, Status.DONE, text, wanted)
    chain.add(final, message_of(_closing(ctx), "\n".join(f"Files {issue}." for issue in filed), trailers(ctx)))
    return Built(chain.commits, filed)


def planned_subjects(ctx: Context) -> tuple[str, ...]:
    """Return the subjects of all commits as they are to be put on the start, oldest first."""
    who = signature(ctx)
    messages = (*(each.message for each in planned(ctx, start_of(ctx))), message_of(_closing(ctx), "", trailers(ctx)))
    return tuple(in_form(ctx, message, who).partition("\n")[0] for message in messages)


def in_form(ctx: DriverContext, message: str, who: Signature) -> str:
    """Return a message in the form that `[commits]` asks for."""
    ticket = ctx.run.info.issue or ctx.run.info.run_id
    return styled(message, ctx.config.commits, ticket, f"{who.name} <{who.email}>")


def _closing(ctx: Context) -> str:
    return f"chore(todo): close {ctx.issue}"


def _is_scaffolded(ctx: Context, task: TaskState, tree: str) -> bool:
    """Return whether the stubs of a task are a commit before it: not if they alone break a test.

    Those of one writer were made for the measurement.
    """
    evidence, waiting = read_evidence(ctx, task.id), ctx.path(waiting_name(task.id))
    of_one_writer = evidence is not None and evidence.writers is not None
    are_new = task.testable and task.stubs is not None and task.stubs not in {tree, _accepted_tree(task)}
    return are_new and not of_one_writer and not (waiting.exists() and json.loads(waiting.read_bytes()))


def _accepted_tree(task: TaskState) -> str:
    tree = task.candidate or task.red
    if tree is None:
        raise LookupError(f"task {task.id} is done and has no tree")
    return tree


def closing_text(branch: str, run_id: str, commits: Sequence[str]) -> str:
    """Return the comment on an issue that a run has done."""
    done = ", ".join(commit[:12] for commit in commits)
    what = f"commit{'s' if len(commits) > 1 else ''} {done}" if commits else "no change was needed"
    return f"Branch `{branch}`, {what} - {run_id} completed"


def task_message(ctx: Context, task: TaskState, paths: Sequence[str], base: str) -> str:
    """Return the message of a task's commit, which changes *paths*; its trailers are what `verify` reads.

    *base* is what the run's commits are put on: what RED of a fix of tests alone is measured over.
    """
    spec = ctx.task(task.id)
    is_fix = task.fix or "bug" in tracker.in_tree(ctx.repository, ctx.run.info.start_tree).read(ctx.issue).labels
    kind = commit_type(paths, baseline_of(ctx).layout, spec.evidence, is_fix=is_fix, sources=ctx.toolchain.sources)
    evidence = read_evidence(ctx, task.id)
    lines = [*trailers(ctx), ("Task", task.id)]
    if evidence is not None:
        lines.append(("Red-Evidence", f"sha256:{evidence.red_digest()}"))
        content = ctx.path(f"task-{task.id}.md").read_bytes()
        lines.append(("Task-File", f"sha256:{hashlib.sha256(content).hexdigest()}"))
        if task.spec.red_base == "start" and not (evidence.ledger is not None and evidence.noticing is not None):
            lines.append(("Red-Base", base))
        if evidence.writers is not None:
            lines.append(("Writers", evidence.writers))
    body = "\n".join(f"- {criterion}" for criterion in spec.acceptance_criteria)
    return message_of(first_line(kind, spec.title, _names(spec)), body, lines)


def commit_type(
    paths: Sequence[str], layout: Layout, evidence: Evidence, *, is_fix: bool, sources: tuple[str, ...]
) -> str:
    """Return the type of Conventional Commits that says what a task's commit is.

    Args:
        paths: What it changes.
        layout: Which files are tests.
        evidence: What the task is proven by; `regression` says that no behaviour changes.
        is_fix: Whether the issue is a bug, or the task answers a finding.
        sources: How the names of source files end.
    """
    if all(map(layout.is_test_side, paths)):
        return "test"
    if all(path.endswith(_TEXTS) for path in paths):
        return "docs"
    if is_fix:
        return "fix"
    if evidence is Evidence.REGRESSION:
        return "refactor" if any(path.endswith(sources) for path in paths) else "chore"
    return "feat"


def _scaffold_message(ctx: Context, task: TaskState) -> str:
    """Return the message of the first of two commits: what is new, as stubs (ADR-7 of the founding document)."""
    names = [symbol.name for symbol in ctx.task(task.id).symbols if symbol.new]
    with_ = f" with {stub_of(ctx, ctx.task(task.id)).replace('`', '')} stubs"
    what = ", ".join(names)
    if len(f"feat: scaffold {what}{with_}") > SUBJECT:
        what = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    body = "\n".join(f"- {name}" for name in names) if len(names) > 1 else ""
    return message_of(f"feat: scaffold {what}{with_}", body, [*trailers(ctx), ("Scaffolds", task.id)])


def _names(spec: Task) -> set[str]:
    """Return the names that a task speaks of: its symbols, and each part of one; its files, also without endings."""
    paths = [PurePosixPath(change.path) for change in (*spec.files, *spec.test_files)]
    found = {part for symbol in spec.symbols for part in (symbol.name, *_PARTS.split(symbol.name))}
    return found | {name for path in paths for name in (path.name, path.stem)}


def first_line(kind: str, title: str, names: Collection[str] = ()) -> str:
    """Return the first line of a message: the type that a title begins with, else *kind*, and the title."""
    given, rest = split_type(title)
    return f"{given or kind}: {lower_first(rest, names)}"


def lower_first(title: str, names: Collection[str] = ()) -> str:
    """Return a title that begins with a small letter, as subjects do; a first word that is code keeps its case.

    Args:
        title: What a person or an agent wrote.
        names: What is known to be a name, however plain a word it is.
    """
    words = title.strip()
    first = words.split(maxsplit=1)[0].rstrip(_ENDS) if words else ""
    is_plain = first[1:2].islower() and all(letter.islower() or letter in _JOINS for letter in first[1:])
    return words if not is_plain or first in names else words[:1].lower() + words[1:]


def trailers(ctx: Context) -> list[tuple[str, str]]:
    """Return the trailers that every commit of the run carries."""
    used = {r.backend for r in ctx.run.records.values() if r.kind in _WRITING}
    return [("Issue", ctx.issue), ("Run-Id", ctx.run.info.run_id), *assisted_by(used)]


def assisted_by(backends: Collection[str]) -> list[tuple[str, str]]:
    """Return the trailer that names the agents of a commit, none where it has none."""
    return [("Assisted-by", f"redfirst ({', '.join(sorted(backends))})")] if backends else []


def subject_of(text: str) -> str:
    """Return the first line of a commit message; what is too long is cut behind a word, where there is one."""
    line = visible(on_one_line(text))
    if len(line) <= SUBJECT:
        return line
    room = SUBJECT - len("...")
    end = line.rfind(" ", 0, room + 1)
    cut = line[: end if end > room // 2 else room]
    return cut.rstrip(" ,;:.-") + "..."


def message_of(subject: str, body: str, lines: Sequence[tuple[str, str]]) -> str:
    """Return a whole message: its first line, what else is said, and its trailers."""
    parts = [
        subject_of(subject),
        visible(body.strip(), keep="\n"),
        "\n".join(f"{key}: {value}" for key, value in lines),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
