"""What one dispatch costs over the plain execution of the same command: view, box, gate and apply, by box and view.

Generated repositories of 1k, 10k and 50k files; the command edits three of them; each dispatch begins at the tree that
the one before it ended with, as in a run. Each round takes every kind of view and one plain execution in turn, so that
a busy machine slows all of them. Figures are medians in milliseconds, the spread is that of the whole; `first` is a
driver's first dispatch, which makes the copy that the following ones move from tree to tree.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from pipeline.agents.dispatch.gate import Policy, inspect
from pipeline.judge.policy.rights import Action, Grant
from pipeline.judge.policy.roles import Writes
from pipeline.process import Command
from pipeline.repo import Entry, Repository, TreeChange
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.folder import Written
from pipeline.sandbox.boxes.box import try_boxes
from pipeline.sandbox.escapes import Fingerprint
from pipeline.sandbox.views.views import Views

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pipeline.sandbox.boxes.box import ProvableBox

RUN = "run-B-1"
PARTS = ("open", "fingerprint", "box", "gate", "apply", "close")
EDITED = 3
SIZES = (1_000, 10_000, 50_000)
CHANGES = (1, 10, 100, 1_000)

Figures = dict[str, float]


def name(number: int) -> str:
    return f"pkg{number // 400}/part{number // 20 % 20}/module{number}.py"


def edited(count: int, files: int) -> list[str]:
    """Return so many of the files, spread over the repository."""
    return [name(number * (files // count)) for number in range(count)]


def make_repository(folder: Path, files: int) -> Repository:
    """Return a repository of one commit; its objects are imported, since nothing here needs the user's worktree."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    head = b"commit refs/heads/main\ncommitter bench <bench@localhost> 946684800 +0000\ndata 5\nstart\n"
    with tempfile.TemporaryFile() as stream:
        stream.write(head)
        for number in range(files):
            text = "".join(f"def function_{number}_{n}(x):\n    return x + {n}\n\n" for n in range(10 + number % 40))
            stream.write(f'M 100644 inline "{name(number)}"\ndata {len(text)}\n{text}\n'.encode())
        stream.seek(0)
        subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, stdin=stream, check=True)
    return Repository.find(folder)


def git(folder: Path, *argv: str) -> None:
    subprocess.run(["git", *argv], cwd=folder, check=True, capture_output=True)


@contextmanager
def timed(figures: Figures, part: str) -> Generator[None]:
    began = time.perf_counter()
    yield
    figures[part] = figures.get(part, 0.0) + 1000 * (time.perf_counter() - began)


@dataclass
class Place:
    """A generated repository, and a plain checkout of it."""

    root: Path
    files: int
    edits: int = 0
    plain: Path = field(init=False)
    repository: Repository = field(init=False)
    start: str = field(init=False)

    def __post_init__(self) -> None:
        self.repository = make_repository(self.root / "project", self.files)
        self.start = self.repository.tree_of("HEAD")
        checkout = PrivateCheckout(self.repository, self.root / "plain")
        checkout.open(self.start)
        self.plain = checkout.tree

    def script(self, count: int = EDITED) -> str:
        self.edits += 1
        return f'for file in {" ".join(edited(count, self.files))}; do echo "# {self.edits}" >> "$file"; done'

    def execute(self, count: int = EDITED) -> float:
        """Return how long the command takes by itself."""
        figures: Figures = {}
        argv = ["/bin/sh", "-c", self.script(count)]
        with timed(figures, "plain"):
            subprocess.run(argv, cwd=self.plain, env={}, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        return figures["plain"]


@dataclass
class Kind:
    """One box with one kind of view, and the tree that its dispatches have come to."""

    title: str
    box: ProvableBox
    overlay: bool

    def begin(self, place: Place) -> Driver:
        """Return a driver that has not dispatched yet; the private checkout is made before a run's first dispatch."""
        root = place.root / self.title.replace(" ", "-") / str(time.monotonic_ns())
        checkout = PrivateCheckout(place.repository, root)
        checkout.open(place.start)
        return Driver(place, self, checkout, Views(checkout, self.box, overlay=self.overlay), place.start)


@dataclass
class Driver:
    """What dispatches, as the dispatcher of a run does it, but for prompt, report and files of the run."""

    place: Place
    kind: Kind
    checkout: PrivateCheckout
    views: Views
    tree: str

    async def dispatch(self, count: int = EDITED) -> Figures:
        """Return the milliseconds of one dispatch, by part."""
        figures: Figures = {}
        script = self.place.script(count)
        grants = tuple(Grant(path, Action.MODIFY) for path in edited(count, self.place.files))
        repository = self.place.repository
        with timed(figures, "open"):
            view = self.views.open(self.tree, writable=True)
        with timed(figures, "fingerprint"):
            before = Fingerprint.take(repository, Written(repository.worktree / ".workflow" / RUN))
        with timed(figures, "box"):
            argv = ("/bin/sh", "-c", script)
            done = await self.kind.box.run(Command(argv, view.mount.target, (view.mount,)))
        with timed(figures, "fingerprint"):
            escape = before.differs(repository, self.checkout)
        with timed(figures, "gate"):
            gate = inspect(view, Policy(Writes.TASK, grants))
        with timed(figures, "apply"):
            changes: list[TreeChange] = []
            for change in gate.changes:
                oid = repository.write_blob(change.content or b"", change.path, self.checkout.tree)
                changes.append(TreeChange(change.path, Entry(change.path, change.mode or "", oid)))
            self.tree = repository.build_tree(self.tree, changes)
        with timed(figures, "close"):
            view.close()
        assert done.exit_code == 0, done.stderr
        assert escape is None, escape.why
        assert gate.admitted, gate.violations[:3]
        assert len(changes) == count, changes[:3]
        return figures

    def close(self) -> None:
        self.checkout.close()


async def kinds() -> list[Kind]:
    """Return what works on this machine, and say what does not."""
    found: list[Kind] = []
    for setting in ("bubblewrap", "none"):
        trials = await try_boxes(setting)
        if not trials or not trials[-1].proof.ok:
            print(f"{setting}: {trials[-1].proof.why if trials else 'not offered'}")
            continue
        box = trials[-1].box
        if box.maps_paths:
            found.append(Kind(f"{setting} overlay", box, overlay=True))
        found.append(Kind(f"{setting} shadow", box, overlay=False))
    return found


def whole(figures: Figures, plain: float = 0.0) -> float:
    return sum(figures[part] for part in PARTS) - plain


def median(rounds: list[Figures], part: str) -> float:
    return statistics.median(one[part] for one in rounds)


def show(title: str, rounds: list[Figures], plain: float) -> Figures:
    """Print one line: each part, the whole over plain execution, and its spread; return the medians."""
    medians = {part: median(rounds, part) for part in PARTS}
    medians["box"] -= plain
    wholes = sorted(whole(one, plain) for one in rounds)
    medians["whole"] = statistics.median(wholes)
    cells = "".join(f"{medians[part]:12.1f}" for part in PARTS)
    print(f"  {title:<28}{cells}{medians['whole']:10.1f}  ({wholes[0]:.0f} to {wholes[-1]:.0f})")
    return medians


def header(title: str) -> None:
    print(f"\n{title}\n  {'':<28}{''.join(f'{part:>12}' for part in PARTS)}{'whole':>10}")


async def by_kind(place: Place, rounds: int, firsts: int) -> dict[str, Figures]:
    """Print the cost for each kind of view; return the medians of the following dispatches."""
    tried = await kinds()
    first: dict[str, list[Figures]] = {kind.title: [] for kind in tried}
    following: dict[str, list[Figures]] = {kind.title: [] for kind in tried}
    drivers: list[Driver] = []
    for number in range(firsts):
        for kind in tried:
            driver = kind.begin(place)
            first[kind.title].append(await driver.dispatch())
            if number == firsts - 1:
                drivers.append(driver)
            else:
                driver.close()
    plain: list[float] = []
    for _ in range(rounds):
        plain.append(place.execute())
        for driver in drivers:
            following[driver.kind.title].append(await driver.dispatch())
    alone = statistics.median(plain)
    header(f"{place.files} files, {EDITED} edited; plain execution takes {alone:.1f} ms")
    for title, figures in first.items():
        show(f"{title}, first", figures, alone)
    return {title: show(title, figures, alone) for title, figures in following.items()}


async def by_changes(place: Place, rounds: int) -> None:
    """Print what an overlay costs by the number of changed files; each dispatch begins where one like it has ended."""
    kind = next((kind for kind in await kinds() if kind.overlay), None)
    if kind is None:
        return
    driver = kind.begin(place)
    header(f"{kind.title}, {place.files} files, by the number of files edited; plain execution is taken off")
    for count in (count for count in CHANGES if count <= place.files):
        await driver.dispatch(count)
        plain: list[float] = []
        found: list[Figures] = []
        for _ in range(rounds):
            plain.append(place.execute(count))
            found.append(await driver.dispatch(count))
        show(f"{count} edited", found, statistics.median(plain))
    driver.close()


def growth(found: dict[int, dict[str, Figures]]) -> None:
    """Print how many times the smallest repository's cost the largest one's is."""
    smallest, largest = min(found), max(found)
    if smallest == largest:
        return
    print(f"\n{largest} over {smallest} files\n  {'':<28}{''.join(f'{part:>12}' for part in PARTS)}{'whole':>10}")
    for title, figures in found[largest].items():
        before = found[smallest][title]
        cells = "".join(f"{figures[part] / max(before[part], 0.1):12.1f}" for part in PARTS)
        print(f"  {title:<28}{cells}{figures['whole'] / before['whole']:10.1f}")


async def measure(sizes: Iterable[int], rounds: int, firsts: int) -> None:
    found: dict[int, dict[str, Figures]] = {}
    for files in sizes:
        with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as folder:
            place = Place(Path(folder), files)
            found[files] = await by_kind(place, rounds, firsts)
            await by_changes(place, rounds)
    growth(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--firsts", type=int, default=3, help="first dispatches of each kind")
    parser.add_argument("--files", type=int, nargs="*", default=SIZES)
    parser.add_argument("--quick", action="store_true", help="1k files, 2 rounds")
    asked = parser.parse_args()
    if asked.quick:
        asked.files, asked.rounds, asked.firsts = SIZES[:1], 2, 1
    anyio.run(measure, asked.files, asked.rounds, asked.firsts)


if __name__ == "__main__":
    main()
