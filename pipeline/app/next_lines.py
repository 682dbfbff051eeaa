"""Lists the commands that are safe to type next, by how a run, its branch, its base and its issue stand.

The last of them removes a worktree with its branch: only where nothing else goes with it, since git removes ignored
files of a worktree without a word, and `branch -D` any commit.

It words them for where somebody stands, and finds the run that a command means, in whichever worktree. Where none is
named, and something is changed, there has to be exactly one in this worktree.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.outcomes import COMPLETED, Outcome, Reason
from pipeline.progress import few
from pipeline.run import tracker
from pipeline.run.checkout import has_submodules
from pipeline.run.gates import GateAnswer, begun_again, safe_next_actions
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import load_run
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, find_run, seen_from
from pipeline.run.store import WORKFLOW, Claim, base_tip, claims, gone_on, is_on, is_remote, push_of, run_names, run_ref
from pipeline.run.summary_facts import commits_of
from pipeline.search_path import without_the_repository
from todo import Status, TrackerError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun
    from pipeline.vocabulary import Role

    _Document = TypeVar("_Document", bound=BaseModel)


def landed(repository: Repository, run: Run) -> bool | None:
    """Return whether the base has the commits of a run; None where there is nothing to merge.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
    """
    done = run.state.outcome in COMPLETED  # a failed one commits a note
    commits, base = commits_of(run) if done else (), base_tip(repository, run.info.base_branch)
    if not commits or base is None:
        return None
    if is_on(repository, commits, run.info.start_commit, base):
        return True
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    return None if tip is None or not repository.is_ancestor(commits[-1], tip) else False


def _landing(repository: Repository, run: Run) -> tuple[str, ...]:
    """Return the commands that get the commits of the run onto its base, the run to finish first where there is one.

    The first is `land`, which measures them there; behind it stands why git alone would refuse, where it would. The
    index and the files of the worktree that has the base are looked at, too; where none has it and it has moved, those
    of the run's.
    """
    info = run.info
    if is_remote(repository, info.base_branch):
        return (f"{push_of(info.branch, info.base_branch)}   # redfirst pushes to no forge",)
    first = unfinished_on(repository, info.base_branch)
    if first is not None:
        return (f"redfirst show {first}   # finish it first: it is at work on {info.base_branch}, and publishes there",)
    by_git, why = _by_git(repository, run)
    land = f"redfirst land {info.run_id}   # onto {info.base_branch}, measured there{why and f'; git alone: {why}'}"
    return (land, *by_git)


def unfinished_on(repository: Repository, branch: str) -> str | None:
    """Return what the run is called that has an issue and is to publish to a branch; None where there is none."""
    for claim in claims(repository).values():
        with suppress(UserError, OSError):  # `runs` says what is wrong with it
            if isinstance(claim, Claim) and Run.load(claim.folder, driving=False).info.branch == branch:
                return Roster(repository).spoken(claim.folder)
    return None


def _by_git(repository: Repository, run: Run) -> tuple[tuple[str, ...], str]:
    """Return the command of git that merges the branch of the run into the base as both are now, or why it refuses."""
    info = run.info
    base, tip = f"refs/heads/{info.base_branch}", f"refs/heads/{info.branch}"
    fast = repository.is_ancestor(repository.resolve(base) or base, repository.resolve(tip) or tip)
    places = ((each, repository.at(each)) for each in repository.worktrees())
    place = next((each for each, at in places if at.worktree.is_dir() and at.branch() == info.base_branch), None)
    if place is None and fast:
        both = shlex.quote(f"{info.branch}:{info.base_branch}")
        return (f"git fetch . {both}   # moves {info.base_branch} forward to it",), ""
    parted = repository.merge_base(base, tip)
    if parted is None or not (fast or repository.merges(base, tip)):
        return (), f"conflicts with changes of {info.base_branch}"
    if place is None and repository.status():
        return (), "something is not committed"
    if place is None:
        git = f"git -C {shlex.quote(str(repository.worktree))}"
        switch, branch = f"{git} switch {shlex.quote(info.base_branch)}", shlex.quote(info.branch)
        return (f"{switch} && {git} merge --no-edit {branch}",), ""
    there = repository.at(place)
    touched = [change.path for change in repository.diff(parted, tip)]
    uncommitted = [line[3:] for line in there.status()]
    if _meet(touched, uncommitted) or (there.staged(base) and not fast):
        return (), f"what it writes is not committed in {visible(str(place.path))}"
    how = "--ff-only" if fast else "--no-edit"
    return (f"git -C {shlex.quote(str(place.path))} merge {how} {shlex.quote(info.branch)}",), ""


def _meet(touched: Iterable[str], uncommitted: Iterable[str]) -> bool:
    """Return whether a path of the one lies at, above or below one of the other."""
    ours, theirs = [f"{path}/" for path in touched], [f"{path.rstrip('/')}/" for path in uncommitted]
    return any(one.startswith(other) or other.startswith(one) for one in ours for other in theirs)


_SHOWN: Final = 5


def removal(repository: Repository, run: Run, *, has_landed: bool) -> tuple[str, ...]:
    """Return the command that removes the worktree and the branch of a run that was rejected, abandoned, or has landed.

    There is none where git would refuse, or something be lost.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
        has_landed: Whether its base has its commits.
    """
    is_linked = repository.git_dir != repository.common_dir
    is_over = has_landed or run.state.reason is Reason.ABANDONED or run.state.outcome is Outcome.REJECTED
    if not (is_linked and is_over) or any(_in_the_way(repository, run)):
        return ()
    main = f"git -C {shlex.quote(str(repository.main_checkout))}"
    ref = run_ref(repository, run.info.run_id)
    place, branch = shlex.quote(str(repository.worktree)), shlex.quote(run.info.branch)
    return (f"{main} worktree remove {place} && {main} branch -D {branch}   # its record stays in {ref}",)


def what_stays(repository: Repository, run: Run) -> str | None:
    """Return, in words, what keeps the worktree and the branch of an abandoned run; None where nothing does."""
    reasons = list(_in_the_way(repository, run)) if repository.git_dir != repository.common_dir else []
    return f"the worktree {repository.worktree} and its branch stay: {'; '.join(reasons)}" if reasons else None


def _in_the_way(repository: Repository, run: Run) -> Iterator[str]:
    info, stands_on = run.info, repository.branch()
    tip = repository.resolve(f"refs/heads/{info.branch}")
    if stands_on != info.branch or tip is None:
        yield f"it stands on {stands_on or 'no branch'}, not on {info.branch}"
        return
    base = repository.resolve(info.base_branch)
    if base is None or not repository.is_ancestor(tip, base):
        yield f"{info.branch} has commits that {info.base_branch} does not have"
    place = repository.worktree.resolve()
    if any(each.path == place and each.locked is not None for each in repository.worktrees()):
        yield "it is locked"
    if has_submodules(repository, tip):
        yield "it has submodules"
    others = [name for name in run_names(repository) if name != info.run_id]
    if others:
        yield f"records of {', '.join(others)}"
    files = sorted(repository.unsaved_files() - {f"{WORKFLOW}/"})
    if files:
        yield f"not committed: {few(files, _SHOWN)}"


def next_lines(
    repository: Repository,
    run: Run,
    has_landed: bool | None,
    *,
    live: bool = False,
    desks: Iterable[Role] = (),
    handed_in: bool = False,
) -> tuple[str, ...]:
    """Return the commands, as they work in the worktree of the run.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
        has_landed: Whether its base has its commits (`landed`).
        live: A process drives it.
        desks: The roles that a person plays, and at whose desks something is asked.
        handed_in: Whether at such a desk the answer lies already.
    """
    found = safe_next_actions(run, live=live, desks=desks)
    if handed_in:
        resume = f"redfirst resume {run.info.run_id}"
        found = tuple(f"{action}   # takes what is handed in" if action == resume else action for action in found)
    if run.state.reason is Reason.ABANDONED and _is_done(repository, run):  # a person has put its result there
        info = run.info
        log = f"git log --stat {info.start_commit[:12]}..{shlex.quote(info.branch)}"
        found = tuple(log if action == begun_again(run) else action for action in found)
    if not live and gone_on(run.folder) is not None:
        found = ("redfirst fleet runs", f"redfirst fleet take {run.info.run_id}   # brings it here, as it stands there")
    landing = _landing(repository, run) if has_landed is False else ()
    return (*found, *landing, *removal(repository, run, has_landed=has_landed is True))


def _is_done(repository: Repository, run: Run) -> bool:
    """Return whether the issue is Done, on the branch or in the files of the worktree."""
    tip = repository.resolve(f"refs/heads/{run.info.branch}")
    committed = () if tip is None else (tracker.in_tree(repository, repository.tree_of(tip)),)
    for issues in (*committed, tracker.in_worktree(repository.worktree)):
        try:
            if issues.read(run.issue).status is Status.DONE:
                return True
        except TrackerError:
            continue
    return False


_ANYWHERE: Final = frozenset(
    {
        *("runs", "show", "explain", "diff", "resume", "approve", "reject", "answer", "stop", "abandon", "land"),
        *("hand-in", "desk", "agents", "routes", "schema", "--help"),
    }
)
"""The commands that name a run, or mean no worktree."""
_WITHIN_TEXT: Final = re.compile(r"\b(?:git (?=cherry-pick|switch|stash|log|status)|redfirst (?=issue|verify))")
"""Where a command begins, within a sentence, that means the worktree in which it is typed."""


def located(here: Repository, name: str) -> tuple[Repository, Path]:
    """Return the run called *name*: the repository as seen from the worktree that keeps it, and its folder.

    Programs are looked up for it as if somebody stood there.

    Raises:
        UserError: there is no such run, or more than one.
    """
    folder = find_run(here, name)
    repository = seen_from(here, folder)
    if repository is not here and "PATH" in os.environ:
        os.environ["PATH"] = without_the_repository(os.environ["PATH"], repository.worktree)
    return repository, folder


def as_typed(actions: Iterable[str], here: Repository, worktree: Path, run: str = "") -> tuple[str, ...]:
    """Return commands as they work where somebody stands.

    Args:
        actions: As they work in the worktree.
        here: The repository as seen from where somebody stands.
        worktree: What keeps the run.
        run: The name of its folder, once it has one.
    """
    spoken = Roster(here).spoken(worktree / WORKFLOW / run)
    named = [_with_name(action, run, spoken) for action in actions] if run else list(actions)
    if worktree.resolve() != here.worktree.resolve():
        named = [_from_elsewhere(action, shlex.quote(str(worktree))) for action in named]
    standing = f" -C {shlex.quote(str(here.worktree))} "  # nobody has to be told where they stand
    return tuple(each.replace(standing, " ") for each in named)


def texts_as_typed(texts: Sequence[str], here: Repository, worktree: Path, run: str = "") -> tuple[str, ...]:
    """Return texts with the commands in them as they work where somebody stands."""
    if not any(texts):
        return tuple(texts)
    spoken = Roster(here).spoken(worktree / WORKFLOW / run)
    named = [_with_name(text, run, spoken) for text in texts] if run else list(texts)
    if worktree.resolve() == here.worktree.resolve():
        return tuple(named)
    there = shlex.quote(str(worktree))
    return tuple(
        _WITHIN_TEXT.sub(
            lambda found: f"git -C {there} " if found[0].startswith("git") else f"cd {there} && {found[0]}", text
        )
        for text in named
    )


def document_as_typed(document: _Document, here: Repository, worktree: Path, run: str) -> _Document:
    """Return a document with its commands, those in its note too, as they work where somebody stands."""

    def gate_as_typed(gate: Any) -> Any:
        return gate and replace(gate, answers=answers_as_typed(gate.answers, here, worktree, run))

    ways: dict[str, Callable[[Any], Any]] = {
        "safe_next_actions": lambda actions: as_typed(actions, here, worktree, run),
        "note": lambda note: texts_as_typed((note,), here, worktree, run)[0],
        "answers": lambda answers: answers_as_typed(answers, here, worktree, run),
        "at_gate": gate_as_typed,
        "gates": lambda gates: tuple(map(gate_as_typed, gates)),
    }
    there = ways.keys() & type(document).model_fields.keys()
    return document.model_copy(update={name: ways[name](getattr(document, name)) for name in there})


def answers_as_typed(
    answers: Sequence[GateAnswer], here: Repository, worktree: Path, run: str
) -> tuple[GateAnswer, ...]:
    """Return the answers of a gate as they work where somebody stands."""
    commands = as_typed((one.command for one in answers), here, worktree, run)
    return tuple(replace(one, command=command) for one, command in zip(answers, commands, strict=True))


@contextmanager
def advice_as_typed(here: Repository, worktree: Path, run: str = "") -> Generator[None]:
    """Let the commands of an error, and those in its message, be those that work where somebody stands."""
    try:
        yield
    except UserError as error:
        if not worktree.is_dir():  # one that was made for a run which was then refused: nothing can be typed there
            raise
        for each in (error, *error.also):
            each.actions = as_typed(each.actions, here, worktree, run)
            (each.message,) = texts_as_typed((each.message,), here, worktree, run)
        raise


def _with_name(action: str, name: str, spoken: str) -> str:
    return action if name == spoken else re.sub(rf"(?<=\s){re.escape(name)}(?=[\s,;:]|\.?\Z)", lambda _: spoken, action)


def _from_elsewhere(action: str, there: str) -> str:
    program, _, rest = action.partition(" ")
    if program == "git" and not rest.startswith("-C "):
        return f"git -C {there} {rest}"
    if program == "redfirst" and rest.partition(" ")[0] not in _ANYWHERE:
        return f"cd {there} && {action}"
    return action


_CAN_GO_ON: Final = frozenset({Outcome.PARKED, Outcome.CANCELLED, Outcome.PARTIAL})


def _unfinished(run: AnyRun) -> bool:
    state = run.state
    if state.outcome is None:
        return not FileLease.is_held(run.folder)
    return state.outcome in _CAN_GO_ON and state.reason is not Reason.ABANDONED


def _at_a_gate(run: AnyRun) -> bool:
    return run.state.outcome is Outcome.PARKED and run.state.reason is Reason.APPROVAL


_MEANT: Final[Mapping[str, tuple[Callable[[AnyRun], bool], str]]] = {
    "resume": (_unfinished, "can go on"),
    "approve": (_at_a_gate, "waits at an approval point"),
    "reject": (_at_a_gate, "waits at an approval point"),
    "abandon": (_unfinished, "is unfinished"),
    "stop": (lambda run: FileLease.is_held(run.folder), "is driven now"),
}


def meant_by(command: str, repository: Repository, rest: Sequence[str] = ()) -> tuple[str, str]:
    """Return the only run of this worktree that a command could mean, and why it is the one.

    Args:
        command: What would change it: resume, approve, reject, abandon, stop.
        repository: Seen from the worktree.
        rest: What else was typed, for the command that names the run.

    Raises:
        UserError: there is none, or more than one; a run of another worktree is only named, never taken.
    """
    fits, words = _MEANT[command]
    found = [name for name in run_names(repository) if _fits(repository.worktree / WORKFLOW / name, fits)]
    if len(found) == 1:
        return found[0], f"the only run here that {words}"
    if not found:
        raise _none_here(command, repository, rest)
    raise UserError(
        f"More than one run of this worktree {words}: {', '.join(found)}. Name the one that is meant.",
        Reason.USAGE,
        details={"runs": found},
        actions=tuple(_named(command, name, rest) for name in found),
    )


def _none_here(command: str, repository: Repository, rest: Sequence[str]) -> UserError:
    """Return the refusal where no run of this worktree fits, which names those of the others that do."""
    fits, words = _MEANT[command]
    roster = Roster(repository)
    elsewhere = [place for place in roster.runs if place.worktree.path != roster.here and _fits(place.folder, fits)]
    names = [roster.spoken(place.folder) for place in elsewhere]
    there = "; ".join(f"{name} in {place.worktree.path}" for name, place in zip(names, elsewhere, strict=True))
    driven = [] if names else [roster.spoken(place.folder) for place in roster.runs if FileLease.is_held(place.folder)]
    further = f". In another one: {there}." if names else ", and none of another one."
    if driven:
        further = (
            f" and at rest. Driven now: {', '.join(driven)}. Watch it, or end it with Ctrl-C where it was started."
        )
    return UserError(
        f"No run of this worktree {words}{further}",
        Reason.USAGE,
        details={"runs": names},
        actions=(
            *(_named(command, name, rest) for name in names),
            *(f"redfirst show {name} --log --follow" for name in driven),
        )
        or ("redfirst runs",),
    )


def _named(command: str, name: str, rest: Sequence[str]) -> str:
    return shlex.join(["redfirst", command, name, *rest])


def _fits(folder: Path, fits: Callable[[AnyRun], bool]) -> bool:
    try:
        return fits(load_run(folder, driving=False))
    except UserError:  # a damaged run is named by who means it
        return False
