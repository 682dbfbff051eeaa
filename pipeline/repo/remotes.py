"""The *remote* door: reads and moves refs of a repository elsewhere, several at once or none of them.

Whoever has moved a ref meanwhile wins: each move names what the ref has to point at, and the other side compares.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.repo.objects import ObjectDoor
from pipeline.repo.values import NO_OBJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LIMIT_S: Final = 300.0
"""The seconds that one exchange with another repository may take."""
_AS_ONE: Final = ("--atomic", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
"""How refs are pushed: all or none, and nothing that a user's settings would add."""
_REFUSED: Final = re.compile(r"!\t[^\t:]*:(?P<ref>[^\t]+)\t\[(?:remote )?rejected\] \((?P<why>.*)\)")
_ALONG: Final = "atomic push failed"
"""What git says of a ref that it does not move, since another one is refused."""


class UnreachableError(Exception):
    """The other repository cannot be asked now; the message is git's."""

    @property
    def first_line(self) -> str:
        """Return the first line of what git said."""
        return str(self).splitlines()[0] if str(self) else "no answer"


@dataclass(frozen=True)
class RefMove:
    """A ref that is to point at *new* (`NO_OBJECT`: to go), where it points at *old* now (`NO_OBJECT`: is missing)."""

    ref: str
    new: str
    old: str


class RemoteDoor(ObjectDoor):
    """The repository for exchanging objects and refs with another one, by its URL."""

    def remote_refs(self, url: str, *patterns: str) -> dict[str, str]:
        """Return the refs of another repository that fit, and what each points at.

        Raises:
            UnreachableError: it cannot be asked.
        """
        out = self._exchange("ls-remote", "--refs", "--", url, *patterns).stdout.decode(errors="surrogateescape")
        return {ref: oid for oid, _, ref in (line.partition("\t") for line in out.splitlines())}

    def push_all(self, url: str, moves: Sequence[RefMove]) -> dict[str, str]:
        """Move these refs of another repository, all or none; return those that refuse it and why, none if it is done.

        Raises:
            UnreachableError: it cannot be asked; whether it was done is not known.
        """
        leases = [f"--force-with-lease={one.ref}:{'' if one.old == NO_OBJECT else one.old}" for one in moves]
        refs = [f"{'' if one.new == NO_OBJECT else one.new}:{one.ref}" for one in moves]
        done = self._exchange("push", "--porcelain", *_AS_ONE, *leases, "--", url, *refs, may_fail=True)
        said = done.stdout.decode(errors="replace")
        refused = {found["ref"]: found["why"] for found in map(_REFUSED.match, said.splitlines()) if found is not None}
        if done.returncode and not refused:
            raise UnreachableError(done.stderr.decode(errors="replace").strip())
        return {ref: why for ref, why in refused.items() if why != _ALONG} or refused

    def fetch_from(self, url: str, refs: Iterable[str]) -> None:
        """Fetch what refs of another repository point at; no ref here is changed, so that nothing is in a run's way.

        Raises:
            UnreachableError: it cannot be asked, or has none of that name.
        """
        self._exchange(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *("--no-auto-maintenance", "--no-prune", "--", url, *refs),
        )

    def _exchange(self, *argv: str, may_fail: bool = False) -> subprocess.CompletedProcess[bytes]:
        try:
            done = self._start(argv, limit_s=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"no answer within {LIMIT_S:.0f} s") from error
        if done.returncode and not may_fail:
            raise UnreachableError(done.stderr.decode(errors="replace").strip())
        return done
