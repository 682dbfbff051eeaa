"""Recognises paths at which cargo finds tests: below `tests/`, and in `#[cfg(test)]` modules below `src/`."""

from __future__ import annotations


def is_plausible(path: str) -> bool:
    """Return whether `path` can be a file with tests, without knowing the project."""
    return not {"tests", "src", "benches"}.isdisjoint(path.split("/")[:-1])


def why_overlooked(path: str) -> str | None:
    """Return why a test at `path` would not be run, None if it would."""
    return "cargo does not look into src/tests/; use tests/ or the module" if "/src/tests/" in f"/{path}" else None
