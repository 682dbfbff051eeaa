"""What measures without a run, on a small real repository: real git, real tests."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from kit import BARE_PYTEST, make_project

from pipeline.config.model import Config
from pipeline.repo import Repository, UntouchedRepository
from pipeline.run.checkout import PrivateCheckout
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.table import LANGUAGES
from pipeline.testing.measure.measuring import measure
from pipeline.testing.verification.context import VerificationContext

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from kit import Project

    from pipeline.judge.evidence.observation import Observation
    from pipeline.process import Box

PYPROJECT = BARE_PYTEST + 'pythonpath = ["."]\ntestpaths = ["tests"]\n'


def repository(tmp_path: Path, before: Mapping[str, str], after: Mapping[str, str]) -> Project:
    """Return a project whose first commit has *before*, and whose second has *after* as well."""
    project = make_project(tmp_path, dict(before))
    project.write(dict(after))
    project.commit("after")
    return project


@contextmanager
def without_run(
    project: Project,
    toolchain: str = "pytest",
    box: Box | None = None,
    config: Config | None = None,
    search_path: str | None = None,
) -> Generator[VerificationContext]:
    """Lend what measures for a project; it writes beside it, and takes that away again."""
    found = Repository.find(project.root)
    place = Path(tempfile.mkdtemp(prefix="without-run-", dir=project.root.parent))
    untouched = UntouchedRepository.of(found, place / "objects")
    checkout = PrivateCheckout(untouched, place / "checkout")
    lab = VerificationContext(
        repository=untouched,
        checkout=checkout,
        config=config or Config(),
        box=box or NoBox(),
        toolchain=LANGUAGES[toolchain].toolchain,
        search_path=search_path or project.environment()["PATH"],
        environ=os.environ,
        say=lambda _: None,
    )
    try:
        anyio.run(lab.prepare, tree_of(lab, "HEAD"))
        yield lab
    finally:
        checkout.close()


def tree_of(lab: VerificationContext, revision: str) -> str:
    return lab.repository.tree_of(revision)


def seen(lab: VerificationContext, revision: str = "HEAD") -> Observation:
    """Return what all tests of a revision show."""
    return anyio.run(measure, lab, tree_of(lab, revision))
