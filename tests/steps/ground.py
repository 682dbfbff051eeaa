"""A real repository with a toolchain's rules, for steps that only look at trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runs.real import make_repository, tree_with

from pipeline.judge.evidence.observation import Layout
from pipeline.testing.languages.python.toolchain import PytestToolchain
from pipeline.testing.languages.rust.toolchain import CargoToolchain

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.testing.languages.toolchain import Toolchain

PYTEST = Layout(testpaths=("tests",), collected=frozenset({"tests/test_app.py"}))
CARGO = Layout(testpaths=("tests",), python_files=("*.rs",), collected=frozenset({"src/lib.rs#tests", "tests/a.rs"}))


@dataclass(frozen=True)
class Ground:
    """A repository with one commit."""

    repository: Repository
    toolchain: Toolchain
    start: str

    def tree(self, files: dict[str, str | None], base: str | None = None) -> str:
        """Return a tree with some files changed, added or (None) taken away."""
        return tree_with(self.repository, base or self.start, files)

    def text(self, tree: str, path: str) -> str | None:
        """Return a file of a tree."""
        found = self.repository.blob(f"{tree}:{path}")
        return found.decode() if found is not None else None


def ground(folder: Path, files: dict[str, str], *, rust: bool = False) -> Ground:
    """Return a repository of these files."""
    repository = make_repository(folder / "project", files)
    toolchain = CargoToolchain() if rust else PytestToolchain()
    return Ground(repository, toolchain, repository.tree_of("HEAD"))
