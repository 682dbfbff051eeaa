"""Finds what ended or removed runs left behind in this repository: claims, private checkouts, refs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.runs.run import Run
from pipeline.runs.store import (
    PUBLISH_REFS,
    RUN_REFS,
    WORKFLOW,
    claim_ref,
    claims,
    run_names,
    state_of_run,
    worktree_key,
)
from pipeline.service.doctor_document import Check

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.git import Repository

_SHOWN = 5


@dataclass(frozen=True)
class Leftover:
    """Something that no run needs any more: what it is, in words, and the command that takes it away."""

    what: str
    mend: str = ""


def check_leftovers(repository: Repository, state: Path) -> Check:
    """Return what no run needs any more; runs of other worktrees are only looked at through their claims."""
    try:
        names = frozenset(run_names(repository))
    except UserError as error:
        return Check(id="leftovers", status="fail", message=error.message)
    found = [*stale_claims(repository), *stray_folders(repository, state, names), *stray_refs(repository, names)]
    if not found:
        return Check(id="leftovers", status="ok", message="nothing was left behind")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    message = "; ".join(each.what for each in found[:_SHOWN]) + more
    advice = "; ".join(each.mend for each in found[:_SHOWN] if each.mend)
    return Check(id="leftovers", status="warn", message=message, advice=advice)


def stale_claims(repository: Repository) -> list[Leftover]:
    """Return the claims whose run is gone or has ended; each keeps an issue from being worked on."""
    found: list[Leftover] = []
    for issue, claim in claims(repository).items():
        if isinstance(claim, UserError):
            found.append(Leftover(claim.message))
            continue
        folder = Path(claim.worktree) / WORKFLOW / claim.run.rpartition("/")[2]
        if not (folder / "run.json").is_file():
            what, mend = "is gone", f"redfirst abandon {issue}"
        elif _has_ended(folder):
            what, mend = "has ended", f"git update-ref -d {claim_ref(issue)}"
        else:
            continue
        found.append(Leftover(f"{issue} is claimed by {claim.run}, which {what} ({claim_ref(issue)})", mend))
    return found


def _has_ended(folder: Path) -> bool:
    try:
        return Run.load(folder, driving=False).state.has_ended
    except UserError:
        return False  # damaged: for a person to judge


def stray_folders(repository: Repository, state: Path, names: Collection[str]) -> list[Leftover]:
    """Return the private folders of this worktree's runs that are gone."""
    place = state_of_run(state, repository, "run")
    suffix = place.name.removeprefix("run")
    folders = sorted(place.parent.glob(f"*{suffix}")) if place.parent.is_dir() else []
    return [
        Leftover(f"{path} belongs to no run", f"rm -r {shlex.quote(str(path))}")
        for path in folders
        if path.name.removesuffix(suffix) not in names
    ]


def stray_refs(repository: Repository, names: Collection[str]) -> list[Leftover]:
    """Return the refs of this worktree's runs that are gone."""
    refs = [
        ref for prefix in (RUN_REFS, PUBLISH_REFS) for ref in repository.refs(f"{prefix}{worktree_key(repository)}/")
    ]
    return [
        Leftover(f"{ref} belongs to no run", f"git update-ref -d {ref}")
        for ref in refs
        if ref.rpartition("/")[2] not in names
    ]
