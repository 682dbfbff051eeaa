"""Remembers the subtests that each test showed in earlier runs.

Subtests are made while a test runs: of a test that is not chosen, or that fails before it comes to them, nothing says
which it has. So the names that a run showed are kept beside the compiled code, by the test's own bytes: they are ids,
and none of them is believed to have run. The file is written by the harness, outside the box.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.languages.protocol import Cache

_FILE: Final = "subtests.json"
_TESTS: Final = 20_000
_NAMES: Final = TypeAdapter(dict[str, tuple[str, ...]])


class Memory:
    """The known subtests of each test, by its id and the digest of its bytes."""

    def __init__(self, cache: Cache | None) -> None:
        self._place = cache.folder / _FILE if cache is not None else None
        self._known: dict[str, tuple[str, ...]] = {}
        if self._place is not None:
            try:
                self._known = _NAMES.validate_json(self._place.read_bytes())
            except (OSError, ValidationError):  # a broken file is forgotten: a full run fills it again
                self._known = {}

    def of(self, test: str, digest: str) -> tuple[str, ...]:
        """Return the ids of a test's known subtests."""
        return self._known.get(f"{test} {digest}", ())

    def keep(self, shown: Mapping[tuple[str, str], Iterable[str]]) -> None:
        """Store the subtests that a run showed, by id and digest of each test."""
        if self._place is None or not shown:
            return
        fresh = {f"{test} {digest}": tuple(sorted(names)) for (test, digest), names in shown.items()}
        everything = {**self._known, **fresh}
        if everything == self._known:
            return
        self._known = dict(list(everything.items())[-_TESTS:])
        with tempfile.NamedTemporaryFile(dir=self._place.parent, delete=False) as file:
            file.write(_NAMES.dump_json(self._known))
        Path(file.name).replace(self._place)
