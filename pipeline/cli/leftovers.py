"""What ended or removed runs left behind in this repository: claims, private checkouts, refs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.cli.reading import Check
from pipeline.errors import UserError
from pipeline.orchestrator import has_ended
from pipeline.routing.machine import MatrixMachine
from pipeline.routing.vocabulary import Reason
from pipeline.runs.run import Run
from pipeline.runs.store import CLAIM_REFS, PUBLISH_REFS, RUN_REFS, run_names, state_of_run, worktree_key

if TYPE_CHECKING:
    from pipeline.git import Repository

_SHOWN = 5
_ADVICE = "claims: redfirst abandon RUN; refs: git update-ref -d REF; folders: remove them by hand"


class _Claim(BaseModel):
    model_config = ConfigDict(frozen=True)

    run: str
    worktree: str


def check_leftovers(repository: Repository, state: Path) -> Check:
    """Return what no run needs any more; runs of other worktrees are only looked at through their claims."""
    found = [*stale_claims(repository), *stray_folders(repository, state), *stray_refs(repository)]
    if not found:
        return Check(id="leftovers", status="ok", message="nothing was left behind")
    shown = "; ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return Check(id="leftovers", status="warn", message=shown, advice=_ADVICE)


def stale_claims(repository: Repository) -> list[str]:
    """Return the claims whose run is gone or has ended, in words; each keeps an issue from being worked on."""
    found: list[str] = []
    for ref, oid in repository.refs(CLAIM_REFS).items():
        issue = ref.removeprefix(CLAIM_REFS)
        try:
            claim = _Claim.model_validate(json.loads(repository.blob(oid) or b"null"))
        except (ValueError, ValidationError):
            found.append(f"the claim on {issue} cannot be read ({ref})")
            continue
        folder = Path(claim.worktree) / ".workflow" / claim.run.rpartition("/")[2]
        if why := _no_longer_held(folder):
            found.append(f"{issue} is claimed by {claim.run}, which {why} ({ref})")
    return found


def _no_longer_held(folder: Path) -> str | None:
    if not (folder / "run.json").is_file():
        return "is gone"
    try:
        run = Run.load(folder, MatrixMachine(), driving=False)
    except UserError:
        return None  # damaged: for a person to judge
    ended = has_ended(run.state.outcome) or run.state.reason is Reason.ABANDONED
    return "has ended" if ended else None


def stray_folders(repository: Repository, state: Path) -> list[str]:
    """Return the private folders of this worktree's runs that are gone."""
    place = state_of_run(state, repository, "run")
    suffix = place.name.removeprefix("run")
    folders = sorted(place.parent.glob(f"*{suffix}")) if place.parent.is_dir() else []
    names = set(run_names(repository.worktree))
    return [f"{path} belongs to no run" for path in folders if path.name.removesuffix(suffix) not in names]


def stray_refs(repository: Repository) -> list[str]:
    """Return the refs of this worktree's runs that are gone."""
    known = set(run_names(repository.worktree))
    refs = [
        ref for prefix in (RUN_REFS, PUBLISH_REFS) for ref in repository.refs(f"{prefix}{worktree_key(repository)}/")
    ]
    return [f"{ref} belongs to no run" for ref in refs if ref.rpartition("/")[2] not in known]
