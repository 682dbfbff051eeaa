"""All cheats and all honest work, in groups that are played in one place one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cheats import (
    blind,
    crates,
    forgers,
    honest,
    honest_changes,
    honest_code,
    liars,
    makers,
    module,
    package,
    stubs,
    weakeners,
    writers,
)
from cheats.kinds import Cheat, Honest, crowd
from cheats.play import Stage
from cheats.repositories import GO, NODE, PYTHON, RUST
from languages.crates import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cheats.play import Played
    from cheats.repositories import Repository


@dataclass(frozen=True)
class Group:
    """What is played in one repository, in order."""

    repository: Repository
    cheats: tuple[Cheat, ...] = ()
    honest: tuple[Honest, ...] = ()

    def open(self, folder: Path) -> Theatre:
        """Return the place where it is played; `folder` is empty, and its own."""
        # rustup would look for the toolchain in the user's home, which a play does not have
        path = str(environment().prefix / "bin") if self.repository is RUST else ""
        return Theatre(self, Stage(folder, self.repository, path))


@dataclass
class Theatre:
    """A group with its stage. What is played at once is played once."""

    group: Group
    stage: Stage
    crowds: dict[str, Played]

    def __init__(self, group: Group, stage: Stage) -> None:
        self.group = group
        self.stage = stage
        self.crowds = {}

    def play(self, one: Cheat | Honest) -> Played:
        """Return what came of it."""
        if isinstance(one, Honest) or not one.crowd:
            return self.stage.play(one.part(self.stage.repository))
        if one.who not in self.crowds:
            together = [cheat for cheat in self.group.cheats if cheat.crowd and cheat.who == one.who]
            self.crowds[one.who] = self.stage.play(crowd(together, self.stage.repository))
        return self.crowds[one.who]


GROUPS: Final = {
    "writers": Group(PYTHON, (*writers.NOTHING, *writers.FALSE_RED)),
    "blind": Group(PYTHON, (*blind.STUBBED, *blind.ELSEWHERE, *blind.MUTANTS)),
    "weakeners": Group(PYTHON, (*weakeners.MARKS, *weakeners.LOOSENED, *weakeners.ELSEWHERE)),
    "makers": Group(PYTHON, (*makers.FILES, *makers.CLAIMS, *forgers.FORGERIES)),
    "liars": Group(PYTHON, (*liars.KNOWS, *liars.OBJECTS, *liars.ENDS)),
    "stubs": Group(stubs.SCAFFOLDED, stubs.STUBS, stubs.HONEST),
    "crates": Group(RUST, (*crates.WRITERS, *crates.MAKERS), honest_changes.CRATES),
    "module": Group(GO, (*module.WRITERS, *module.MAKERS)),
    "package": Group(NODE, package.WRITERS),
    "honest": Group(PYTHON, (), honest.WRITERS),
    "honest changes": Group(PYTHON, (), (*honest_changes.CHANGERS, *honest_code.MAKERS, *honest_code.PLUGINS)),
}
"""By name."""


def everything() -> Iterator[Cheat | Honest]:
    """Yield what all groups have."""
    for group in GROUPS.values():
        yield from group.cheats
        yield from group.honest
