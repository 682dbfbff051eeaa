"""Runs `redfirst tdd check-green --probes`: GREEN, the tests over the base's code, small faults in the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import passed
from pipeline.measure.probes.all_probes import faults
from pipeline.measure.probes.mutation import Judges
from pipeline.measure.probes.repeat import repeat
from pipeline.reports.untrusted_text import one_line
from pipeline.verification.red import measure_whole
from pipeline.verification.results import Problem
from pipeline.verification.tdd import tdd_green, tdd_red

if TYPE_CHECKING:
    from pipeline.verification.context import VerificationContext
    from pipeline.verification.results import TddDocument
    from pipeline.verification.tdd_request import Question


async def tdd_probed(ctx: VerificationContext, question: Question) -> TddDocument:
    """Return what `tdd_green` says and, where that is GREEN, what comes of the probes; `[probes]` holds here too.

    Of the probes only one can refuse: tests that pass over the base's production code as well. Faults that no test
    notices, and tests that do not always pass, are told.

    Raises:
        UnmeasurableError: the tests cannot be run here.
    """
    green = await tdd_green(ctx, question)
    if not green.ok:
        return green.model_copy(update={"notes": (*green.notes, "not probed: that is for tests that are GREEN")})
    wanted = ctx.config.probes
    old, new = ctx.repository.tree_of(question.base), ctx.repository.worktree_tree()
    seen = await measure_whole(ctx, new, "the worktree")
    judged = [test.id for test in green.tests]
    notes: list[str] = []
    if wanted.repeat > 1 and judged:
        again, _ = await repeat(ctx, new, judged, wanted.repeat, first=seen)
        notes += [f"does not always pass: {entry}: {', '.join(ended)}" for entry, ended in again.unstable.items()]
    problems = await _reverted(ctx, question) if wanted.revert and judged else []
    passing = frozenset(entry for entry, record in seen.records.items() if passed(record))
    judges = Judges(frozenset(judged), passing) if judged else Judges(passing)
    mutation = await faults(ctx, wanted, old, new, judges, seen.layout) if wanted.mutants else None
    if mutation is not None and mutation.trouble:
        notes.append(f"no small faults were tried: {one_line(mutation.trouble)}")
    return green.model_copy(
        update={
            "ok": not problems,
            "exit_code": 7 if problems else 0,
            "problems": tuple(problems),
            "notes": (*green.notes, *notes),
            "mutation": mutation,
        }
    )


async def _reverted(ctx: VerificationContext, question: Question) -> list[Problem]:
    """Return what keeps the tests from being RED over the base: what `check-red` would say."""
    red = await tdd_red(ctx, question)
    told = [Problem(id=test.id, why=test.why or test.measured) for test in red.tests if not test.holds]
    return [
        Problem(id=each.id, why=f"not RED over the base: {each.why}" if each.why else "not RED over the base")
        for each in (*told, *red.problems)
    ]
