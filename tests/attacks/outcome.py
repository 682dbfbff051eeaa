"""What counts as expected: what the file says, or one of a closed list of other ends in which nothing lands either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attacks.catalogue import Verdict

from pipeline.sandbox.views.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attacks.catalogue import Case
    from attacks.world import Happened, World

ELSEWHERE: Final[Mapping[str, tuple[Verdict, str]]] = {
    "FS-31": (Verdict.VIOLATION, "the repository in the view is a decoy; moved aside it is a new folder, and refused"),
    "GIT-14": (Verdict.VIOLATION, "the decoy may be removed; a repository that is made beside it is refused"),
    "WF-02": (Verdict.VIOLATION, "the view has no .workflow at all; one that is made there is refused"),
    "WF-12": (
        Verdict.VIOLATION,
        "the file calls accepting it a known weakness and asks for what the runner's testpaths say; they decide here",
    ),
    **dict.fromkeys(("WF-13", "WF-15"), (Verdict.BLOCKED, "@pm changes no file: our own code writes TODO/")),
}
"""By case: another end that is at least as strict, and why it comes to that."""

NOT_WITHOUT_A_BOX: Final[Mapping[str, str]] = {
    "FS-09": "a link out of the view is followed, as by any process of the user; the gate's part is the same elsewhere",
    "OWN-25": "the real repository is in reach, as of any process of the user",
    "OWN-41": "the gate is the one behind any other box, and this is the slowest case",
}
"""What is not tried where nothing stands between an agent and the host, and why."""


def is_expected(case: Case, happened: Happened, world: World) -> bool:
    """Return whether a case ended as it should; whether anything landed or leaked is asked separately."""
    wanted = case.expected.verdict
    if wanted is Verdict.DROPPED:
        return happened.verdict is Verdict.DISCARDED and _is_gone(case.expected.path, happened, world)
    if happened.verdict is wanted:
        return True
    if wanted is Verdict.DISCARDED and happened.verdict is Verdict.BLOCKED:
        return True  # there was not even anything to drop
    if wanted is Verdict.BLOCKED and happened.verdict is Verdict.DISCARDED:
        return happened.decoy_only  # the issue: a decoy repository may make it so
    other = ELSEWHERE.get(case.id)
    return other is not None and happened.verdict is other[0]


def _is_gone(path: str, happened: Happened, world: World) -> bool:
    """Return whether a file is in no tree of the dispatch and in no copy that is measured, and its record names it."""
    tree = happened.result.tree
    assert tree is not None
    with Copies(world.checkout, f"measured-{world.number}", world.box).lent(tree) as files:
        is_measured = (files / path).exists()
    is_kept = any(entry.path == path for entry in world.host.repository.entries(tree))
    is_named = any(line.startswith(f"{path} (") for line in happened.result.dropped)
    return is_named and not is_kept and not is_measured


def applies(case: Case, box: str) -> bool:
    """Return whether a case says anything about this box: without one, only what the gate has to answer."""
    if box != "none":
        return True
    return case.expected.verdict is not Verdict.BLOCKED and case.id not in NOT_WITHOUT_A_BOX
