"""Keeps the one ref of a run: a tree whose entries are the run's trees, at the end its folder too.

It keeps the objects alive, stays out of `git log --all`, can be pushed as one thing, and is what `verify` reads.
"""

from __future__ import annotations

import socket
import stat
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL
from pipeline.outcomes import Reason
from pipeline.repo import NO_OBJECT, Entry, Repository, TreeChange
from pipeline.run.activity_file import NOW
from pipeline.run.lease import refuse_other_driver
from pipeline.run.records import ARTIFACT_LIMIT, walk
from pipeline.run.run import Run
from pipeline.run.store import GONE_ON, claim_ref, publish_ref, release_claim, run_ref
from pipeline.run.summary_facts import work_tree
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.run.spending import AnyRun

HERE_ALONE: Final = frozenset({"lock", NOW, GONE_ON})
"""The files of a run folder that only this machine needs; they are kept nowhere else."""
RUN_FOLDER: Final = "run"
"""The name of the run's folder in the tree."""
_NEEDED: Final = frozenset({JOURNAL, "run.json", "result.json"})
_TRIES: Final = 3


def trees_of(run: AnyRun) -> dict[str, str]:
    """Return the trees that the run's state names, by the names that they have in the ref."""
    if not isinstance(run, Run):
        return _trees_of_steps(run)
    state = run.state
    found = {"start": state.start, "head": state.head, "previous-work": state.previous_work}
    for task in state.tasks.values():
        own = {
            "start": task.start,
            "stubs": task.stubs,
            "tests": task.tests,
            "red": task.red,
            "candidate": task.candidate,
        }
        found |= {f"task-{task.id}-{name}": tree for name, tree in own.items()}
    found |= {f"step-{one.step}-{number}": one.tree for number, one in enumerate(state.written, 1)}
    found |= {"work": work} if (work := work_tree(run)) not in found.values() else {}
    return {name: tree for name, tree in found.items() if tree}


def _trees_of_steps(run: AnyRun) -> dict[str, str]:
    """Return where a recipe's run started, and what its writers left."""
    at_work = {name: lane.tree for name, lane in run.state.lanes.items() if lane.tree is not None}
    trees = {f"step-{name}": tree for name, tree in {**run.state.trees, **at_work}.items()}
    change = run.info.change
    trees |= {} if change is None else {"change-before": change.before, "change-after": change.after}
    return {"start": run.info.start_tree, **trees}


def keep(repository: Repository, run: AnyRun, *, whole: bool = False) -> None:
    """Point the run's ref at its trees; with *whole* at its folder too (secrets never enter it: transcripts are logs).

    Args:
        repository: The repository of the run.
        run: The run.
        whole: Include the run folder; done once, at the end.
    """
    tree = whole_tree(repository, run) if whole else repository.make_tree(trees_of(run))
    _point(repository, run, run_ref(repository, run.info.run_id), tree)


def keep_publication(repository: Repository, run: AnyRun, commit: str) -> None:
    """Keep the commits of a publication that is under way, up to *commit*."""
    _point(repository, run, publish_ref(repository, run.info.run_id), commit)


def drop_publication(repository: Repository, run: AnyRun) -> None:
    """Keep them no longer: they are on the branch, or given up."""
    ref = publish_ref(repository, run.info.run_id)
    repository.delete_ref(ref)  # whatever it points at: its name is ours alone
    run.written.ref(ref, "")


def give_back_claim(repository: Repository, run: Run) -> None:
    """Release the issue, if the run holds it."""
    release_claim(repository, run.issue, run.info.run_id)
    run.written.ref(claim_ref(run.issue), "")


def _point(repository: Repository, run: AnyRun, ref: str, oid: str) -> None:
    """Move a ref of the run from where it points now.

    Raises:
        UserError: it is not to be moved: a lock that a killed git left, a ref below it, a disk that takes nothing; or
            another process took the run over.
    """
    refuse_other_driver(run.folder)
    for _ in range(_TRIES):
        old = repository.refs(ref).get(ref, NO_OBJECT)
        if old == oid or repository.set_ref(ref, oid, old):
            run.written.ref(ref, oid)
            return
    raise UserError(
        f"The ref {ref} keeps what the run has made, and git does not move it. Is the disk full or read-only, has a "
        "killed git left a .lock file there, or does another ref begin with its name?",
        Reason.DISK,
        path=str(repository.common_dir / ref),
    )


def whole_tree(repository: Repository, run: AnyRun, largest: int = ARTIFACT_LIMIT) -> str:
    """Return a tree of the run's trees, and of its folder but for what only this machine needs.

    A file of more bytes than *largest* that no driver needs stays here, and a line in its place says so.
    """
    oids = repository.write_files(_files(run, largest))
    changes = [TreeChange(path, Entry(path, "100644", oid)) for path, oid in oids.items()]
    return repository.build_tree(repository.make_tree(trees_of(run)), changes)


def _files(run: AnyRun, largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield what a run folder holds; each file is opened by its folder, so that no link leads out (ADR-R95)."""
    for parent, path, status in walk(run.folder):
        name = path.rpartition("/")[2]
        if not stat.S_ISREG(status.st_mode) or path in HERE_ALONE:
            continue
        if status.st_size > largest and name not in _NEEDED:
            content = f"{status.st_size} bytes, kept on {socket.gethostname()}\n".encode()
        else:
            try:
                content = read_regular(name, ARTIFACT_LIMIT, parent)
            except FileNotFoundError:  # an agent of another lane is at work
                continue
        yield f"{RUN_FOLDER}/{path}", content
