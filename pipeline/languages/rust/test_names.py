"""Where cargo looks for tests: below `tests/`, and in modules below `src/` for their `#[cfg(test)]` part."""

from __future__ import annotations


def is_plausible(path: str) -> bool:
    """Return whether `path` can be a file with tests, without knowing the project."""
    return not {"tests", "src", "benches"}.isdisjoint(path.split("/")[:-1])


def why_overlooked(path: str) -> str | None:
    """Return why no test at `path` would be run, None where it would."""
    return "cargo does not look into src/tests/; use tests/ or the module" if "/src/tests/" in f"/{path}" else None
