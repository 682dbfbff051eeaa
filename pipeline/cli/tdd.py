"""`redfirst tdd`: RED and GREEN measured without any agent, by a person or in CI (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import AsDocumentBesideProgress
from pipeline.cli.text import count_of_tests, notes_text, print_text, problems_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipeline.measure.task_evidence import MutationEvidence, Survivor
    from pipeline.verification.context import VerificationContext
    from pipeline.verification.results import TddDocument
    from pipeline.verification.tdd_request import Question

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
    typer.Option(
        "--tests", metavar="PATH", help="A file or folder that serves tests. Repeatable. Default: told apart."
    ),
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
    from pipeline.verification.tdd import tdd_red  # noqa: PLC0415  (the same)
    from pipeline.verification.tdd_request import Question  # noqa: PLC0415  (heavy; not on the path of --help)

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
    from pipeline.verification.tdd import tdd_green, tdd_probed  # noqa: PLC0415  (help needs none of it)
    from pipeline.verification.tdd_request import Question  # noqa: PLC0415  (the same)

    asked = Question("", tuple(tests or ()), tuple(ids or ()), may_change=tuple(may_change or ()))
    _measure(tdd_probed if probes else tdd_green, asked, base, as_document=as_document)


def _measure(
    measure: Callable[[VerificationContext, Question], Awaitable[TddDocument]],
    asked: Question,
    base: str | None,
    *,
    as_document: bool,
) -> None:
    import os  # noqa: PLC0415  (the same)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.status_line import Beating  # noqa: PLC0415  (the same)
    from pipeline.service.verification_ports import opened_context  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document, visible_lines  # noqa: PLC0415  (the same)
    from pipeline.verification.tdd import judged  # noqa: PLC0415  (the same)

    beating = Beating("tdd")
    with opened_context(Path.cwd(), os.environ, beating) as ctx:
        document = anyio.run(beating.during, judged, ctx, measure, asked, base)
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(tdd_text(document)))
    raise typer.Exit(document.exit_code)


def tdd_text(document: TddDocument) -> str:
    """Return the document in lines."""
    lines = [f"Against {document.base[:12]}:"]
    for test in document.tests:
        mark = "ok " if test.holds else "NO "
        lines.append(f"    {mark} {test.id}: {test.measured}" + (f": {test.why}" if test.why else ""))
    lines += [*problems_text(document.problems), *notes_text(document.notes)]
    lines += _faults(document.mutation) if document.mutation is not None else []
    return "\n".join([*lines, f"{'' if document.ok else 'NOT '}{_answer(document)}."])


def _answer(document: TddDocument) -> str:
    if document.check == "red":
        return "RED for legal reasons"
    unnoticed = len(document.mutation.survivors) if document.mutation is not None else 0
    faults = f"; no test notices {unnoticed} of {document.mutation.tried} small faults" if document.mutation else ""
    return f"GREEN, {count_of_tests(document.kept)} of the base kept{faults if unnoticed else ''}"


def _faults(mutation: MutationEvidence) -> list[str]:
    left = f", {mutation.not_tried} not tried" if mutation.not_tried else ""
    left += f", {mutation.not_chosen} more possible" if mutation.not_chosen else ""
    unfit = f", {mutation.unfit} that do not compile" if mutation.unfit else ""
    head = f"    small faults in the change: {mutation.killed} of {mutation.tried} noticed{unfit}{left}"
    if not mutation.tried and not mutation.not_tried:
        return []
    told = [line for each in mutation.survivors for line in (_where(each), f"             {each.source}")]
    return [head, *told]


def _where(survivor: Survivor) -> str:
    return f"      no test notices {survivor.path}:{survivor.line}: {survivor.what}"
