"""Tells what `gc` asks of a run: how it stands, whether it has landed, whether its ref has all of its folder."""

from __future__ import annotations

import hashlib
import stat
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.runs.activity_file import NOW
from pipeline.runs.events import Published
from pipeline.runs.landed import base_tip, is_on
from pipeline.runs.lease import FileLease
from pipeline.runs.recipe_run import load_run
from pipeline.runs.records import ARTIFACT_LIMIT, walk
from pipeline.runs.store import key_of_run, run_ref
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pipeline.git import Repository
    from pipeline.runs.roster import RunPlace
    from pipeline.runs.spending import AnyRun

_NOT_KEPT: Final = frozenset({"lock", NOW})
_SHA1: Final = 40


_DONE: Final = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS})


@dataclass(frozen=True)
class Known:
    """A run, and the repository as seen from its worktree. `run` is None where it cannot be read, `why` says it."""

    place: RunPlace
    there: Repository
    live: bool
    run: AnyRun | None
    why: str = ""

    @classmethod
    def of(cls, here: Repository, place: RunPlace) -> Known:
        """Return how a run stands now."""
        there, live = here.at(place.worktree), FileLease.is_held(place.folder)
        try:
            return cls(place, there, live, load_run(place.folder, driving=False))
        except UserError as error:
            return cls(place, there, live, None, error.message)

    @property
    def key(self) -> str:
        """Return the run as claims and refs name it."""
        return key_of_run(self.place.folder)

    @property
    def has_ended(self) -> bool:
        """Return whether it can never go on, and no process is at it."""
        return not self.live and self.run is not None and self.run.state.has_ended

    @property
    def keeps(self) -> str:
        """Return, in words, why what it has stays; "" where it has ended."""
        if self.live:
            return f"{self.place.name} is driven now"
        if self.run is None:
            return f"{self.place.name} cannot be read: {self.why}"
        return "" if self.run.state.has_ended else f"{self.place.name} can go on"

    def age_s(self, now: datetime) -> float:
        """Return how long nothing was said of it."""
        lines = self.run.journal.lines if self.run is not None else []
        return (now - datetime.fromisoformat(lines[-1].at)).total_seconds() if lines else 0.0

    def needed(self) -> str:
        """Return, in words, why its result is still needed; "" where it has landed, or there is none."""
        if self.run is None:
            return self.why
        if self.run.state.reason is Reason.ABANDONED or self.run.state.outcome not in _DONE:
            return ""
        published, info = self.run.journal.of(Published), self.run.info
        if not published or not published[-1].data.commits:
            return ""
        tip = base_tip(self.there, info.base_branch)
        commits = published[-1].data.commits
        landed = tip is not None and is_on(self.there, commits, info.start_commit, tip)
        return "" if landed else f"its commits are not on {info.base_branch}"

    def lacks(self) -> str:
        """Return, in words, what its ref does not have of its folder; "" where it has all."""
        ref = run_ref(self.there, self.place.name)
        oid = self.there.refs(ref).get(ref)
        if oid is None:
            return "it has no ref of this worktree"
        kept = {entry.path: entry.oid for entry in self.there.entries(oid, "run/")}
        try:
            missing = next((path for path in _missing(self.place, kept)), None)
        except (UserError, OSError) as error:
            return str(error)
        return "" if missing is None else f"its ref lacks {missing}"


def _missing(place: RunPlace, kept: dict[str, str]) -> Generator[str]:
    """Yield what a run folder holds and its ref does not, as it is now."""
    for parent, path, status in walk(place.folder):
        if stat.S_ISDIR(status.st_mode) or path in _NOT_KEPT:
            continue
        oid = kept.get(f"run/{path}")
        if (
            oid is None
            or not stat.S_ISREG(status.st_mode)
            or status.st_size > ARTIFACT_LIMIT
            or _name_of(read_regular(path.rpartition("/")[2], ARTIFACT_LIMIT, parent), oid) != oid
        ):
            yield path


def _name_of(content: bytes, like: str) -> str:
    """Return the object name that git gives a content, of the kind of another one."""
    data = b"blob %d\0" % len(content) + content
    return (hashlib.sha1(data, usedforsecurity=False) if len(like) == _SHA1 else hashlib.sha256(data)).hexdigest()


@contextmanager
def held(here: Repository, known: Sequence[Known]) -> Generator[list[Known]]:
    """Hold the leases of some runs, and lend how they stand under them: nobody else can change that meanwhile.

    Raises:
        UserError: one of them is driven.
    """
    with ExitStack() as leases:
        for each in known:
            leases.callback(FileLease.take(each.place.folder).release)
        fresh = [Known.of(here, each.place) for each in known]
        yield [Known(each.place, each.there, live=False, run=each.run, why=each.why) for each in fresh]


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)
