"""Reads and writes stubs of each language within limits; an unreadable file is left out, or is itself a fault.

They take all files at once. Where that fails each file is read for itself, to know which it is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pipeline.languages.sources.stubs import OldBodies, Stubbed, StubFault
from pipeline.limited import UnreadableError, limited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.evidence.red_classes import Symbol

    Files = Mapping[str, str]
    Replaces = Callable[[Files, Sequence[Symbol]], Stubbed]
    Compares = Callable[[Files, Files], tuple[Symbol, ...]]
    Judges = Callable[[Files, Files, Sequence[Symbol]], tuple[StubFault, ...]]


class Scaffolding:
    """The part of the toolchain protocol about stubs.

    `stub_readers` are two modules that read sources of its language; they are loaded when they are needed, since most
    parsers are shared libraries. The first has `stub_symbols` and `introduced`, the second `stub_faults`.
    """

    stub_readers: tuple[str, str]

    def stub_symbols(self, files: Files, symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the bodies of the symbols replaced by the stub."""
        return stub_symbols(import_module(self.stub_readers[0]).stub_symbols, files, symbols)

    def introduced(self, before: Files, after: Files) -> tuple[Symbol, ...]:
        """Return the symbols defined outside of tests that were not defined before."""
        return introduced(import_module(self.stub_readers[0]).introduced, before, after)

    def with_old_bodies(self, before: Files, after: Files, *, kept: bool) -> OldBodies:
        """Return the files with the bodies that their functions had; see the protocol."""
        read = import_module(self.stub_readers[0]).with_old_bodies
        try:
            return limited(read)(before, after, kept)
        except UnreadableError:
            return OldBodies({}, ())

    def stub_faults(self, before: Files, after: Files, symbols: Sequence[Symbol]) -> tuple[StubFault, ...]:
        """Return the faults of a stub pass: changes that are no stubs."""
        return stub_faults(import_module(self.stub_readers[1]).stub_faults, before, after, symbols)


def stub_symbols(read: Replaces, files: Files, symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs; an unreadable file stays unchanged, so that tests pass on it."""
    try:
        return limited(read)(files, symbols)
    except UnreadableError:
        left = {path: text for path, text in files.items() if _fault(read, {path: text}, symbols) is None}
    return stub_symbols(read, left, symbols) if 0 < len(left) < len(files) else Stubbed({}, tuple(symbols))


def introduced(read: Compares, before: Files, after: Files) -> tuple[Symbol, ...]:
    """Return the symbols that the files newly define; none for an unreadable file."""
    try:
        return limited(read)(before, after)
    except UnreadableError:
        left = {path: text for path, text in after.items() if _fault(read, _only(before, path), {path: text}) is None}
    return introduced(read, {path: before[path] for path in left if path in before}, left) if left != after else ()


def stub_faults(read: Judges, before: Files, after: Files, symbols: Sequence[Symbol]) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; for an unreadable file, that it cannot be read."""
    try:
        return limited(read)(before, after, symbols)
    except UnreadableError as error:
        each = ((path, _fault(read, _only(before, path), _only(after, path), symbols)) for path in after)
        found = tuple(StubFault(path, 0, str(fault)) for path, fault in each if fault is not None)
        return found or tuple(StubFault(path, 0, str(error)) for path in {**before, **after})


def _only(files: Files, path: str) -> dict[str, str]:
    return {path: files[path]} if path in files else {}


def _fault(read: Callable[..., object], *args: object) -> UnreadableError | None:
    try:
        limited(read)(*args)
    except UnreadableError as error:
        return error
    return None
