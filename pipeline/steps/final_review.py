"""FINAL_REVIEW (phase 8): `[checks]` run, then @check and @simplify read the whole result and what failed there.

First the steps of a recipe's own are done that stand before it (`own_steps`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.config.model import Proofs
from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import is_tracker, protected, used_by_git
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.artifacts import findings_md
from pipeline.judge.reports.fields import Verdict
from pipeline.judge.reports.markdown import bullets
from pipeline.matrix.routing.state import Event
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.repo import PLAIN, Entry, TreeChange
from pipeline.repo.settings import paths_git_uses
from pipeline.run.files import to_json
from pipeline.steps import own_steps
from pipeline.steps.asking.artifacts import evidence_md, functions_of, suspicions_md, work_notes_md
from pipeline.steps.asking.criteria import to_answer, unanswered, with_unmet
from pipeline.steps.asking.proofs import proved, proved_again, task_of, work_of
from pipeline.steps.asking.reviews import Review, ask_reviewers, event_of, last_review, reports_of, review_artifacts
from pipeline.steps.evidence.green import probes_name
from pipeline.steps.evidence_records import baseline_of, known_tests, quarantine_of_run, read_evidence
from pipeline.steps.judgements import already_name
from pipeline.steps.publication.commits import request_name
from pipeline.steps.publication.follow_ups import not_testable_manifest
from pipeline.testing.languages.readers import edited
from pipeline.testing.measure import project_checks
from pipeline.testing.measure.measuring import changed_paths
from pipeline.vocabulary import Signal, Step

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.quarantine import Standing
    from pipeline.judge.reports.proofs import Edit
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the review's signal: FIX and PLAN carry the findings that must be fixed as evidence.

    Before it each step of the recipe's own has a visit, and its own signals.
    """
    if (own := ctx.state.own_step) is not None:
        return await own_steps.run(ctx, own)
    review, work = Review(ctx), work_of(ctx)
    head, start = ctx.state.head, ctx.state.start
    measured = await project_checks.new_failures(ctx, start, head)
    review.again = await proved_again(ctx, review.ledger, work)
    before = review.previous.unmet if review.previous is not None else ()
    wanted = to_answer(*_done(ctx)) if review.is_first else before
    accept = partial(unanswered, wanted)
    answers = await ask_reviewers(review, "review-result", head, _artifacts(ctx, review), accept, wanted)
    if isinstance(answers, Event):
        return answers
    check, simplify = reports_of(answers)
    if measured:
        verdict = check.verdict if check.verdict is not Verdict.ACCEPTABLE else Verdict.NEEDS_WORK
        check = check.model_copy(update={"verdict": verdict, "findings": (*measured, *check.findings)})
    check, unmet = with_unmet(await proved(ctx, check, work), wanted)
    reviewed = signal_of_report.final_review(
        review.ledger,
        review.number,
        check,
        simplify,
        applies=lambda edit: apply_edit(ctx, head, edit) is not None,
        is_task=lambda finding: task_of(ctx, finding, "fix-1") is not None,
        again=review.again,
        needs_proof=ctx.config.final_review.proofs == Proofs.REQUIRED,
    )
    names = [*review.record(reviewed, check, simplify, head, unmet)]
    tree: str | None = None
    if reviewed.signal in {Signal.FIX, Signal.PROVED, Signal.PLAN, Signal.COSMETIC}:
        must = [finding for finding in reviewed.ledger.open if finding.id in reviewed.outcome.must_fix]
        if reviewed.signal is Signal.FIX and not ctx.state.one_writer:  # what is proved is a task: nobody drafts it
            must = [finding for finding in must if task_of(ctx, finding, "fix-1") is None]
        names = [ctx.write(f"reviews/final-{review.ordinal}-must-fix.md", findings_md(must))]
        if reviewed.signal is Signal.COSMETIC:
            tree = head
            for finding in must:
                tree = apply_edit(ctx, tree, finding.edit) or tree if finding.edit is not None else tree
    return event_of(reviewed, names, tree)


def _done(ctx: Context) -> tuple[list[Task], dict[str, tuple[str, ...]]]:
    """Return the tasks that were done, and of each the changed functions of which no test notices anything."""
    tasks = [ctx.task(task.id) for task in ctx.state.done_tasks]
    found = {task.id: read_evidence(ctx, task.id) for task in tasks}
    probes = {name: evidence.probes for name, evidence in found.items() if evidence is not None and evidence.probes}
    return tasks, {name: each.unnoticed for name, each in probes.items() if each.unnoticed}


def _artifacts(ctx: Context, review: Review) -> dict[str, list[Path]]:
    """Return what the final review is given; from the second review on, only what changed since the last (matrix 3)."""
    artifacts = review_artifacts(ctx, review)
    done = [t for t in ctx.state.tasks.values() if t.status in SETTLED]
    own = dict.fromkeys(one.step for one in ctx.state.written)
    asked = (*(f"task-{task.id}.md" for task in done), *map(request_name, own))
    artifacts["tasks"] = list(map(ctx.path, asked))
    found = [evidence for task in done if (evidence := read_evidence(ctx, task.id)) is not None]
    functions = functions_of(known_tests(ctx))
    words = {f"evidence/task-{one.task}.md": evidence_md(one, ctx.task(one.task), functions) for one in found}
    shown = [ctx.path(ctx.write(name, text)) for name, text in words.items()]
    already = [ctx.path(already_name(task.id)) for task in done]
    artifacts["evidence"] = [*shown, *(path for path in already if path.exists())]
    number, patch = review.ordinal, ctx.repository.patch(ctx.state.start, ctx.state.head)
    artifacts["diff"] = [ctx.path(ctx.write(f"reviews/final-{number}.patch", patch))]
    previous = last_review(ctx, Step.FINAL_REVIEW)
    if previous is not None and review.number > 1:
        artifacts |= review.changed(review.changes_name, ctx.repository.patch(previous.tree, ctx.state.head))
    artifacts["probes"] = [path for task in done if (path := ctx.path(probes_name(task.id))).exists()]
    artifacts |= ctx.artifact("quarantine", f"reviews/quarantine-{number}.md", quarantine_md(quarantine_of_run(ctx)))
    artifacts |= ctx.artifact("suspicions", f"reviews/suspicions-{number}.md", suspicions_md(ctx))
    artifacts |= ctx.artifact("work_notes", f"reviews/work-notes-{number}.md", work_notes_md(ctx))
    if own:
        artifacts.setdefault("work_notes", []).extend(map(ctx.path, map(own_steps.answer_name, own)))
    manifest = not_testable_manifest(ctx)
    if manifest:
        judged = [ctx.path(str(each["judged_by"])) for each in manifest if each["judged_by"] is not None]
        artifacts |= ctx.artifact("not_testable", f"reviews/not-testable-{number}.json", to_json(manifest))
        artifacts["not_testable"] += judged
    return artifacts


def apply_edit(ctx: Context, tree: str, edit: Edit) -> str | None:
    """Return *tree* with an exact edit applied, None when that is not ours to do: then the finding becomes a fix task.

    Whoever asks for it may write nothing, so it must be a plain Python file of production that this run has changed,
    and the edit must be one that no program notices (`policy.cosmetic`).
    """
    found = [entry for entry in ctx.repository.entries(tree, edit.path) if entry.path == edit.path]
    if not found or found[0].mode not in PLAIN or not _is_open_to_edits(ctx, edit.path):
        return None
    content = ctx.repository.blob(found[0].oid)
    result = edited(content, edit.old, edit.new) if content is not None else None
    if result is None:
        return None
    # stored as it is: what was read is what git stores, filters have been applied to it
    entry = Entry(edit.path, found[0].mode, ctx.repository.write_blob(result))
    return ctx.repository.build_tree(tree, [TreeChange(edit.path, entry)])


def _is_open_to_edits(ctx: Context, path: str) -> bool:
    if not path.endswith(".py") or is_control(path) or is_tracker(path, ctx.config.tracker.folder):
        return False
    if baseline_of(ctx).layout.is_test_side(path):
        return False
    if protected(path) or used_by_git(path, paths_git_uses(ctx.repository)):
        return False
    changed = changed_paths(ctx, ctx.state.start, ctx.state.head)
    return path in changed and not ctx.repository.foreign_filters(ctx.checkout.tree, [path])


def quarantine_md(found: Standing) -> str:
    """Return the document for the final review, empty where nothing is quarantined."""
    lines = found.lines()
    head = "# Quarantined tests\n\nThese tests are run, and do not count until their day is over."
    return f"{head}\n\n{bullets(lines)}\n" if lines else ""
