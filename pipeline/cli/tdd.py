"""`redfirst tdd`: RED and GREEN measured without any agent, by a person or in CI (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipeline.verification.asked import Question
    from pipeline.verification.laboratory import Laboratory
    from pipeline.verification.results import TddDocument

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure RED and GREEN of what you wrote, without any agent; nothing is written, here or in the repository.",
)

Base = Annotated[
    str | None,
    typer.Option("--base", metavar="REF", help="Compare with where this parted from REF (default: main, master)."),
]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--tests", metavar="PATH", help="A file or folder that serves tests; repeatable. Default: told apart."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--ids", metavar="ID", help="Judge this test, function or file; repeatable. Default: new and changed."
    ),
]
AsDocument = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, progress on stderr.")]


@app.command("check-red")
def check_red(
    base: Base = None,
    tests: Paths = None,
    ids: Ids = None,
    new: Annotated[
        list[str] | None,
        typer.Option("--new", metavar="NAME", help="A name or a file that is still to be written; repeatable."),
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Check that your new and changed tests fail over the base's production code, each for a legal reason.

    A missing name is legal where your production code already has it in a new line, or where --new says that it is to
    come: else nothing tells it from a misspelt one. Leaves with 0 for RED, 7 if it is not, 2 if it cannot be measured.

    Where tests are compiled (cargo, go) a missing name hides all other tests of the file. Commit a stub of it, with the
    body todo!() or panic("not implemented"), and say --base HEAD; or put the test into a new file of tests.

    Examples:
      redfirst tdd check-red

      redfirst tdd check-red --base origin/main --ids tests/test_cart.py --new discount
    """
    from pipeline.verification.asked import Question  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.verification.tdd import tdd_red  # noqa: PLC0415  (the same)

    asked = Question("", tuple(tests or ()), tuple(ids or ()), new=tuple(new or ()))
    _answer(tdd_red, asked, base, as_document=as_document)


@app.command("check-green")
def check_green(
    base: Base = None,
    tests: Paths = None,
    ids: Ids = None,
    may_change: Annotated[
        list[str] | None,
        typer.Option("--may-change", metavar="ID", help="A test of the base that may change or go; repeatable."),
    ] = None,
    probes: Annotated[
        bool,
        typer.Option("--probes", help="Also try the tests: over the base's code, and with small faults in the change."),
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Check that your new and changed tests pass, and that every test which passed at the base still does.

    With --probes the tests must fail over the base's code too, as check-red says; small faults are put into the lines
    that you changed, one at a time, and those that no test notices are shown. How many, and in what time: [probes].

    A test of the base that changed is named, with what it no longer notices; where that is anything, only --may-change
    allows it. Leaves with 0 for GREEN, 7 if it is not, 2 if it cannot be measured.

    Examples:
      redfirst tdd check-green

      redfirst tdd check-green --probes --base origin/main

      redfirst tdd check-green --base origin/main --may-change tests/test_old.py --json
    """
    from pipeline.verification.asked import Question  # noqa: PLC0415  (the same)
    from pipeline.verification.probing import tdd_probed  # noqa: PLC0415  (the same)
    from pipeline.verification.tdd import tdd_green  # noqa: PLC0415  (the same)

    asked = Question("", tuple(tests or ()), tuple(ids or ()), may_change=tuple(may_change or ()))
    _answer(tdd_probed if probes else tdd_green, asked, base, as_document=as_document)


def _answer(
    measure: Callable[[Laboratory, Question], Awaitable[TddDocument]],
    asked: Question,
    base: str | None,
    *,
    as_document: bool,
) -> None:
    import os  # noqa: PLC0415  (the same)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.laboratory import opened_laboratory  # noqa: PLC0415  (the same)
    from pipeline.cli.verify_text import tdd_text  # noqa: PLC0415  (the same)
    from pipeline.terminal import block, print_document  # noqa: PLC0415  (the same)
    from pipeline.verification.tdd import judged  # noqa: PLC0415  (the same)

    with opened_laboratory(Path.cwd(), os.environ) as laboratory:
        document = anyio.run(judged, laboratory, measure, asked, base)
    if as_document:
        print_document(document)
    else:
        typer.echo(block(tdd_text(document)))
    raise typer.Exit(document.exit_code)
