"""The private folder of one measurement with pytest: our plugin, what it is asked, what it answers, its caches."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.toolchains.protocol import Cache, Environment, Selection, View
from pipeline.toolchains.pytest.bytecode import Place, lay_out
from pipeline.toolchains.pytest.records import Finished, Item, Session, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.process import Completed

PLUGIN: Final = "redfirst_evidence"
"""The name under which the plugin is loaded."""
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
    """The private folder of one measurement: plugin, request, records, caches. Never inside the view."""

    plugin: Path
    shared: Path

    @classmethod
    def under(cls, place: Path) -> Scratch:
        """Lay the folder out; the box may run as another user, and the parent is closed to everybody else."""
        plugin, shared = place / "plugin", place / "shared"
        plugin.mkdir()
        for folder in (shared, shared / "temproot"):
            folder.mkdir()
            folder.chmod(0o777)
        # a copy in a folder of its own: beside it, this module would be importable as `pytest`
        shutil.copyfile(Path(__file__).with_name("plugin.py"), plugin / f"{PLUGIN}.py")
        return cls(plugin, shared)

    def bytecode(self, nonce: str, cache: Cache | None, folders: Sequence[Place], *, first: bool) -> Path:
        """Return the `PYTHONPYCACHEPREFIX` of a process: the shared cache for the one that fills it, else a new folder.

        New for each process, for the tests can write there: what one has left behind, the next would load.
        """
        if cache is not None and cache.warm and first:
            return cache.folder
        prefix = self.shared / f"pycache-{nonce}"
        prefix.mkdir()
        prefix.chmod(0o777)
        if cache is not None and not cache.warm:  # what is being filled is not sorted out yet
            lay_out(cache.folder, folders, prefix)
        return prefix

    def ask(self, request: dict[str, object], nonce: str, view: View) -> None:
        """Write the request for the next process and an empty file for its records."""
        records = self.shared / "records.jsonl"
        records.write_bytes(b"")
        records.chmod(0o666)
        redact = {str(self.shared): "<scratch>", str(view.host): "."}
        asked = {**request, "nonce": nonce, "records": str(records), "redact": redact}
        (self.shared / "request.json").write_text(json.dumps(asked), encoding="utf-8")

    def answer(self, nonce: str, completed: Completed) -> Session:
        """Return the records that the process left."""
        data = (self.shared / "records.jsonl").read_bytes()
        return read_session(data, nonce, exit_code=completed.exit_code, timed_out=completed.timed_out)


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
        Place(view.workspace, view.host),
        *(Place(root.path, view.host / root.relative) for root in env.editable_roots),
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
