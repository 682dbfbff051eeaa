"""`redfirst` without words: where you stand, and the command that comes next (contract 1)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli.runs import age_words, where_words
from pipeline.cli.text import print_text
from pipeline.git import NoRepositoryError, Repository
from pipeline.outcomes import Reason
from pipeline.policy.characters import as_utf8, visible
from pipeline.progress import counted
from pipeline.service.standing import StandingDocument, StandingLine, standing
from pipeline.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.service.run_line import RunLine
    from pipeline.service.standing import Standing

_SHOWN: Final = 5
_HELP: Final = "All commands: redfirst --help"


def print_standing(*, as_document: bool = False) -> None:
    """Print where the user stands, in the repository around the working directory.

    Raises:
        UserError: git refuses to work here.
    """
    try:
        repository = Repository.find(Path.cwd())
    except NoRepositoryError:
        document = StandingDocument(repository=None, lines=(_NOWHERE,))
    else:
        document = standing_document(repository, standing(repository))
    if as_document:
        echo(standing_json(document))
    else:
        print_text(standing_text(document))


_NOWHERE: Final = StandingLine(
    about="repository",
    says="You are in no git repository. Go into one of yours. An example shows the whole way",
    next="redfirst demo",
)


def standing_document(repository: Repository, found: Standing) -> StandingDocument:
    """Return what there is to do: what waits for a person, then what is next."""
    lines = (
        *_runs([line for line in found.waiting if not _only_goes_on(line)], "waits for you", "redfirst show"),
        *_runs([line for line in found.waiting if _only_goes_on(line)], "is to go on", "redfirst resume"),
        *_runs(found.driven, "goes on", "redfirst watch"),
        *_landing(found),
        *_begin(found),
        *_issues(found),
    )
    return StandingDocument(repository=as_utf8(str(repository.worktree)), lines=lines)


def standing_text(document: StandingDocument) -> str:
    """Return the document in lines."""
    return "\n".join([*(f"{line.says}: {line.next}" for line in document.lines), _HELP])


def standing_json(document: StandingDocument) -> str:
    """Return the document as it is printed."""
    return json.dumps(asdict(document), indent=2)


def _only_goes_on(line: RunLine) -> bool:
    """Return whether nobody has to answer anything, so that the run only has to go on."""
    return line.problem is None and (line.outcome is None or line.reason is Reason.INTERRUPTED)


def _runs(lines: Sequence[RunLine], what: str, command: str) -> Iterator[StandingLine]:
    for line in lines[:_SHOWN]:
        said = f"{line.name} {what}, {where_words(line)}, begun {age_words(line.age_s)} ago"
        yield StandingLine(about="run", says=visible(said), next=visible(f"{command} {line.name}"))
    if more := max(len(lines) - _SHOWN, 0):
        yield StandingLine(about="run", says=counted(more, "more run"), next="redfirst runs")


def _landing(found: Standing) -> Iterator[StandingLine]:
    if found.landable:
        runs = counted(len(found.landable), "finished run")
        said = f"{runs} may land on {found.onto}. See what would change"
        yield StandingLine(about="landing", says=visible(said), next="redfirst land --dry-run")


def _begin(found: Standing) -> Iterator[StandingLine]:
    """Yield what a run lacks before it can begin."""
    if not found.has_commit:
        said = "There is no commit here yet, and a run starts from one"
        yield StandingLine(about="repository", says=said, next="git commit --allow-empty -m 'first commit'")
    if found.config_problem:
        said = f"The configuration cannot be read. {found.config_problem} Then look at it"
        yield StandingLine(about="configuration", says=visible(said), next="redfirst config show")
    elif not found.configured:
        said = "No configuration says yet which agents play the roles"
        yield StandingLine(about="configuration", says=said, next="redfirst init")
    elif found.uncommitted:
        said = f"{found.uncommitted} is not committed, so a worktree of a run would lack it"
        action = f"git add {found.uncommitted} && git commit -m 'configure redfirst'"
        yield StandingLine(about="configuration", says=said, next=action)


def _issues(found: Standing) -> Iterator[StandingLine]:
    if not found.has_issues:
        said = "There are no issues here yet. File the first"
        yield StandingLine(about="tracker", says=said, next="redfirst issue new --title TEXT")
    elif found.ready is None:
        yield StandingLine(about="tracker", says=visible(f"{found.problem}. See"), next="redfirst issue lint")
    elif not found.ready:
        yield StandingLine(about="issue", says="No issue is ready. See all", next="redfirst issue list")
    else:
        are = "issue is" if len(found.ready) == 1 else "issues are"
        said = f"{len(found.ready)} {are} ready. Take the first"
        yield StandingLine(about="issue", says=said, next=visible(f"redfirst run {found.ready[0]} --worktree"))
