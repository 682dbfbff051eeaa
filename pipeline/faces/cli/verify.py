"""`redfirst verify` and `redfirst tdd`: what commits claim, and what you wrote, measured again (contract 1)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from pipeline.app.run_list import find
from pipeline.faces.cli.arguments import AsDocumentBesideProgress
from pipeline.faces.cli.status_line import Beating
from pipeline.faces.cli.text import print_result, say
from pipeline.judge.evidence.red_classes import red_words
from pipeline.progress import counted
from pipeline.repo import Repository
from pipeline.run.runs_of_repository import Roster
from pipeline.testing.verification.results import CommitCheck, Problem, Status, TddDocument, VerifyDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from pipeline.testing.measure.task_evidence import MutationEvidence
    from pipeline.testing.verification.context import VerificationContext
    from pipeline.testing.verification.results import TestLine
    from pipeline.testing.verification.tdd_request import Question

    Measure: TypeAlias = Callable[[VerificationContext, Question], Awaitable[TddDocument]]


_MOST_SHOWN: Final = 20
_ENDS: Final[Mapping[Status, str]] = {
    Status.VERIFIED: "Verified: what these commits claim was measured again, and holds.",
    Status.REFUTED: "NOT verified. The claims above that begin with NO are refuted.",
    Status.NOT_TESTABLE: "Not verified: nothing is lost, but a commit that claims evidence rests on no test: read it.",
    Status.UNCHECKED: "Not checked: it can be told neither way here.",
    Status.NOTHING_LOST: "Nothing is lost. These are commits of recipes, which have no tests of their own to show.",
    Status.NOTHING_CLAIMED: "Not checked: no commit claims evidence.",
}
_OVER: Final[Mapping[str | None, str]] = {
    "parent": "the parent's code",
    "start": "the code of the start of the run",
    "seam": "the seam that the commit brings",
    "stubs": "stubs of what the run introduced",
    "signatures": "the parent's code with the commit's signatures",
    "stand-ins": "the parent's code with stand-ins for new names",
}


def verify(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMIT|A..B|RUN",
            help="A commit, a range, or a run with its commits. Default: the newest run.",
        ),
    ] = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Check again that the tests of a commit fail before it and pass in it.

    The evidence stands in the run's ref or in .workflow. On another machine fetch it first:

      git fetch origin 'refs/redfirst/runs/*:refs/redfirst/runs/*'

    The exit code is 0 when everything is verified and 7 when something is not true. It is 2 when it cannot be checked
    here or rests on no test (NOT_TESTABLE). It is 8 when all commits are of recipes that have no test to show.

    Examples:
      redfirst verify

      redfirst verify HEAD~1

      redfirst verify main..HEAD --json

      redfirst verify run-GAL-39
    """
    import anyio

    from pipeline.app.ports import opened_context
    from pipeline.testing.verification.recheck import verified

    if what is None:
        what = find(Roster(Repository.find(Path.cwd())), None).name
        say(f"{what}: the newest run")
    beating = Beating("verify")
    with opened_context(Path.cwd(), os.environ, beating) as ctx:
        document = anyio.run(beating.during, verified, ctx, what)
    print_result(document, verify_text, as_document=as_document)
    raise typer.Exit(document.exit_code)


def verify_text(document: VerifyDocument) -> str:
    """Return the document in lines."""
    lines = [line for commit in document.commits for line in _commit(commit)]
    return "\n".join([*lines, _ENDS[document.status]])


def _commit(commit: CommitCheck) -> list[str]:
    lines = [f"{commit.commit[:12]} {commit.subject}: {commit.status.value.replace('_', ' ')}"]
    if commit.why:
        lines.append(f"    {commit.why}")
    if commit.evidence is not None:
        lines.append(f"    evidence of task {commit.task}: {commit.evidence}")
    if commit.tests:
        lines.append(f"    {_measured(commit)}:")
    cases: dict[tuple[str, str], list[str]] = {}
    for test in commit.tests:
        cases.setdefault((test.id.partition("[")[0], _in_words(test)), []).append(test.id)
    for (function, ended), ids in cases.items():
        lines.append(f"      {ids[0] if len(ids) == 1 else f'{function} ({len(ids)} cases)'}: {ended}")
    return [*lines, *problems_text(commit.problems), *notes_text(commit.notes)]


def _in_words(test: TestLine) -> str:
    """Return how a test ended before the change and after it."""
    before, now = red_words(test.recorded), f"now {'passes' if test.after_holds else 'does NOT pass'}"
    if not test.before_holds:
        return f"{red_words(test.measured or 'no such test')}, not {before}; {now}"
    return f"{before}; {'passes before and now' if test.recorded == 'GUARD' and test.after_holds else now}"


def _measured(commit: CommitCheck) -> str:
    """Return the head of the list of tests; that they were RED and are GREEN is only said where it is true."""
    over, beside = _OVER[commit.red_over], f"{counted(commit.kept, 'test')} besides them kept"
    if commit.status is not Status.VERIFIED:
        return f"measured over {over}, then in the commit; {beside}"
    guards = all(test.recorded == "GUARD" for test in commit.tests)
    return f"{f'guards over {over} and' if guards else f'RED over {over}, GREEN'} in the commit, {beside}"


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure RED and GREEN of what you wrote, without any agent.",
)

Base = Annotated[
    str | None,
    typer.Option("--base", metavar="REF", help="Compare with where this parted from REF (default: main, master)."),
]
Paths = Annotated[
    list[str] | None,
    typer.Option("--tests", metavar="PATH", help="A file or folder of tests. Repeatable. Default: told apart."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--ids",
        metavar="ID",
        help="Judge this test (any end of its id), or file. Repeatable. Default: new and changed.",
    ),
]


@app.command("check-red")
def check_red(
    base: Base = None,
    tests: Paths = None,
    ids: Ids = None,
    new: Annotated[
        list[str] | None,
        typer.Option("--new", metavar="NAME", help="A name (`Cart.total`) or a file still to be written. Repeatable."),
    ] = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Check that your new and changed tests fail over the code of the base, each for a legal reason.

    A missing name is a legal reason where a new line of your code has it, or where --new says that it is to come. The
    exit code is 0 for RED, 7 if it is not, 2 if it cannot be measured.

    Where tests are compiled (cargo, go) a missing name hides all other tests of the file. Commit a stub of it, with the
    body todo!() or panic("not implemented"), and say --base HEAD. Or put the test into a new file of tests.

    Examples:
      redfirst tdd check-red

      redfirst tdd check-red --ids tests/test_cart.py --new discount
    """
    from pipeline.testing.verification.tdd import tdd_red
    from pipeline.testing.verification.tdd_request import Question

    asked = Question("", tuple(tests or ()), tuple(ids or ()), new=tuple(new or ()))
    _measure(tdd_red, asked, base, as_document=as_document)


@app.command("check-green")
def check_green(
    base: Base = None,
    tests: Paths = None,
    ids: Ids = None,
    may_change: Annotated[
        list[str] | None,
        typer.Option("--may-change", metavar="ID", help="A test of the base that may change or go. Repeatable."),
    ] = None,
    probes: Annotated[
        bool,
        typer.Option("--probes", help="Also try the tests: over the base's code, and with small faults in the change."),
    ] = False,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Check that your new and changed tests pass, and that no test that passed at the base is lost.

    With --probes the tests must fail over the code of the base, too, as check-red says. Then small faults are put into
    the lines that you changed, one at a time. You see those that no test notices. [probes] says how many are tried.

    The tests of the base run over your code as they were, too. One that fails so was changed to fit, and only
    --may-change allows it. The exit code is 0 for GREEN, 7 if it is not, 2 if it cannot be measured.

    Examples:
      redfirst tdd check-green

      redfirst tdd check-green --probes --base origin/main

      redfirst tdd check-green --may-change tests/test_old.py --json
    """
    from pipeline.testing.verification.tdd import tdd_green, tdd_probed
    from pipeline.testing.verification.tdd_request import Question

    asked = Question("", tuple(tests or ()), tuple(ids or ()), may_change=tuple(may_change or ()))
    _measure(tdd_probed if probes else tdd_green, asked, base, as_document=as_document)


def _measure(measure: Measure, asked: Question, base: str | None, *, as_document: bool) -> None:
    import anyio

    from pipeline.app.ports import opened_context
    from pipeline.testing.verification.tdd import judged

    beating = Beating("tdd")
    with opened_context(Path.cwd(), os.environ, beating) as ctx:
        document = anyio.run(beating.during, judged, ctx, measure, asked, base)
    print_result(document, tdd_text, as_document=as_document)
    raise typer.Exit(document.exit_code)


def tdd_text(document: TddDocument) -> str:
    """Return the document in lines."""
    tests = (
        f"    {'ok ' if test.holds else 'NO '} {test.id}: {test.measured}" + (f": {test.why}" if test.why else "")
        for test in document.tests
    )
    faults = _faults(document.mutation) if document.mutation is not None else []
    lines = [f"Against {document.base[:12]}:", *tests, *problems_text(document.problems), *notes_text(document.notes)]
    return "\n".join([*lines, *faults, f"{'' if document.ok else 'NOT '}{_answer(document)}."])


def _answer(document: TddDocument) -> str:
    if document.check == "red":
        return "RED for legal reasons"
    unnoticed = len(document.mutation.survivors) if document.mutation is not None else 0
    faults = f"; no test notices {unnoticed} of {document.mutation.tried} small faults" if document.mutation else ""
    return f"GREEN, {counted(document.kept, 'test')} of the base kept{faults if unnoticed else ''}"


def _faults(mutation: MutationEvidence) -> list[str]:
    left = f", {mutation.not_tried} not tried" if mutation.not_tried else ""
    left += f", {mutation.not_chosen} more possible" if mutation.not_chosen else ""
    unfit = f", {mutation.unfit} that do not compile" if mutation.unfit else ""
    head = f"    small faults in the change: {mutation.killed} of {mutation.tried} noticed{unfit}{left}"
    if not mutation.tried and not mutation.not_tried:
        return []
    told = (f"{each.path}:{each.line}: {each.what}\n{' ' * 13}{each.source}" for each in mutation.survivors)
    return [head, *(f"      no test notices {one}" for one in told)]


def problems_text(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield a line for each problem; of many that say the same, the first ones and how many more there are."""
    by_why: dict[str, list[Problem]] = {}
    for problem in problems:
        by_why.setdefault(problem.why, []).append(problem)
    for why, same in by_why.items():
        yield from (f"    NO  {problem}" for problem in same[:_MOST_SHOWN])
        if len(same) > _MOST_SHOWN:
            yield f"    NO  and {len(same) - _MOST_SHOWN} more: {why}"


def notes_text(notes: Sequence[str]) -> list[str]:
    """Return a line for each note, up to a number."""
    more = [f"    note: and {len(notes) - _MOST_SHOWN} more (--json has all)"] if len(notes) > _MOST_SHOWN else []
    return [*(f"    note: {note}" for note in notes[:_MOST_SHOWN]), *more]
