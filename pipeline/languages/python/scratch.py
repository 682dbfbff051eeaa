"""The private folder of one measurement with pytest: our plugin, what it is asked, what it answers, its caches."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.boxes.box_folder import BoxFolder
from pipeline.languages.protocol import Cache, Environment, Selection, View
from pipeline.languages.python.bytecode import Place, lay_out
from pipeline.languages.python.messages import Finished, Item, Session, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.process import Completed

PLUGIN: Final = "redfirst_evidence"
"""The name under which the plugin is loaded."""
COMPILED: Final = "pycache"
TEMPORARY: Final = "temproot"
"""What there is in the folder of a process before it starts."""
_START: Final = "start.py"
_CALMING: Final[Mapping[str, tuple[str, ...]]] = {
    "xdist": ("-n", "0"),
    "pytest_cov": ("--no-cov",),
    "randomly": ("--randomly-dont-reorganize", "--randomly-seed=1"),
    "random_order": ("--random-order-bucket=none",),
    "rerunfailures": ("--reruns=0",),
}
"""Plugins that split, reorder or repeat a run, and the options against it. An option is given only where it is known:
`-p no:xdist` among a project's own makes an error of `-n`."""


@dataclass(frozen=True)
class Scratch:
    """The private place of one measurement: our program, and for each process a folder that its tests may fill."""

    place: Path
    program: Path

    @classmethod
    def under(cls, place: Path) -> Scratch:
        """Lay our program out; nobody writes there."""
        program = place / "program"
        program.mkdir()
        # in a folder of their own: what lies beside the plugin in the package would be importable, too
        here = Path(__file__)
        shutil.copytree(here.with_name("plugin"), program / PLUGIN, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(here.with_name(_START), program / _START)
        return cls(place, program)

    @property
    def start(self) -> Path:
        """Return the program that starts pytest."""
        return self.program / _START

    def folder(self, number: int, cache: Cache | None, folders: Sequence[Place]) -> BoxFolder:
        """Return a new folder for a process, with the compiled code that it may use.

        New for each process, for the tests can write there: what one has left behind, the next would load.
        """
        made = BoxFolder.made(self.place, f"process-{number}")
        made.add(TEMPORARY)
        compiled = made.add(COMPILED)
        if cache is not None and not cache.warm:  # what is being filled is not sorted out yet
            lay_out(cache.folder, folders, compiled)
        return made


def asked_of(request: Mapping[str, object], nonce: str, folder: BoxFolder, view: View) -> bytes:
    """Return the request for one process."""
    redact = {str(folder.path): "<scratch>", str(view.host): "."}
    return json.dumps({**request, "nonce": nonce, "redact": redact}).encode()


def answer(completed: Completed, nonce: str) -> Session:
    """Return the records that a process left."""
    data, fault = completed.answer.data, completed.answer.fault
    return read_session(data, nonce, exit_code=completed.exit_code, timed_out=completed.timed_out, fault=fault)


def request(
    view: View,
    env: Environment,
    selection: Selection | None,
    *,
    isolated: bool,
    trace: bool,
    limit: float | None,
    done: set[str],
) -> dict[str, object]:
    """Return what the plugin is asked, but for what belongs to one process.

    Args:
        view: The files to measure.
        env: Where editable installs point to.
        selection: Which of the collected tests to run.
        isolated: Whether the box shows mounts at their targets.
        trace: Whether to note what the tests enter.
        limit: Seconds for each test.
        done: Ids that another process has run already.
    """
    chosen = selection or Selection()
    return {
        "roots": [
            (str(view.workspace), ""),
            *((str(root.path), _below(root.relative)) for root in env.editable_roots if isolated),
        ],
        "checkouts": [] if isolated else [str(root.path) for root in env.editable_roots],
        "ids": None if chosen.ids is None else sorted(chosen.ids),
        "files": None if chosen.files is None else sorted(chosen.files),
        "done": sorted(done),
        "trace": trace,
        "per_test_s": limit,
        "calming": [flags for plugin, flags in _CALMING.items() if plugin in env.plugins],
    }


def places(view: View, env: Environment) -> tuple[Place, ...]:
    """Return where the project's own sources are seen. Our plugin is none of them: it is compiled for each process.

    What the cache holds comes from a run in which tests could write there, and the plugin is not for them to replace.
    """
    return (
        Place(view.workspace, view.files),
        *(Place(root.path, view.files.below(root.relative)) for root in env.editable_roots),
    )


def seconds_by_file(sessions: Sequence[Session]) -> dict[str, float]:
    """Return how long the tests of each file took, in seconds; no evidence, since it differs from run to run."""
    everything = [record for session in sessions for record in session.records]
    paths = {record.id: record.path for record in everything if isinstance(record, Item)}
    taken: dict[str, float] = {}
    for record in everything:
        if isinstance(record, Finished) and record.id in paths:
            taken[paths[record.id]] = taken.get(paths[record.id], 0.0) + record.seconds
    return taken


def _below(relative: str) -> str:
    return "" if relative == "." else relative
