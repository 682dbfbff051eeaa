"""Where runs are: finding, naming and claiming them (architecture 9)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.git import NO_OBJECT
from pipeline.routing.vocabulary import Reason
from pipeline.runs.files import disk

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository

RUN_REFS = "refs/redfirst/runs/"
PUBLISH_REFS = "refs/redfirst/publish/"
CLAIM_REFS = "refs/redfirst/claims/"
WORKFLOW = ".workflow"
_IGNORE_ALL = b"*\n"
_CLAIM_TRIES = 3
_NAME = re.compile(r"run-(?P<issue>.+?)(?:@(?P<attempt>[2-9]|[1-9][0-9]+))?\Z")


def workflow_folder(worktree: Path) -> Path:
    """Return `.workflow`, made on first use with an ignore file of its own, so that no git setting is touched."""
    folder = worktree / WORKFLOW
    ignore = folder / ".gitignore"
    with disk(folder):
        folder.mkdir(exist_ok=True)
        if not ignore.exists() or ignore.read_bytes() != _IGNORE_ALL:
            ignore.write_bytes(_IGNORE_ALL)
    return folder


def run_names(worktree: Path) -> list[str]:
    """Return the names of all runs of this worktree, by issue and attempt."""
    folder = worktree / ".workflow"
    found = [p.name for p in folder.glob("run-*") if (p / "run.json").exists()] if folder.is_dir() else []
    return sorted(found, key=_order)


def _order(name: str) -> tuple[str, int]:
    match = _NAME.match(name)
    return (match["issue"], int(match["attempt"] or 1)) if match else (name, 0)


def issue_of(name: str) -> str | None:
    """Return the issue that a run of this name works on; None for what is no name of a run."""
    match = _NAME.match(name)
    return match["issue"] if match else None


def next_name(worktree: Path, issue: str) -> str:
    """Return the name of the next run of *issue*: `run-GAL-39`, `run-GAL-39@2` ...

    A folder without run.json is no run: its driver died before it began, or is about to begin (the lease tells).
    """
    folder = worktree / ".workflow"
    attempt = 1
    while (folder / (name := f"run-{issue}" + (f"@{attempt}" if attempt > 1 else "")) / "run.json").exists():
        attempt += 1
    return name


def find_run(worktree: Path, name: str) -> Path:
    """Return the folder of the run called *name*, or whose name begins so; an exact match beats a prefix.

    Args:
        worktree: The top of the worktree.
        name: `run-GAL-39@2`, `GAL-39` (its newest run), or a unique prefix of either.

    Raises:
        UserError: no run, or more than one.
    """
    names = run_names(worktree)
    if name in names:
        return worktree / ".workflow" / name
    attempts = [n for n in names if issue_of(n) == name]  # an issue's id stands for its newest run
    if attempts:
        return worktree / ".workflow" / attempts[-1]
    if f"run-{name}" in names:
        return worktree / ".workflow" / f"run-{name}"
    found = [n for n in names if n.startswith((name, f"run-{name}"))] if name else names
    if len(found) == 1:
        return worktree / ".workflow" / found[0]
    known = ", ".join(found or names) or "none yet"
    what = "is not a run of this worktree" if not found else "fits more than one run"
    raise UserError(
        f"{name!r} {what} (runs: {known}).", Reason.USAGE, details={"runs": found or names}, actions=("redfirst runs",)
    )


def state_of_run(state: Path, repository: Repository, run_id: str) -> Path:
    """Return the folder outside the repository that holds a run's private checkout and views (architecture 5)."""
    common = repository.common_dir.resolve()
    name = common.parent.name if common.name == ".git" else common.name
    worktree = hashlib.sha256(str(repository.worktree.resolve()).encode()).hexdigest()[:6]
    return state / "runs" / f"{name}-{hashlib.sha256(str(common).encode()).hexdigest()[:10]}" / f"{run_id}-{worktree}"


def claim_ref(issue: str) -> str:
    """Return the ref whose creation claims *issue*, across all worktrees of the repository."""
    return CLAIM_REFS + issue


def run_ref(repository: Repository, run_id: str) -> str:
    """Return the one ref of a run; the worktree is part of it, since two worktrees may both have a `run-GAL-39`."""
    return f"{RUN_REFS}{worktree_key(repository)}/{run_id}"


def publish_ref(repository: Repository, run_id: str) -> str:
    """Return the ref that keeps the commits of a publication that is under way."""
    return f"{PUBLISH_REFS}{worktree_key(repository)}/{run_id}"


def worktree_key(repository: Repository) -> str:
    """Return a short name of the worktree, safe in a ref."""
    path = repository.worktree.resolve()
    label = re.sub(r"[^A-Za-z0-9_-]+", "-", path.name).strip("-") or "worktree"
    return f"{label}-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"


def take_claim(repository: Repository, issue: str, run_id: str) -> str | None:
    """Claim *issue* for *run_id*: None when it is ours now (or was already), else who holds it.

    Raises:
        UserError: the claim can neither be made nor read: a stale lock of a killed git, a read-only disk.
    """
    ours = f"{worktree_key(repository)}/{run_id}"
    blob = repository.write_blob(json.dumps({"run": ours, "worktree": str(repository.worktree)}).encode())
    for _ in range(_CLAIM_TRIES):  # the holder may give it back between our two questions
        if repository.set_ref(claim_ref(issue), blob, NO_OBJECT):
            return None
        holder = claim_holder(repository, issue)
        if holder is not None:
            return None if holder == ours else holder
    raise UserError(
        f"The claim on {issue} cannot be written: git update-ref {claim_ref(issue)} fails. Is the disk full or "
        "read-only, or has a killed git left a .lock file there?",
        Reason.DISK,
        path=str(repository.common_dir / claim_ref(issue)),
    )


def claim_holder(repository: Repository, issue: str) -> str | None:
    """Return `<worktree>/<run>` of the run that holds the claim, or None."""
    held = repository.blob(claim_ref(issue))
    return str(json.loads(held)["run"]) if held else None


def release_claim(repository: Repository, issue: str, run_id: str) -> None:
    """Give the claim back if *run_id* of this worktree holds it."""
    if claim_holder(repository, issue) == f"{worktree_key(repository)}/{run_id}":
        repository.delete_ref(claim_ref(issue))
