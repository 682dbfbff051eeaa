"""Reads what the hub of a fleet has: the claims of runs, how a run stood last, the branches where runs begin."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.app.run_list import RunIndex, RunLine, aged, has_ended, line_at
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import NO_OBJECT, RefMove, Repository, UnreachableError
from pipeline.run.hub import CHECKPOINT_REFS, KEPT_REFS, ORDER_REFS
from pipeline.run.runs_of_repository import RUNNING, Roster
from pipeline.run.store import Claim, claim_ref, key_of_run, read_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


HEADS: Final = "refs/heads/"


class HubClaim(Claim):
    """A claim as the hub has it, and the last checkpoint of its run, if there is one; that is not fetched by this."""

    checkpoint: str | None = None


@dataclass(frozen=True)
class HubView:
    """What the hub has.

    Attributes:
        claims: On issues, by issue.
        let_go: The last ones of runs that hold no issue any more, by order, of the orders that were asked for.
        heads: The branches, and the commit of each.
    """

    claims: Mapping[str, HubClaim]
    let_go: Mapping[str, HubClaim]
    heads: Mapping[str, str]


def view_hub(repository: Repository, url: str, orders: Collection[str] = ()) -> HubView:
    """Return what the hub has; claims that no run has written are left out, and what is here is not fetched again.

    Args:
        repository: Seen from anywhere.
        url: Where the hub is.
        orders: Of which orders runs are asked for that hold no issue any more.

    Raises:
        UserError: it is out of reach.
    """
    held = claim_ref("")
    patterns = (f"{held}*", f"{CHECKPOINT_REFS}*", f"{ORDER_REFS}*", f"{HEADS}*")
    asked = {f"{ORDER_REFS}{order}" for order in orders}

    def is_claim(ref: str) -> bool:
        return ref.startswith(held) or ref in asked

    refs = refs_of_hub(repository, url, *patterns, brings=is_claim)
    claims: dict[str, HubClaim] = {}
    for ref, oid in refs.items():
        if is_claim(ref) and (claim := read_claim(repository, oid)) is not None:
            claims[ref] = HubClaim(**dict(claim), checkpoint=refs.get(f"{CHECKPOINT_REFS}{claim.run}"))

    def below(folder: str, found: Mapping[str, HubClaim]) -> dict[str, HubClaim]:
        return {ref.removeprefix(folder): one for ref, one in found.items() if ref.startswith(folder)}

    heads = {ref.removeprefix(HEADS): oid for ref, oid in refs.items() if ref.startswith(HEADS)}
    return HubView(below(held, claims), below(ORDER_REFS, claims), heads)


@dataclass(frozen=True)
class Elsewhere:
    """A run that is not here as it stands: its line as its last checkpoint has it, and the machine that wrote that."""

    line: RunLine
    host: str


def runs_elsewhere(repository: Repository, url: str) -> Iterator[Elsewhere]:
    """Yield the runs of other machines; each checkpoint of a run that has ended is read once.

    Raises:
        UserError: the hub is out of reach.
    """
    refs = refs_of_hub(repository, url, f"{claim_ref('')}*", f"{CHECKPOINT_REFS}*")
    pushed = {ref.removeprefix(KEPT_REFS): oid for ref, oid in repository.refs(KEPT_REFS).items()}
    here = {key_of_run(run.folder) for run in Roster(repository).runs}
    claims = {claim.run: claim for oid in refs.values() if (claim := read_claim(repository, oid)) is not None}
    index = RunIndex(repository.common_dir / "hub")
    keys = {ref.removeprefix(CHECKPOINT_REFS): oid for ref, oid in refs.items() if ref.startswith(CHECKPOINT_REFS)}
    for key, oid in keys.items():
        if key in here and pushed.get(key, oid) == oid:
            continue
        line = index.line(key, [oid]) or line_at(repository, key, oid)
        if line is None:
            continue
        index.add(key, [oid], line)
        claim = claims.get(key)
        live = claim is not None and claim.state == "driving"
        status = RUNNING if live else "queued" if line.queued else line.status
        yield Elsewhere(aged(replace(line, live=live, status=status), datetime.now(UTC)), claim.host if claim else "")
    index.keep(keys)


def is_ahead(repository: Repository, url: str, folder: Path) -> bool:
    """Return whether the hub has another checkpoint of a run than the one that was pushed from here.

    Raises:
        UserError: it is out of reach.
    """
    ref = f"{CHECKPOINT_REFS}{key_of_run(folder)}"
    there = refs_of_hub(repository, url, ref, brings=lambda _: False).get(ref)
    return there not in {None, repository.resolve(ref.replace(CHECKPOINT_REFS, KEPT_REFS)) or there}


def line_of_claim(repository: Repository, url: str, claim: HubClaim) -> RunLine | None:
    """Return the line of a run as its last checkpoint has it; None where that cannot be read.

    Raises:
        UserError: the hub is out of reach.
    """
    if claim.checkpoint is None:
        return None
    if not _has(repository, claim.checkpoint):
        bring(repository, url, [f"{CHECKPOINT_REFS}{claim.run}"])
    return line_at(repository, claim.run, claim.checkpoint)


def old_checkpoints(
    repository: Repository, url: str, until: datetime
) -> Iterator[tuple[str, str, Callable[[], str] | None]]:
    """Yield what the hub keeps of runs that hold no issue: its ref, why it may go or stays, and what removes it.

    Args:
        repository: Seen from anywhere.
        url: Where the hub is.
        until: What a run said after this moment stays.

    Raises:
        UserError: the hub is out of reach.
    """
    held = claim_ref("")
    refs = refs_of_hub(repository, url, f"{held}*", f"{CHECKPOINT_REFS}*", f"{ORDER_REFS}*")
    claims = {ref: read_claim(repository, oid) for ref, oid in refs.items() if not ref.startswith(CHECKPOINT_REFS)}
    driven = {one.run for ref, one in claims.items() if one is not None and ref.startswith(held)}
    for ref, oid in refs.items():
        key = ref.removeprefix(CHECKPOINT_REFS)
        if key == ref or key in driven:
            continue
        line = line_at(repository, key, oid)
        if line is None or not has_ended(line):
            yield ref, "it cannot be read" if line is None else f"{line.name} can go on", None
        elif datetime.fromisoformat(line.last_at or "").astimezone(UTC) > until:
            yield ref, f"{line.name} has ended a short while ago (--older-than)", None
        else:
            orders = [each for each, one in claims.items() if one is not None and one.run == key]
            moves = [RefMove(each, NO_OBJECT, refs[each]) for each in (ref, *orders)]
            yield ref, f"{line.name} has ended, and no machine goes on with it", partial(_drop, repository, url, moves)


def _drop(repository: Repository, url: str, moves: Sequence[RefMove]) -> str:
    with _reaching(url):
        return "; ".join(repository.push_all(url, moves).values())


# --- where runs begin ------------------------------------------------------------------------------------------------


def newer_base(repository: Repository, url: str, base: str, oid: str | None) -> str | None:
    """Return the commit of the hub's branch where the one here is behind it, or missing: then it is made. Else None.

    Args:
        repository: Seen from anywhere.
        url: Where the hub is.
        base: The name of the branch.
        oid: The commit that it has at the hub; None where the hub has no such branch.

    Raises:
        UserError: the hub is out of reach.
    """
    ref = f"{HEADS}{base}"
    here = repository.resolve(ref)
    if oid is None or here == oid:
        return None
    if not _has(repository, oid):
        bring(repository, url, [ref])
    if here is None:
        repository.set_ref(ref, oid, NO_OBJECT)
        return oid
    return oid if repository.is_ancestor(here, oid) else None


def look_up_base(repository: Repository, url: str, base: str) -> str | None:
    """Return the same of a branch as it is at the hub now.

    Raises:
        UserError: the hub is out of reach.
    """
    ref = f"{HEADS}{base}"
    return newer_base(repository, url, base, refs_of_hub(repository, url, ref, brings=lambda _: False).get(ref))


def share_branch(repository: Repository, url: str, name: str) -> str:
    """Push a new branch to the hub, so that each machine can begin there; return why it cannot, "" where it is there.

    Whoever has pushed another branch of that name keeps it.
    """
    ref = f"{HEADS}{name}"
    try:
        refused = repository.push_all(url, [RefMove(ref, repository.resolve(ref) or "", NO_OBJECT)])
    except UnreachableError as error:
        return f"it is out of reach ({error.first_line})"
    return refused.get(ref, "")


def probe_hub(repository: Repository, url: str) -> None:
    """Make a ref at the hub and remove it, as a run would push.

    Raises:
        UserError: the hub is out of reach, or does not take it.
    """
    ref, blob = f"refs/redfirst/probe/{secrets.token_hex(6)}", repository.write_blob(b"redfirst fleet doctor\n")
    for move in (RefMove(ref, blob, NO_OBJECT), RefMove(ref, NO_OBJECT, blob)):
        with _reaching(url):
            refused = repository.push_all(url, [move])
        if refused:
            message = f"The hub {url} refuses what this machine pushes: {refused.get(ref, '')}"
            raise UserError(message, Reason.HUB_UNAVAILABLE)


def _has(repository: Repository, oid: str) -> bool:
    return repository.resolve(f"{oid}^{{object}}") is not None


# --- reaching it -----------------------------------------------------------------------------------------------------


def refs_of_hub(
    repository: Repository, url: str, *patterns: str, brings: Callable[[str], bool] = lambda _: True
) -> dict[str, str]:
    """Return refs of the hub; what they point at is here then, of those that it is to *bring*.

    Raises:
        UserError: it is out of reach.
    """
    with _reaching(url):
        refs = repository.remote_refs(url, *patterns)
    while missing := [ref for ref, oid in refs.items() if brings(ref) and not _has(repository, oid)]:
        try:
            bring(repository, url, missing)
            break
        except UserError:
            before = refs
            with _reaching(url):
                refs = repository.remote_refs(url, *patterns)
            if refs == before:  # else one of them went in between
                raise
    return refs


def bring(repository: Repository, url: str, refs: Iterable[str]) -> None:
    """Fetch what refs of the hub point at.

    Raises:
        UserError: it is out of reach.
    """
    with _reaching(url):
        repository.fetch_from(url, refs)


@contextmanager
def _reaching(url: str) -> Generator[None]:
    try:
        yield
    except UnreachableError as error:
        raise UserError(f"The hub {url} is out of reach: {error.first_line}", Reason.HUB_UNAVAILABLE) from error
