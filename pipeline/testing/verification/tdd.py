"""Measures RED and GREEN of a worktree against a base without any agent: for a person, or for CI.

There is no task that says which behaviour is new. What is missing over the base counts as new when a line of the
worktree's production code that the base does not have speaks of it, or when it is named.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from pipeline.errors import UserError
from pipeline.judge.evidence.compare import passed, passes_at_once
from pipeline.judge.evidence.observation import Ended, Layout, Observation, TestRecord
from pipeline.judge.evidence.red import NO_NEW_TEST, RedFacts, derive_new_ids, judge_red
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.outcomes import Reason
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.table import language_of
from pipeline.testing.measure.baseline import odd_name
from pipeline.testing.measure.composed_trees import shares_file
from pipeline.testing.measure.measuring import UnmeasurableError, changed_paths, measure
from pipeline.testing.measure.mutation import Judges
from pipeline.testing.measure.old_tests import Sides
from pipeline.testing.measure.probes import faults, repeat
from pipeline.testing.measure.red import texts
from pipeline.testing.measure.revert import Wanted
from pipeline.testing.measure.suspicions import means_of_forgery
from pipeline.testing.verification import red_green, tdd_request
from pipeline.testing.verification.results import JudgedTest, Problem, TddDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from pipeline.testing.verification.context import VerificationContext
    from pipeline.testing.verification.tdd_request import Question


_DOUBLED: Final = re.compile(r"\b(?P<word>\w+): (?P=word): ")
_NAME: Final = re.compile(r"[^\W\d][\w.:]*")


def to_come(verdict: RedFacts, seen: Observation) -> tuple[str, ...]:
    """Return a note for each name that a refused test did not find: it may be misspelt, or still to be written."""
    refused = {refusal.id for refusal in verdict.illegal if refusal.cls in {RedClass.TEST_BROKEN, RedClass.ENV_BROKEN}}
    faults = [
        r.fault for entry in sorted(refused) if (r := seen.records.get(entry)) is not None and r.fault is not None
    ]
    faults += [error.fault for error in seen.collection_errors if error.path in refused]
    lacking = [f.missing.name for f in faults if f.missing is not None and not f.raised.is_a("NameError")]
    names = filter(_NAME.fullmatch, dict.fromkeys(lacking))
    return tuple(f"if {name} is still to be written: --new {name}" for name in names)


def in_words(cls: RedClass | None, why: str, path: str) -> str:
    """Return why a test is refused, in words that are true for its language.

    Args:
        cls: What it showed.
        why: What the table of classes says, written for Python.
        path: The file of the test.
    """
    language = language_of(path)
    if cls is not RedClass.IMPORT_HIDES_TESTS or language is None or not language.stub_first:
        return _DOUBLED.sub(r"\g<word>: ", why)
    name = why.removeprefix("imports ").partition(",")[0]
    return (
        f"does not compile: {name} does not exist yet, and so hides the file's other tests. Commit a stub of it (with "
        f"the body {language.toolchain.stub}) and compare with that: --base HEAD. Or put the new test into a new file "
        "of tests"
    )


_WORD: Final = re.compile(r"[^\W\d]\w*")
_BY_HAND: Final = "tdd"


_BASES: Final = ("main", "master")


async def judged(
    ctx: VerificationContext,
    measured: Callable[[VerificationContext, Question], Awaitable[TddDocument]],
    question: Question,
    base: str | None,
) -> TddDocument:
    """Return what *measured* says, compared with where the worktree's commit parted from *base*.

    Args:
        ctx: Where to measure.
        measured: `tdd_red` or `tdd_green`.
        question: What is asked, but for the base.
        base: A revision; None for the configured base, else main, else master.

    Raises:
        UserError: there is no such base or path, or the tests cannot be run here.
    """
    asked = tdd_request.located(ctx, replace(question, base=_parted(ctx, base)))
    try:
        await ctx.prepare(ctx.repository.worktree_tree())
        return await measured(ctx, asked)
    except UnmeasurableError as error:
        raise UserError(f"The tests cannot be measured here: {error}", Reason.ENVIRONMENT) from error


def _parted(ctx: VerificationContext, base: str | None) -> str:
    repository = ctx.repository
    wanted = base or ctx.config.base
    names = (wanted,) if wanted else _BASES
    tip = next(filter(None, (repository.resolve(f"{name}^{{commit}}") for name in names)), None)
    if tip is None:
        raise UserError(f"There is no {' and no '.join(names)} here. Name the base: --base REF.", Reason.USAGE)
    parted = repository.merge_base("HEAD", tip)
    if parted is None:
        raise UserError(
            f"HEAD and {' '.join(names)} have no commit in common. Name the base: --base REF.", Reason.USAGE
        )
    return parted


async def tdd_red(ctx: VerificationContext, question: Question) -> TddDocument:
    """Return whether the tests fail over the base's production code, each for a legal reason.

    Raises:
        UnmeasurableError: the tests cannot be run here.
    """
    old, new = ctx.repository.tree_of(question.base), ctx.repository.worktree_tree()
    if old == new and not question.ids:  # a worktree without a change has no answer that takes a measurement
        return _document(question, "red", (), [Problem(why=NO_NEW_TEST)], notes=ctx.notes)
    # the base is what its owner started from
    before = await measure(ctx, old, Selection.nothing(), warm=True, what="collecting the tests of the base")
    paths = tdd_request.test_paths(ctx, question, old, new, before.layout)
    _require_names(paths, before.layout)
    composed = red_green.composed_for(ctx, (new, old), paths, before.layout)
    first = await measure(
        ctx, composed, Selection(files=frozenset(paths)), what="tests over the code of the base, must fail"
    )
    question = tdd_request.spelled_out(question, first)
    ids = {r.id for r in first.records.values() if tdd_request.is_meant(r, question.ids)} or {
        *derive_new_ids(before, first)
    }
    problems = tdd_request.unknown(ctx, question, first)
    if question.ids:
        before, first = tdd_request.without(before, ids), tdd_request.only(ctx, first, ids, question.ids)
    changed = changed_paths(ctx, old, new)
    production = [path for path in changed if path not in paths or shares_file(path, before.layout)]
    red = await red_green.measure_red(
        ctx, (new, old), paths, ids, _wanted(ctx, question, old, new, production), before.layout
    )
    seen = {entry: red.observation.records[entry] for entry in ids if entry in red.observation.records}
    verdict = judge_red(
        before,
        first.model_copy(update={"records": {**first.records, **seen}}),
        first if ids and all(first.records[entry].ran for entry in ids) else None,
        red.context,
        task=_BY_HAND,
        tree=composed,
        tests_to_change=frozenset(before.records),
    )
    hints = to_come(verdict, first.model_copy(update={"records": {**first.records, **seen}}))
    if verdict.env_broken is not None:
        raise UnmeasurableError("; ".join((verdict.env_broken, *hints)))
    problems += [Problem(why=refusal.message) for refusal in verdict.illegal if not refusal.id]
    problems += [
        Problem(id=entry, why=f"two runs disagree on it{late(entry, first, seen)}") for entry in verdict.unstable
    ]
    said = "controls how tests run, and was taken as the base has it; to take the worktree's: --tests"
    controls = [f"{path} {said} {path}" for path in production if ctx.toolchain.is_control_path(path)]
    notes = (*hints, *controls, *means_of_forgery(ctx, old, new, before.layout), *ctx.notes)
    return _document(question, "red", _judged(verdict, first), problems, notes=notes)


def late(entry: str, first: Observation, seen: Mapping[str, TestRecord]) -> str:
    """Return in words that one of the two runs did not end in time; nothing where both did."""
    late = [r for r in (first.records.get(entry), seen.get(entry)) if r is not None and r.outcome is Ended.TIMED_OUT]
    return ": one did not end in time, see test_timeout_s in [toolchains]" if len(late) == 1 else ""


async def tdd_green(ctx: VerificationContext, question: Question) -> TddDocument:
    """Return whether the tests pass in the worktree, and everything that passed at the base still does.

    Raises:
        UnmeasurableError: the tests cannot be run here.
    """
    old, new = ctx.repository.tree_of(question.base), ctx.repository.worktree_tree()
    runs = await red_green.measure_both(ctx, {"the base": old, "the worktree": new}, warm=True)
    before, after = runs.before, runs.after
    question = tdd_request.spelled_out(question, before, after)
    _require_names(changed_paths(ctx, old, new), after.layout)
    fresh = [after.records[entry] for entry in derive_new_ids(before, after)]
    if question.ids:
        judged = [record for record in after.records.values() if tdd_request.is_meant(record, question.ids)]
    elif question.paths:
        paths = tdd_request.test_paths(ctx, question, old, new, after.layout)
        judged = [record for record in fresh if record.path in paths]
    else:
        judged = fresh
    may_change = frozenset((*question.may_change, *(record.id for record in judged)))
    leave = dict.fromkeys(question.may_change, "--may-change")
    sides = Sides(*runs.trees, before.layout)
    green = await red_green.check_green(ctx, None, runs, may_change, sides=sides, leave=leave)
    meant = [f"; if it is meant to: --may-change {one.id}" for one in green.hidden]
    hidden = [Problem(id=one.id, why=one.why + more) for one, more in zip(green.hidden, meant, strict=True)]
    problems = [*green.problems, *hidden]
    problems += tdd_request.unknown(ctx, question, after)
    problems += [
        Problem(id=error.path, why=f"cannot be collected: {error.fault.raised.kind}: {error.fault.raised.message}")
        for error in after.collection_errors
        if error.path not in before.unread
    ]
    tests = tuple(
        JudgedTest(
            id=record.id,
            measured=record.outcome.value if record.outcome is not None else "not run",
            holds=passes_at_once(record),
            why="" if passes_at_once(record) else red_green.said(record),
        )
        for record in judged
    )
    told = tdd_request.unknown_leave(ctx, question, before, after)
    nothing = () if judged else ("no test was added or changed",)
    notes = (*told, *green.notes, *nothing, *means_of_forgery(ctx, old, new, after.layout), *ctx.notes)
    return _document(question, "green", tests, problems, notes=notes, kept=green.kept)


def _require_names(paths: Iterable[str], layout: Layout) -> None:
    """Return if a test runner can say which of these files of tests it speaks of.

    Raises:
        UnmeasurableError: the name of one is not UTF-8.
    """
    if (odd := odd_name(paths, layout)) is not None:
        raise UnmeasurableError(odd)


def _wanted(ctx: VerificationContext, question: Question, old: str, new: str, production: Sequence[str]) -> Wanted:
    """Return what counts as not there yet over the base."""
    before, after = texts(ctx, old, production), texts(ctx, new, production)
    names: set[str] = set()
    for path, text in after.items():
        known = set(before.get(path, "").splitlines())
        names.update(word for line in text.splitlines() if line not in known for word in _WORD.findall(line))
    named = [name for name in question.new if "/" not in name and not name.endswith(ctx.toolchain.sources)]
    symbols = tuple(Symbol("", name) for name in (*sorted(names), *named))
    return Wanted(symbols=symbols, files=frozenset((*production, *(set(question.new) - set(named)))))


def _judged(verdict: RedFacts, seen: Observation) -> tuple[JudgedTest, ...]:
    refused = {refusal.id: refusal for refusal in verdict.illegal}
    found: list[JudgedTest] = []
    for entry in verdict.new_ids:
        if entry in refused:
            refusal = refused[entry]
            path = seen.records[entry].path if entry in seen.records else entry
            why = in_words(refusal.cls, refusal.message.removeprefix(f"{entry} "), path)
            found.append(JudgedTest(id=entry, measured=str(refusal.cls), holds=False, why=why))
        elif entry in verdict.ledger.red:
            red = verdict.ledger.red[entry]
            found.append(JudgedTest(id=entry, measured=red.cls.value, holds=True, why=red.message))
        else:
            why = "passes over the base; another case of it fails"
            found.append(JudgedTest(id=entry, measured="passed", holds=True, why=why))
    return tuple(found)


def _document(
    question: Question,
    check: Literal["red", "green"],
    tests: tuple[JudgedTest, ...],
    problems: list[Problem],
    *,
    notes: tuple[str, ...],
    kept: int = 0,
) -> TddDocument:
    ok = not problems and all(test.holds for test in tests)
    return TddDocument(
        ok=ok,
        exit_code=0 if ok else 7,
        check=check,
        base=question.base,
        tests=tests,
        kept=kept,
        problems=tuple(problems),
        notes=notes,
    )


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
    seen = await red_green.measure_whole(ctx, new, "the worktree")
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
