"""The one ref of a run: a tree whose entries are the run's trees, at the end its folder too (architecture 8).

It keeps the objects alive, stays out of `git log --all`, can be pushed as one thing, and is what `verify` reads.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from pipeline.git import Entry, TreeChange
from pipeline.runs.records import walk
from pipeline.runs.store import run_ref

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.runs.run import Run


def trees_of(run: Run) -> dict[str, str]:
    """Return the trees that the run's state names, by the names that they have in the ref."""
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
    return {name: tree for name, tree in found.items() if tree}


def keep(repository: Repository, run: Run, *, whole: bool = False) -> None:
    """Point the run's ref at its trees; with *whole* at its folder too (secrets never enter it: transcripts are logs).

    Args:
        repository: The repository of the run.
        run: The run.
        whole: Include the run folder; done once, at the end.
    """
    tree = repository.make_tree(trees_of(run))
    if whole:
        names = [path for _, path, status in walk(run.folder) if stat.S_ISREG(status.st_mode) and path != "lock"]
        places = [f"run/{name}" for name in names]
        oids = repository.write_files(run.folder, names)
        changes = [TreeChange(p, Entry(p, "100644", oid)) for p, oid in zip(places, oids, strict=True)]
        tree = repository.build_tree(tree, changes)
    repository.set_ref(run_ref(repository, run.info.run_id), tree)
