"""The toolchain of Python projects tested with pytest, and which of their files are tests."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.listed_commands import ListedCommand
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pipeline.judge.evidence.observation import Observation
    from pipeline.testing.languages.protocol import Members

_PYTEST: Final = (
    "-q --quiet -v --verbose -x --exitfirst -s -l --showlocals --no-showlocals --co --collect-only --fixtures --markers"
    " --setup-show --setup-plan --full-trace --no-header --no-summary --disable-warnings --strict-markers"
    " --strict-config --runxfail --lf --last-failed --ff --failed-first --version -V -h --help"
    " -k EXPRESSION -m EXPRESSION --maxfail NUMBER --durations NUMBER --verbosity NUMBER --capture fd|sys|no|tee-sys"
    " --tb auto|long|short|line|native|no --show-capture no|stdout|stderr|log|all -r [fEsxXpPaAwN]{1,12}"
    " --color auto|always|never|yes|no"
)
_RUFF: Final = (
    "-q --quiet -v --verbose --diff --no-cache --preview -h --help"
    " --output-format concise|full|json|json-lines|grouped|github|gitlab|pylint"
)

_COMMANDS: Final = (
    *(ListedCommand(beginning, _PYTEST) for beginning in ("pytest", "python -m pytest", "python3 -m pytest")),
    ListedCommand(
        "ruff check",
        f"{_RUFF} --no-fix --statistics --exit-zero --select [A-Z0-9,]+ --ignore [A-Z0-9,]+ --extend-select [A-Z0-9,]+",
    ),
    ListedCommand("ruff format", f"{_RUFF} --check", required="--check --diff"),
    ListedCommand(
        "mypy",
        "--strict --pretty --no-incremental --show-error-codes --no-error-summary --ignore-missing-imports"
        " --show-column-numbers -h --help -V --version",
    ),
    ListedCommand("pyright", "--outputjson --stats --warnings --verbose -h --help --version --level error|warning"),
    ListedCommand("uv run", "--frozen --locked --offline --no-sync", is_wrapper=True),
)


class PytestToolchain(Toolchain):
    """The `Toolchain` of Python projects."""

    name = "pytest"
    package = "pipeline.testing.languages.python"
    sources: tuple[str, ...] = (".py",)
    stub = "raise NotImplementedError"
    stub_like = re.compile(r"\braise\s+NotImplementedError\b")
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
    commands = _COMMANDS

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

    def members(self, worktree: Path, top: str, tracked: Collection[str], is_ours: Callable[[str], bool]) -> Members:
        """Return the projects below a folder; see `workspaces.members`."""
        return import_module(f"{self.package}.workspaces").members(worktree, top, tracked, is_ours)

    def is_module(self, path: str, module: str) -> bool:
        """Return whether a file is the module (or the package's `__init__.py`), in whatever source folder."""
        name = module.strip(".")
        return bool(name) and _dotted(path).endswith(f".{name}.")

    def is_part_of(self, path: str, module: str) -> bool:
        """Return whether a file is the module, or lies in the package of that name."""
        name = module.strip(".")
        return bool(name) and f".{name}." in _dotted(path)

    def is_plausible(self, path: str) -> bool:
        """Return whether `path` can be a test file, or loads what tests share."""
        return path.rpartition("/")[2] == "conftest.py" or super().is_plausible(path)


def _dotted(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return f".{'.'.join(parts)}.".removesuffix(".__init__.") + ("." if parts[-1] == "__init__" else "")


TOOLCHAIN: Final = PytestToolchain()
