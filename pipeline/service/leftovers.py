"""What ended or removed runs left behind in this repository: claims, private checkouts, refs."""

from __future__ import annotations

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
_ADVICE = "claims: redfirst abandon RUN; refs: git update-ref -d REF; folders: remove them by hand"


def check_leftovers(repository: Repository, state: Path) -> Check:
    """Return what no run needs any more; runs of other worktrees are only looked at through their claims."""
    try:
        names = frozenset(run_names(repository))
    except UserError as error:
        return Check(id="leftovers", status="fail", message=error.message)
    found = [*stale_claims(repository), *stray_folders(repository, state, names), *stray_refs(repository, names)]
    if not found:
        return Check(id="leftovers", status="ok", message="nothing was left behind")
    shown = "; ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return Check(id="leftovers", status="warn", message=shown, advice=_ADVICE)


def stale_claims(repository: Repository) -> list[str]:
    """Return the claims whose run is gone or has ended, in words; each keeps an issue from being worked on."""
    found: list[str] = []
    for issue, claim in claims(repository).items():
        if isinstance(claim, UserError):
            found.append(claim.message)
        elif why := _no_longer_held(Path(claim.worktree) / WORKFLOW / claim.run.rpartition("/")[2]):
            found.append(f"{issue} is claimed by {claim.run}, which {why} ({claim_ref(issue)})")
    return found


def _no_longer_held(folder: Path) -> str | None:
    if not (folder / "run.json").is_file():
        return "is gone"
    try:
        run = Run.load(folder, driving=False)
    except UserError:
        return None  # damaged: for a person to judge
    return "has ended" if run.state.has_ended else None


def stray_folders(repository: Repository, state: Path, names: Collection[str]) -> list[str]:
    """Return the private folders of this worktree's runs that are gone."""
    place = state_of_run(state, repository, "run")
    suffix = place.name.removeprefix("run")
    folders = sorted(place.parent.glob(f"*{suffix}")) if place.parent.is_dir() else []
    return [f"{path} belongs to no run" for path in folders if path.name.removesuffix(suffix) not in names]


def stray_refs(repository: Repository, names: Collection[str]) -> list[str]:
    """Return the refs of this worktree's runs that are gone."""
    refs = [
        ref for prefix in (RUN_REFS, PUBLISH_REFS) for ref in repository.refs(f"{prefix}{worktree_key(repository)}/")
    ]
    return [f"{ref} belongs to no run" for ref in refs if ref.rpartition("/")[2] not in names]
