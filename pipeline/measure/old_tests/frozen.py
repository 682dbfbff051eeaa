"""Finds changes between RED and GREEN in what tests depend on: test regions, test support and control files.

The gate lets @make change what its task names, and nothing that is a test. Two things only bytes can show: a Rust file
is one for tests and code, so that leave for the code is leave for the file; and a file that the task does name may
control how tests run. A third shows while tests run: what they stand on and what is written meanwhile (ADR-R100).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.languages.readers import regions_of
from pipeline.languages.sources.test_regions import Unspliced
from pipeline.languages.table import LANGUAGES
from pipeline.measure.composed_trees import HasRepository, both, shares_file
from pipeline.policy.control_files import is_control
from pipeline.policy.test_support import lies_among_tests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pipeline.evidence.observation import Layout, Observation
    from pipeline.languages.protocol import Toolchain

_SNAPSHOTS: Final = (".snap", ".ambr")

Regions = dict[tuple[str, str], bytes]
"""The bytes of test regions by file and name."""


class HasToolchain(HasRepository, Protocol):
    """An object with a repository and a toolchain, such as every `MeasurementContext`."""

    @property
    def toolchain(self) -> Toolchain: ...  # noqa: D102


@dataclass(frozen=True)
class PinnedChanges:
    """The changes since RED in what tests depend on, in words, path first.

    Args:
        regions: Test regions of production files that were changed, added or taken away. Moving one whole is no change.
        support: Files that serve or control tests, changed although the task does not name them.
        controls: The same where the task names them: allowed, and for @check to read; and data that was written while
            tests ran.
        unsure: Production files of which it is not certain where their test regions are: for @check, too.
    """

    regions: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether nothing changed that may not change without permission."""
        return not (self.regions or self.support)


def pinned_changes(ctx: HasToolchain, layout: Layout, named: Collection[str], red: str, tree: str) -> PinnedChanges:
    """Return the changes between RED and a candidate in what tests depend on.

    Args:
        ctx: A run, or what measures without one.
        layout: Which files are tests.
        named: What the task lets its implementer change, where a file comes from by renaming included.
        red: The tree that RED was measured on.
        tree: The candidate.
    """
    changes = [change.path for change in ctx.repository.diff(red, tree)] if red != tree else []
    shared = [path for path in changes if shares_file(path, layout)]
    regions, unsure = _regions(both(ctx, red, tree, shared))
    support: list[str] = []
    allowed: list[str] = []
    for path in changes:
        what = _serves(ctx, layout, path)
        if what is not None and path not in shared and path in named:
            allowed.append(f"{path} {what}")
        elif what is not None and path not in shared:
            support.append(f"{path} {what}")
    return PinnedChanges(tuple(regions), tuple(support), tuple(allowed), tuple(unsure))


@dataclass(frozen=True)
class WrittenFiles:
    """The files written or renamed while tests ran, in words, without those that the run before wrote as well.

    Args:
        support: What tests stand on: what is tested has no business there.
        data: Other files of the tree; tests may compare with them, or be about what writes them. For @check to read.
    """

    support: tuple[str, ...]
    data: tuple[str, ...]


def written_files(ctx: HasToolchain, before: Observation, after: Observation, tree: str) -> WrittenFiles:
    """Return the files of *tree* that were written while its tests ran.

    Args:
        ctx: A run, or what measures without one.
        before: The run of the tests as they were.
        after: The run that is judged.
        tree: Its tree.
    """
    locks = {language.lock for language in LANGUAGES.values()}
    written = sorted(path for path in {*after.touched} - {*before.touched} if _name(path) not in locks)
    new = {*after.modules.values()} - {*before.modules.values(), *written}
    loaded = sorted(path for path in new if _lies_in_tests(after.layout, path))
    there = {entry.path for entry in ctx.repository.entries(tree)} if written or loaded else frozenset[str]()
    support = {
        path
        for path in written
        if (_is_support(ctx, after.layout, path) if path in there else _loads(ctx, after.layout, path))
    }
    said = [f"{path} was written while the tests ran" for path in written if path in support]
    said += [
        f"{path} was loaded while the tests ran, and is not among the measured files"
        for path in loaded
        if path not in there
    ]
    moved = sorted({*after.moved} - {*before.moved})
    said += [f"the folder {path} was renamed while the tests ran; rename a copy of it" for path in moved]
    data = (path for path in written if path in there and path not in support)
    return WrittenFiles(tuple(said), tuple(f"{path} was written while the tests ran" for path in data))


def _is_support(ctx: HasToolchain, layout: Layout, path: str) -> bool:
    return _serves(ctx, layout, path) is not None or path.endswith(ctx.toolchain.sources)


def _loads(ctx: HasToolchain, layout: Layout, path: str) -> bool:
    """Return whether a runner loads a new file because of its name."""
    if path.endswith(_SNAPSHOTS):
        return False
    if path.endswith(ctx.toolchain.sources) and _lies_in_tests(layout, path):
        return True
    return is_control(path) or ctx.toolchain.is_control_path(path) or layout.is_test(path)


def _lies_in_tests(layout: Layout, path: str) -> bool:
    return layout.is_test_side(path) or lies_among_tests(path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _serves(ctx: HasToolchain, layout: Layout, path: str) -> str | None:
    """Return in words how a file serves the tests, None for production code."""
    if is_control(path) or ctx.toolchain.is_control_path(path):
        return "controls how tests are built or run"
    if _lies_in_tests(layout, path):
        return "serves tests"
    return None


def _regions(texts: Iterable[tuple[str, bytes | None, bytes | None]]) -> tuple[list[str], list[str]]:
    before: Regions = {}
    after: Regions = {}
    unsure: list[str] = []
    for path, old, new in texts:
        one, other = (regions_of(text) if text is not None else {} for text in (old, new))
        fault = next((found.why for found in (one, other) if isinstance(found, Unspliced)), None)
        if fault is not None:
            unsure.append(f"{path}: {fault}; whether its tests are as they were is not certain")
        elif not isinstance(one, Unspliced) and not isinstance(other, Unspliced):
            before |= {(path, name): text for name, text in one.items()}
            after |= {(path, name): text for name, text in other.items()}
    return list(_moved(before, after)), unsure


def _moved(before: Mapping[tuple[str, str], bytes], after: Mapping[tuple[str, str], bytes]) -> Iterator[str]:
    gone = {key: text for key, text in before.items() if key not in after}
    new = {key: text for key, text in after.items() if key not in before}
    for (path, name), text in before.items():
        if (path, name) in after and after[path, name] != text:
            yield f"{path}: the test module {name} was changed"
    for (path, name), text in gone.items():
        moved = next((key for key, other in new.items() if other == text), None)
        if moved is None:
            yield f"{path}: the test module {name} is gone"
        else:
            del new[moved]
    for path, name in new:
        yield f"{path}: the test module {name} is new; tests are written before RED"
