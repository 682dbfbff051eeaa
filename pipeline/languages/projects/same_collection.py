"""What a runner collected from a tree is what it collects from another that differs only in other languages' sources.

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
"""Trees remembered for each runner: a task goes to and fro between a few."""


class Memory:
    """What the runners of one repository collected, in this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Observation] = OrderedDict()

    def unrun(self, name: str, key: str, selection: Selection | None) -> Observation | None:
        """Return what a runner would show for the selection; None if that is not known, or a test of it would run.

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
        """Keep what was collected, if the run may be believed."""
        if seen.state is RunState.COMPLETE and seen.environment_problem is None:
            self._known[name, key] = collected(seen)
            self._known.move_to_end((name, key))
            mine = [entry for entry in self._known if entry[0] == name]
            for entry in mine[:-_MOST]:
                del self._known[entry]


def key_of(files: Manifest, others: Collection[str]) -> str:
    """Return what a runner was shown, as one digest.

    Args:
        files: From `scan`.
        others: The endings of sources of other languages, which it does not read.
    """
    whole = hashlib.sha256()
    for path in sorted(files):
        if not path.endswith(tuple(others)):
            whole.update(f"{path}\0{files[path]!r}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
