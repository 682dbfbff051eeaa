"""Finds, names and claims runs, names worktrees, and tells whether a branch has what a run has made.

A worktree's name is kept where git keeps what it knows of the worktree, so it stays when that is moved. A run's refs,
its claim, its orders and its events go by that name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId
from pipeline.repo import NO_OBJECT, Repository
from pipeline.run.files import disk, remove_abandoned, write_atomic
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Sequence


WORKFLOW: Final = ".workflow"
"""The folder of a worktree that has its runs."""
OWNER: Final = "redfirst.json"
"""The file in the git folder of a worktree that says who made it, and what for."""
_KEPT: Final = "redfirst-key"
_KEY: Final = re.compile(rb"[A-Za-z0-9_-]{1,255}-[0-9a-f]{6}\n")
_LINKED: Final = b"gitdir: "
_MOST_BYTES: Final = 4096


def key_of_worktree(path: Path) -> str:
    """Return a short name of a worktree, safe in a ref: the one that is kept, else that of its path."""
    folder = _git_dir(path)
    kept = _read(folder / _KEPT) if folder is not None else None
    return kept.decode().strip() if kept is not None and _KEY.fullmatch(kept) else _key(path, b"")


def is_key(text: str) -> bool:
    """Return whether a text can be what a worktree is called."""
    return _KEY.fullmatch(f"{text}\n".encode(errors="replace")) is not None


def keep_key(path: Path, key: str | None = None) -> None:
    """Write down what a worktree is called, unless it is: as is said, or by its path where it has older runs.

    Else the name is one that no other worktree ever had at that place.

    Raises:
        UserError: the disk does not take it.
    """
    folder = _git_dir(path)
    if folder is None or os.path.lexists(folder / _KEPT):
        return
    records = path / WORKFLOW
    older = records.is_dir() and any(one.name.startswith("run-") for one in records.iterdir())
    key = key or _key(path.resolve(), b"" if older else secrets.token_bytes(16))
    with disk(folder / _KEPT):
        own = folder / f"{_KEPT}.{os.getpid()}"
        own.write_bytes(f"{key}\n".encode())
        try:
            with suppress(FileExistsError):  # another process was quicker
                os.link(own, folder / _KEPT)
        finally:
            own.unlink(missing_ok=True)


def _key(path: Path, salt: bytes) -> str:
    label = re.sub(r"[^A-Za-z0-9_-]+", "-", path.name).strip("-")[:255] or "worktree"
    return f"{label}-{hashlib.sha256(os.fsencode(path) + salt).hexdigest()[:6]}"


def _git_dir(path: Path) -> Path | None:
    """Return where git keeps what it knows of a worktree, None of what is none."""
    there = path / ".git"
    if there.is_dir():
        return there
    said = _read(there)
    if said is None or not said.startswith(_LINKED):
        return None
    folder = path / os.fsdecode(said.removeprefix(_LINKED).strip())
    return folder if folder.is_dir() else None


def _read(path: Path) -> bytes | None:
    """Return a small file, which may be a stranger's; None where there is none, or it is a link, or large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(handle, _MOST_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    return content if len(content) <= _MOST_BYTES else None


RUN_REFS = "refs/redfirst/runs/"
PUBLISH_REFS = "refs/redfirst/publish/"
CLAIM_REFS = "refs/redfirst/claims/"
_IGNORE_ALL = b"*\n"
_CLAIM_TRIES = 3
CLAIM_BYTES = 64 * 1024
_NAME = re.compile(r"run-(?P<issue>.+?)(?:@(?P<attempt>[2-9]|[1-9][0-9]+))?\Z")


def runs_folder(repository: Repository) -> Path:
    """Return `.workflow` of the worktree, whether it is there or not. Whoever opens a run has it from here.

    Raises:
        UserError: something of it is the repository's, or it is a link: what is in it is a stranger's.
    """
    folder = repository.worktree / WORKFLOW
    tracked = repository.tracked(WORKFLOW)
    if tracked is not None:
        raise UserError(
            f"The repository tracks {tracked}. Runs are kept in {WORKFLOW}, and nobody else may put anything there. "
            f"Look at it, and remove what is not yours. Then: git rm -r --cached {WORKFLOW}, and commit.",
            Reason.USAGE,
            path=tracked,
            actions=(f"git rm -r --cached {WORKFLOW} && git commit",),
        )
    if folder.is_symlink():
        raise UserError(
            f"{folder} is a link. Runs are kept in a folder of the worktree itself. Remove the link.",
            Reason.USAGE,
            path=str(folder),
        )
    return folder


def workflow_folder(repository: Repository) -> Path:
    """Return `.workflow`, made on first use with an ignore file of its own, so that no git setting is touched.

    Whoever asks has looked whether it may be (`runs_folder`, which `preconditions.examine` asks).

    Raises:
        UserError: the disk does not take it.
    """
    folder = repository.worktree / WORKFLOW
    ignore = folder / ".gitignore"
    if ignore.is_symlink() or not ignore.is_file() or ignore.stat().st_size != len(_IGNORE_ALL):
        # A driver that was killed here had no run yet whose folder would be cleared. First, since the next one that
        # is killed may have written the file.
        remove_abandoned(ignore)
        write_atomic(ignore, _IGNORE_ALL, below=repository.worktree)
    keep_key(repository.worktree)
    return folder


def run_folders(repository: Repository) -> list[str]:
    """Return the names of the folders of this worktree that are called as runs are; one may hold no run yet.

    Raises:
        UserError: as `runs_folder`.
    """
    folder = runs_folder(repository)
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.name.startswith("run-"))


def run_names(repository: Repository) -> list[str]:
    """Return the names of all runs of this worktree, by issue and attempt.

    Raises:
        UserError: as `runs_folder`.
    """
    folder = repository.worktree / WORKFLOW
    found = [name for name in run_folders(repository) if (folder / name / "run.json").is_file()]
    return sorted(found, key=order_of_runs)


def order_of_runs(name: str) -> tuple[str, int]:
    """Return what sorts the names of runs by issue, then by attempt."""
    match = _NAME.match(name)
    return (match["issue"], int(match["attempt"] or 1)) if match else (name, 0)


def issue_of(name: str) -> str | None:
    """Return the issue that a run of this name works on; None for what is no name of a run."""
    match = _NAME.match(name)
    return match["issue"] if match else None


def state_of_run(state: Path, repository: Repository, run_id: str) -> Path:
    """Return the folder outside the repository that holds a run's private checkout and views."""
    worktree = worktree_key(repository).rpartition("-")[2]
    return state / "runs" / repository_name(repository) / f"{run_id}-{worktree}"


def repository_name(repository: Repository) -> str:
    """Return what a repository is called in the user's state, the same from each of its worktrees."""
    common = repository.common_dir.resolve()
    name = common.parent.name if common.name == ".git" else common.name
    return f"{name}-{hashlib.sha256(str(common).encode()).hexdigest()[:10]}"


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
    return key_of_worktree(repository.worktree.resolve())


def key_of_run(folder: Path) -> str:
    """Return the run in *folder* by worktree and name, as claims, orders and events name it."""
    return f"{key_of_worktree(folder.parents[1])}/{folder.name}"


def take_claim(repository: Repository, issue: str, run_id: str) -> str | None:
    """Claim *issue* for *run_id*: None when it is ours now (or was already), else who holds it.

    Raises:
        UserError: the claim can neither be made nor read: a stale lock of a killed git, a read-only disk, a ref that
            no run has made.
    """
    ours = f"{worktree_key(repository)}/{run_id}"
    blob = repository.write_blob(json.dumps({"run": ours, "worktree": str(repository.worktree)}).encode())
    for _ in range(_CLAIM_TRIES):  # the holder may give it back between our two questions
        if repository.set_ref(claim_ref(issue), blob, NO_OBJECT):
            return None
        if (claim := claim_on(repository, issue)) is not None:
            return None if claim.run == ours else claim.run
    raise UserError(
        f"The claim on {issue} cannot be written: git update-ref {claim_ref(issue)} fails. Is the disk full or "
        "read-only, or has a killed git left a .lock file there?",
        Reason.DISK,
        path=str(repository.common_dir / claim_ref(issue)),
    )


def order_of(repository: Repository) -> str | None:
    """Return the order that this worktree was made for; None where it was made for none."""
    order = (owner_of(repository.git_dir) or {}).get("order")
    return order if isinstance(order, str) else None


def owner_of(git_dir: Path) -> dict[str, Any] | None:
    """Return what the file says that redfirst left in the git folder of a worktree; None where there is none."""
    place = git_dir / OWNER
    try:
        said: object = json.loads(place.read_bytes()) if not place.is_symlink() else None
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", said) if isinstance(said, dict) else None


class Claim(BaseModel):
    """What the claim on an issue says: `<worktree>/<run>`, and where that worktree is.

    At a hub it says more: how the run stood, the order that it came of, the machine and the process that wrote the
    claim, and the hash of the routing matrix and the version that the run began with.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+/run-[A-Za-z0-9._@-]+$", max_length=400)]
    worktree: str
    state: str = "driving"
    order: str | None = None
    host: Annotated[str, AfterValidator(visible)] = ""
    matrix: str | None = None
    redfirst: Annotated[str, AfterValidator(visible)] = ""
    driver: ProcessId | None = None

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.run.rpartition("/")[2]

    @property
    def folder(self) -> Path:
        """Return where the run was when it took the claim."""
        return Path(self.worktree) / WORKFLOW / self.name


def claims(repository: Repository) -> dict[str, Claim | UserError]:
    """Return every claim by its issue; in the place of one that cannot be read, why and what to do."""
    return {
        ref.removeprefix(CLAIM_REFS): _claim(repository, ref, oid) for ref, oid in repository.refs(CLAIM_REFS).items()
    }


def read_claim(repository: Repository, oid: str) -> Claim | None:
    """Return what a claim says that is here; None where no run has written it."""
    try:
        return Claim.model_validate_json(repository.blob(oid, CLAIM_BYTES) or b"")
    except ValueError:
        return None


def _claim(repository: Repository, ref: str, oid: str) -> Claim | UserError:
    claim = read_claim(repository, oid)
    if claim is not None:
        return _where_it_is(repository, claim)
    return UserError(
        f"{ref} is no claim that a run has written, so nobody can tell who has {ref.removeprefix(CLAIM_REFS)}. "
        f"Look at it: git cat-file -p {ref}. Then remove it: git update-ref -d {ref}",
        Reason.USAGE,
        path=ref,
        actions=(f"git cat-file -p {ref}", f"git update-ref -d {ref}"),
    )


def _where_it_is(repository: Repository, claim: Claim) -> Claim:
    """Return a claim with the place of its run where its worktree has been moved."""
    if claim.folder.is_dir():
        return claim
    key = claim.run.partition("/")[0]
    there = (one.path for one in repository.worktrees() if one.is_there)
    moved = next((path for path in there if key_of_worktree(path) == key), None)
    return claim if moved is None else claim.model_copy(update={"worktree": str(moved)})


def claim_holders(repository: Repository) -> dict[str, str]:
    """Return who holds each claim, `<worktree>/<run>`, by its issue.

    Raises:
        UserError: one of them cannot be read.
    """
    found: dict[str, str] = {}
    for issue, claim in claims(repository).items():
        if isinstance(claim, UserError):
            raise claim
        found[issue] = claim.run
    return found


def claim_on(repository: Repository, issue: str) -> Claim | None:
    """Return the claim on *issue*, or None.

    Raises:
        UserError: it cannot be read.
    """
    ref = claim_ref(issue)
    oid = repository.refs(ref).get(ref)
    claim = _claim(repository, ref, oid) if oid is not None else None
    if isinstance(claim, UserError):
        raise claim
    return claim


def is_claim_of(repository: Repository, oid: str, run_id: str) -> bool:
    """Return whether the claim *oid* says that *run_id* of this worktree holds it.

    One that nobody can read is not ours.
    """
    claim = read_claim(repository, oid)
    return claim is not None and claim.run == f"{worktree_key(repository)}/{run_id}"


def release_claim(repository: Repository, issue: str, run_id: str) -> None:
    """Give the claim back if *run_id* of this worktree holds it."""
    give_back(repository, issue, f"{worktree_key(repository)}/{run_id}")


def give_back(repository: Repository, issue: str, holder: str) -> None:
    """Give the claim back if *holder*, `<worktree>/<run>`, has it; never that of a run which has taken it meanwhile.

    Raises:
        UserError: git does not delete it.
    """
    ref = claim_ref(issue)
    oid = repository.refs(ref).get(ref)
    claim = read_claim(repository, oid) if oid is not None else None
    if oid is None or claim is None or claim.run != holder:
        return
    if not repository.delete_ref_at(ref, oid) and repository.refs(ref).get(ref) == oid:
        raise UserError(
            f"The claim on {issue} cannot be given back: git update-ref -d {ref} fails. Is the disk full or read-only, "
            "or has a killed git left a .lock file there?",
            Reason.DISK,
            path=str(repository.common_dir / ref),
            actions=(f"git update-ref -d {ref} {oid}",),
        )


REBASED_FROM: Final = "Rebased-From"
"""The trailer of a commit that was put on another base: which one it was."""


def base_tip(repository: Repository, base: str) -> str | None:
    """Return the commit of a base: of the branch, or where there is none of that name, of a remote's as it is known."""
    found = (repository.resolve(f"refs/{kind}/{base}") for kind in ("heads", "remotes"))
    return next((commit for commit in found if commit is not None), None)


def is_remote(repository: Repository, base: str) -> bool:
    """Return whether a base is a branch of a remote: nothing of ours moves it."""
    return repository.resolve(f"refs/heads/{base}") is None and repository.resolve(f"refs/remotes/{base}") is not None


def push_of(branch: str, base: str) -> str:
    """Return the command that brings a branch onto a remote's; a person types it."""
    remote, _, name = base.partition("/")
    return f"git push {shlex.quote(remote)} {shlex.quote(f'{branch}:{name}')}"


def is_on(repository: Repository, commits: Sequence[str], start: str, tip: str) -> bool:
    """Return whether *tip* has the commits of a run.

    Args:
        repository: From any worktree.
        commits: What the run put on its branch, oldest first.
        start: Where the run began.
        tip: A commit of the base.
    """
    if tip == start:  # nothing has landed on what stands where the run began
        return False
    last = commits[-1]
    if repository.is_ancestor(last, tip):
        return True
    copies = repository.history(f"{start}..{tip}", saying=f"{REBASED_FROM}: {last}")
    return any((REBASED_FROM, last) in repository.trailers(each) for each in copies)


GONE_ON: Final = "gone-on"
"""The file of a run folder that says which machine goes on with the run, once this one has heard of it."""


def note_gone_on(folder: Path, host: str) -> None:
    """Write into the folder of a run that the machine *host* goes on with it."""
    write_atomic(folder / GONE_ON, host.encode())


def gone_on(folder: Path) -> str | None:
    """Return which machine goes on with a run, as far as this one has heard; None where none does."""
    try:
        return visible(read_regular(folder / GONE_ON, 1024).decode("utf-8", "replace")) or "another machine"
    except OSError:
        return None
