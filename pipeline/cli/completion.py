"""Completes words in the shell: issues, runs, roles, kinds, keys, gates. Nothing is imported that is not asked for.

A completion reads names of files, starts no process, and says nothing where it cannot answer: outside of a repository,
in a folder that cannot be read. Each function takes the word that was begun.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_RUNS: Final = ".workflow"
_GATES: Final = ("plan", "split", "commit")
_STATUSES: Final = ("todo", "in-progress", "done")


def _silent(offer: Callable[[str], Iterable[str]]) -> Callable[[str], list[str]]:
    """Offer nothing where anything is wrong: an error would be printed into the line that somebody types."""

    def offered(incomplete: str) -> list[str]:
        try:
            return [word for word in offer(incomplete) if word.startswith(incomplete)]
        except Exception:  # noqa: BLE001  (whatever it is, the shell is no place to tell it)
            return []

    return offered


@_silent
def issues(incomplete: str) -> Iterable[str]:
    """Offer the ids of the issues."""
    del incomplete
    from pipeline.config.sources import tracker_folder  # noqa: PLC0415

    top = _top()
    return sorted(path.stem for path in (top / tracker_folder(top)).glob("*.md") if path.stem.lower() != "readme")


@_silent
def runs(incomplete: str) -> Iterable[str]:
    """Offer the runs of this worktree, and of the others of the repository."""
    del incomplete
    found = (record.parent.name for top in _worktrees(_top()) for record in (top / _RUNS).glob("run-*/run.json"))
    return sorted(dict.fromkeys(found))


@_silent
def commits_or_runs(incomplete: str) -> Iterable[str]:
    """Offer what `verify` takes: runs, and the branches of this checkout."""
    return [*runs(incomplete), *branches(incomplete)]


@_silent
def branches(incomplete: str) -> Iterable[str]:
    """Offer the branches that are files; those that git has packed are not."""
    del incomplete
    heads = _common(_top()) / "refs" / "heads"
    return sorted(path.relative_to(heads).as_posix() for path in heads.rglob("*") if path.is_file())


@_silent
def roles_with_backends(incomplete: str) -> Iterable[str]:
    """Offer `ROLE=`, and behind it the backends that can play the role."""
    from pipeline.config.agents import PLAYS  # noqa: PLC0415  (only here)
    from pipeline.routing.vocabulary import Role  # noqa: PLC0415  (the same)

    role, equals, _ = incomplete.partition("=")
    if not equals:
        return [f"{each.value}=" for each in Role]
    return [f"{role}={backend.value}" for backend, plays in PLAYS.items() if role in plays]


@_silent
def kinds(incomplete: str) -> Iterable[str]:
    """Offer the kinds of dispatches."""
    from pipeline.reports.kinds import KINDS  # noqa: PLC0415  (only here)

    del incomplete
    return list(KINDS)


@_silent
def keys(incomplete: str) -> Iterable[str]:
    """Offer the keys of the configuration."""
    from pipeline.config.keys import ANY, LEAVES, dotted  # noqa: PLC0415  (only here)

    del incomplete
    return [dotted(path) for path in LEAVES if ANY not in path]


@_silent
def keys_with_equals(incomplete: str) -> Iterable[str]:
    """Offer `KEY=`."""
    return [f"{key}=" for key in keys(incomplete)]


@_silent
def gates(incomplete: str) -> Iterable[str]:
    """Offer the gates that are not in the list yet."""
    before = incomplete.split(",")[:-1]
    return [",".join((*before, gate)) for gate in _GATES if gate not in before]


@_silent
def gate_targets(incomplete: str) -> Iterable[str]:
    """Offer where a rejected gate can go."""
    del incomplete
    return ("plan", "split", "fix")


@_silent
def statuses(incomplete: str) -> Iterable[str]:
    """Offer the words for an issue's status."""
    del incomplete
    return _STATUSES


@_silent
def agents(incomplete: str) -> Iterable[str]:
    """Offer what `init --agent` takes."""
    from pipeline.service.init_config import names  # noqa: PLC0415  (only here)

    del incomplete
    return names()


@_silent
def schemas(incomplete: str) -> Iterable[str]:
    """Offer the names of the schemas."""
    from pipeline.cli.schema import SCHEMAS  # noqa: PLC0415  (only here)

    del incomplete
    return list(SCHEMAS)


@_silent
def recipes(incomplete: str) -> Iterable[str]:
    """Offer the recipes that come with the program and those of the folders of the user and the worktree."""
    from pipeline.config.folders import config_folder  # noqa: PLC0415  (only here)
    from pipeline.dispatch.roles import data_folder  # noqa: PLC0415  (the same)

    del incomplete
    places = (config_folder(os.environ) / "recipes", _top() / ".redfirst" / "recipes")
    names = [entry.name for entry in data_folder("commands").iterdir()]
    names += [path.name for place in places for path in place.glob("*.yaml")]
    return sorted({name.removesuffix(".yaml") for name in names if name.endswith(".yaml")})


def _top() -> Path:
    """Return the top of the worktree that somebody stands in."""
    here = Path.cwd()
    return next(folder for folder in (here, *here.parents) if (folder / ".git").exists())


def _common(top: Path) -> Path:
    """Return the git folder that all worktrees share."""
    place = top / ".git"
    if place.is_dir():
        return place
    own = top / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    shared = own / "commondir"  # a submodule, or a git folder in another place, has none
    return own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own


def _worktrees(top: Path) -> Iterator[Path]:
    yield top
    common = _common(top).resolve()
    yield common.parent
    for place in common.glob("worktrees/*/gitdir"):
        yield (place.parent / place.read_text(encoding="utf-8").strip()).parent
