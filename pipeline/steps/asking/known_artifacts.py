"""Tells what of a re-review's artifacts the reviewer has read before: it is named, to be looked up, not given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from pipeline.routing.vocabulary import Role
    from pipeline.runs.info import DispatchRecord, DispatchResult


def last_answered(
    records: Iterable[DispatchRecord], results: Mapping[str, DispatchResult], asked: tuple[Role, str, str], before: int
) -> str | None:
    """Return the dispatch of the last visit before that one in which a reviewer gave an answer that counts.

    Args:
        records: The dispatches of the run.
        results: Of those that have ended, by name.
        asked: Role, step and kind.
        before: The visit of this review.
    """
    mine = [one for one in records if (one.role, one.step, one.kind) == asked and one.visit < before]
    found = [one.dispatch for one in mine if one.dispatch in results and results[one.dispatch].signal is None]
    return found[-1] if found else None


def known_artifacts(before: Path, artifacts: Mapping[str, Iterable[Path]], covered: Collection[str]) -> frozenset[Path]:
    """Return the files of *artifacts* that were given before as they are, or of which `changes` says what is new.

    Args:
        before: The folder with the artifacts of the last review.
        artifacts: What this one is about.
        covered: The artifacts that `changes` is a part of.
    """
    return frozenset(
        path for name, paths in artifacts.items() for path in paths if name in covered or _is_among(path, before / name)
    )


def _is_among(path: Path, folder: Path) -> bool:
    content = path.read_bytes()
    return folder.is_dir() and any(content == one.read_bytes() for one in folder.iterdir())
