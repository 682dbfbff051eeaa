"""`redfirst verify`: is what the trailers of commits claim true, measured again, on any machine (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocumentBesideProgress
from pipeline.cli.text import count_of_tests, notes_text, print_text, problems_text, say
from pipeline.verification.results import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.verification.results import CommitCheck, VerifyDocument


_ENDS: Final[Mapping[Status, str]] = {
    Status.VERIFIED: "Verified: what these commits claim was measured again, and holds.",
    Status.REFUTED: "NOT verified. The claims above that begin with NO are refuted.",
    Status.NOT_TESTABLE: "Not verified: nothing is lost, but a commit that claims evidence rests on no test.",
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
    import os  # noqa: PLC0415  (heavy imports are not on the path of --help)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.status_line import Beating  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import find  # noqa: PLC0415  (the same)
    from pipeline.service.verification_ports import opened_context  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document, visible_lines  # noqa: PLC0415  (the same)
    from pipeline.verification.recheck import verified  # noqa: PLC0415  (the same)

    if what is None:
        what = find(Roster(Repository.find(Path.cwd())), None).name
        say(f"{what}: the newest run")
    beating = Beating("verify")
    with opened_context(Path.cwd(), os.environ, beating) as ctx:
        document = anyio.run(beating.during, verified, ctx, what)
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(verify_text(document)))
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
    for test in commit.tests:
        before = test.recorded if test.before_holds else f"{test.measured or 'no such test'}, not {test.recorded}"
        after = "passes" if test.after_holds else "does NOT pass"
        lines.append(f"      {test.id}: {before}; now {after}")
    return [*lines, *problems_text(commit.problems), *notes_text(commit.notes)]


def _measured(commit: CommitCheck) -> str:
    """Return the head of the list of tests; that they were RED and are GREEN is only said where it is true."""
    over = _OVER[commit.red_over]
    if commit.status is Status.VERIFIED:
        return f"RED over {over}, GREEN in the commit, {count_of_tests(commit.kept)} besides them kept"
    return f"measured over {over}, then in the commit; {count_of_tests(commit.kept)} besides them kept"
