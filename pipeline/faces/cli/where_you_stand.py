"""`redfirst` without words: where you stand, and the command that comes next (contract 1).

It reads what `runs` and `issue ready` read, and writes nothing into the repository. What takes long to load is loaded
only where a run has ended.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pipeline.app.issue_records import claims_of
from pipeline.app.run_list import ELSEWHERE, RunLine, has_ended, newest_runs
from pipeline.characters import as_utf8, visible
from pipeline.config import user_folders
from pipeline.config.sources import repository_file, tracker_advice, tracker_folder
from pipeline.errors import UserError
from pipeline.faces.cli.runs import age_words, where_words
from pipeline.faces.cli.text import print_text
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.repo import NoRepositoryError, Repository
from pipeline.run.store import WORKFLOW
from pipeline.terminal import print_json
from todo import FolderSource, Tracker, TrackerError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_SHOWN: Final = 5
_HELP: Final = "All commands: redfirst --help"


@dataclass(frozen=True, kw_only=True)
class StandingLine:
    """One thing to know, and the command that comes next of it."""

    about: Literal["repository", "configuration", "run", "landing", "tracker", "issue"]
    says: str
    next: str


@dataclass(frozen=True, kw_only=True)
class StandingDocument:
    """What `redfirst --json` prints: what waits, then what is next. `repository` is null outside of one."""

    schema: Literal["redfirst.standing/1"] = "redfirst.standing/1"
    ok: Literal[True] = True
    repository: str | None
    lines: tuple[StandingLine, ...]


_NOWHERE: Final = StandingLine(
    about="repository",
    says="You are in no git repository. Go into one of yours. An example shows the whole way",
    next="redfirst demo",
)


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
        document = standing(repository)
    if as_document:
        print_json(asdict(document))
    else:
        print_text("\n".join([*(f"{line.says}: {line.next}" for line in document.lines), _HELP]))


def standing(repository: Repository) -> StandingDocument:
    """Return what there is to do: what waits for a person, then what is next."""
    document, rest = newest_runs(repository, 0)
    open_ = [line for line in document.runs if not has_ended(line)]
    waiting = [line for line in open_ if not line.live and line.status != ELSEWHERE]
    landing, done = _landing(repository) if rest.runs or len(open_) < len(document.runs) else ([], set[str]())
    lines = (
        *_runs([line for line in waiting if not _only_goes_on(line)], "waits for you", "redfirst show"),
        *_runs([line for line in waiting if _only_goes_on(line)], "is to go on", "redfirst resume"),
        *_runs([line for line in open_ if line.live and _asks(line)], "waits for you at a desk", "redfirst desk"),
        *_runs([line for line in open_ if line.live and not _asks(line)], "goes on", "redfirst watch"),
        *_runs([line for line in open_ if line.status == ELSEWHERE], "went to another machine", "redfirst fleet take"),
        *landing,
        *_begin(repository),
        *_issues(repository, done),
    )
    return StandingDocument(repository=as_utf8(str(repository.worktree)), lines=lines)


def _asks(line: RunLine) -> bool:
    """Return whether a person is asked at a desk."""
    from pipeline.agents.backends.desk import open_places

    return any(True for _ in open_places(Path(line.worktree) / WORKFLOW / line.name))


def _only_goes_on(line: RunLine) -> bool:
    """Return whether nobody has to answer anything, so that the run only has to go on."""
    return line.problem is None and (line.outcome is None or line.reason is Reason.INTERRUPTED)


def _runs(lines: Sequence[RunLine], what: str, command: str) -> Iterator[StandingLine]:
    for line in lines[:_SHOWN]:
        said = f"{line.name} {what}, {where_words(line)}, begun {age_words(line.age_s)} ago"
        yield StandingLine(about="run", says=visible(said), next=visible(f"{command} {line.name}"))
    if more := max(len(lines) - _SHOWN, 0):
        yield StandingLine(about="run", says=counted(more, "more run"), next="redfirst runs")


def _landing(repository: Repository) -> tuple[list[StandingLine], set[str]]:
    """Return what may land, and the issues that are done by it."""
    from pipeline.app.land import chosen_runs

    try:
        choice = chosen_runs(repository, (), None)
    except UserError:  # several bases, or a base that is gone: `land` says which
        return [], set()
    if not choice.candidates:
        return [], set()
    said = f"{counted(len(choice.candidates), 'finished run')} may land on {choice.onto}. See what would change"
    line = StandingLine(about="landing", says=visible(said), next="redfirst land --dry-run")
    return [line], {each.result.issue for each in choice.candidates}


def _begin(repository: Repository) -> Iterator[StandingLine]:
    """Yield what a run lacks before it can begin."""
    has_commit = repository.resolve("HEAD") is not None
    if not has_commit:
        said = "There is no commit here yet, and a run starts from one"
        yield StandingLine(about="repository", says=said, next="git commit --allow-empty -m 'first commit'")
    try:
        own = repository_file(repository.worktree, lambda _: None)
    except UserError as error:
        said = f"The configuration cannot be read. {error.message} Then look at it"
        yield StandingLine(about="configuration", says=visible(said), next="redfirst config show")
        return
    if own is None:
        if not (user_folders.config_folder(os.environ) / "config.toml").is_file():
            said = "No configuration says yet which agents play the roles"
            yield StandingLine(about="configuration", says=said, next="redfirst init")
    elif not has_commit or repository.resolve(f"HEAD:{own.name}") is None:
        said = f"{own.name} is not committed, so a worktree of a run would lack it"
        action = f"git add {own.name} && git commit -m 'configure redfirst'"
        yield StandingLine(about="configuration", says=said, next=action)


def _issues(repository: Repository, done: Collection[str]) -> Iterator[StandingLine]:
    folder = repository.worktree / tracker_folder(repository.worktree)
    if not folder.exists():
        said = "There are no issues here yet. File the first"
        yield StandingLine(about="tracker", says=said, next="redfirst issue new --title TEXT")
        return
    try:
        taken = {*claims_of(repository.worktree), *done}
        ready = [issue.id for issue in Tracker(FolderSource(folder)).ready() if issue.id not in taken]
    except TrackerError as error:
        said = f"{folder.name}: {error.message}. See"
        yield StandingLine(about="tracker", says=visible(said), next=tracker_advice(folder))
        return
    if not ready:
        yield StandingLine(about="issue", says="No issue is ready. See all", next="redfirst issue list")
    else:
        said = f"{counted(len(ready), 'issue')} {'is' if len(ready) == 1 else 'are'} ready. Take the first"
        yield StandingLine(about="issue", says=said, next=visible(f"redfirst run {ready[0]} --worktree"))
