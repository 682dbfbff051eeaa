"""The toolchain of Python projects tested with pytest, and which of their files are tests."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.languages.lazy_toolchain import LazyToolchain

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.observation import Observation


class PytestToolchain(LazyToolchain):
    """The `Toolchain` of Python projects."""

    name = "pytest"
    package = "pipeline.languages.python"
    sources: tuple[str, ...] = (".py",)
    stub = "raise NotImplementedError"
    stub_like = re.compile(r"\braise\s+NotImplementedError\b")
    stub_readers = ("pipeline.languages.python.stubs", "pipeline.languages.python.stubs")
    install_hint = "install Python (https://www.python.org) and pytest (`pip install pytest`)"
    markers = (
        "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "setup.py",
        "pyproject.toml", "conftest.py", "requirements.txt",
    )  # fmt: skip
    control = (
        "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "setup.cfg",
        "setup.py", "tox.ini", "noxfile.py", ".coveragerc", "sitecustomize.py", "usercustomize.py", "*.pth", "uv.lock",
        "poetry.lock", "requirements*.txt", ".python-version",
    )  # fmt: skip

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder looks like a Python project."""
        return super().detect(worktree) or any(
            next(worktree.glob(pattern), None) is not None for pattern in ("test_*.py", "tests/**/*.py", "test/**/*.py")
        )

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether pytest collects a file, or would if it were new; a text with doctests counts."""
        texts = {record.path for record in observation.records.values() if not record.path.endswith(self.sources)}
        places = {(PurePosixPath(text).parent, PurePosixPath(text).suffix) for text in texts}
        beside = (PurePosixPath(path).parent, PurePosixPath(path).suffix) in places
        return super().is_test_path(path, observation) or beside

    def is_control_path(self, path: str) -> bool:
        """Return whether a file controls how tests run or what they import; Python's names are lower case."""
        return any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in self.control)


TOOLCHAIN: Final = PytestToolchain()
