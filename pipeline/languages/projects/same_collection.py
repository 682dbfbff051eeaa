"""Reuses a runner's collected tests for a tree that differs only in other languages' sources.

Evidence needs every id of every runner, also when only tests of one language are to run: a test that is not listed is
one that was removed. Listing the tests of a compiled language means compiling them, so it is done again only where
something changed that can matter to it. Nothing here claims that a test ran: outcomes are not remembered.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import RunState
from pipeline.languages.projects.merging import collected

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.evidence.observation import Observation
    from pipeline.languages.protocol import Selection
    from pipeline.views.manifest import Manifest

_MOST: Final = 8
"""The most trees remembered for each runner: a task alternates between few."""


class Memory:
    """The collected tests of a repository's runners, in this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Observation] = OrderedDict()

    def unrun(self, name: str, key: str, selection: Selection | None) -> Observation | None:
        """Return a runner's observation for the selection without a run; None if it is unknown or a test would run.

        Args:
            name: The runner.
            key: What it was shown, from `key_of`.
            selection: What is to run.
        """
        known = self._known.get((name, key))
        if known is None or selection is None or any(selection.has(r.id, r.path) for r in known.records.values()):
            return None
        return known

    def remember(self, name: str, key: str, seen: Observation) -> None:
        """Store the collected tests of a run that may be used."""
        if seen.state is RunState.COMPLETE and seen.environment_problem is None:
            self._known[name, key] = collected(seen)
            self._known.move_to_end((name, key))
            mine = [entry for entry in self._known if entry[0] == name]
            for entry in mine[:-_MOST]:
                del self._known[entry]


def key_of(files: Manifest, others: Collection[str]) -> str:
    """Return a digest of the files that a runner reads: all but other languages' sources.

    Args:
        files: From `scan`.
        others: The endings of sources of other languages, which it does not read.
    """
    whole = hashlib.sha256()
    for path in sorted(files):
        if not path.endswith(tuple(others)):
            whole.update(f"{path}\0{files[path]!r}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
