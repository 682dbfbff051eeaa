"""The toolchain of Python projects tested with pytest, and which of their files are tests."""

from __future__ import annotations

import posixpath
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pipeline.judge.policy.listed_commands import ListedCommand
from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.protocol import Members
from pipeline.testing.languages.toolchain import Toolchain
from pipeline.trees import NotRegularError, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pipeline.judge.evidence.observation import Observation

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
        """Return the projects below a folder that one command there does not measure."""
        return _projects_below(worktree, top, tracked, is_ours)

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


_LARGEST: Final = 1_000_000
_PYPROJECT: Final = "pyproject.toml"
_OWN: Final = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""Files that are pytest settings, whatever they say."""
_SECTIONS: Final = {"tox.ini": re.compile(rb"(?m)^\[pytest\]"), "setup.cfg": re.compile(rb"(?m)^\[tool:pytest\]")}
"""Files that are pytest settings if they have the section."""
_TESTS: Final = ("test_*.py", "*_test.py")


class _Settings(NamedTuple):
    """The parts of a pyproject.toml that count here; `testpaths` is None where it has no pytest settings."""

    testpaths: tuple[str, ...] | None = None
    members: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def _projects_below(worktree: Path, top: str, tracked: Collection[str], is_ours: Callable[[str], bool]) -> Members:
    """Return the projects below a folder: members of a uv workspace, and folders with pytest settings of their own.

    pytest started in such a folder takes other settings, another root and other names of test modules than pytest
    started above it. A member without settings is left to the settings above it if these name its tests (`testpaths`).
    """
    below = [path for path in tracked if not top or path.startswith(f"{top}/")]
    settings = _settings(worktree / top / _PYPROJECT)
    workspace = _members(top, settings, below)
    own = {folder for folder in _with_settings(worktree, below) if folder != top and is_ours(folder)}
    with_tests = {folder for folder in workspace if _has_tests(folder, below)}
    if settings.testpaths is not None:
        names = [posixpath.normpath(entry) for entry in settings.testpaths]
        with_tests = {one for one in with_tests if not _named(posixpath.relpath(one, top or "."), names)}
    folders = own | with_tests
    rest = (path for path in below if path.endswith(".py"))
    outside = any(not any(path.startswith(f"{folder}/") for folder in folders) for path in rest)
    return Members(tuple(sorted(folders)), top_counts=outside or not folders, workspace=workspace)


def is_workspace(folder: Path) -> bool:
    """Return whether a folder is the root of a uv workspace."""
    return bool(_settings(folder / _PYPROJECT).members)


def _with_settings(worktree: Path, tracked: Iterable[str]) -> set[str]:
    """Return the folders with pytest settings."""
    found: set[str] = set()
    for path in tracked:
        folder, _, name = path.rpartition("/")
        if name in _OWN or (
            (name in _SECTIONS and _SECTIONS[name].search(_content(worktree / path)))
            or (name == _PYPROJECT and folder and _settings(worktree / path).testpaths is not None)
        ):
            found.add(folder)
    return found


def _members(top: str, settings: _Settings, tracked: Iterable[str]) -> frozenset[str]:
    """Return the folders of the workspace's members below its root."""
    if not settings.members:
        return frozenset()
    folders = {path.removesuffix(f"/{_PYPROJECT}") for path in tracked if path.endswith(f"/{_PYPROJECT}")}
    inner = {folder: folder.removeprefix(f"{top}/") if top else folder for folder in folders if folder != top}
    return frozenset(
        folder
        for folder, inside in inner.items()
        if any(_fits(inside, one) for one in settings.members)
        and not any(_fits(inside, one) for one in settings.exclude)
    )


def _fits(folder: str, pattern: str) -> bool:
    clean = posixpath.normpath(pattern)
    if "**" in clean:
        return fnmatchcase(folder, clean.replace("**/", "*").replace("**", "*"))
    parts, wanted = folder.split("/"), clean.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _has_tests(folder: str, tracked: Iterable[str]) -> bool:
    names = (path.rpartition("/")[2] for path in tracked if path.startswith(f"{folder}/"))
    return any(fnmatchcase(name, pattern) for name in names for pattern in _TESTS)


def _named(folder: str, testpaths: Iterable[str]) -> bool:
    """Return whether settings name a folder, one around it, or one inside of it."""
    parts = folder.split("/")
    return any(all(map(fnmatchcase, parts, entry.split("/"))) for entry in testpaths)


def _settings(path: Path) -> _Settings:
    content = _content(path)
    if b"pytest" not in content and b"workspace" not in content:  # to read it would take a process
        return _Settings()
    try:
        return _Settings(*limited(read_settings)(content))
    except UnreadableError:
        return _Settings()


def _content(path: Path) -> bytes:
    try:
        return b"" if path.is_symlink() else read_regular(path, _LARGEST)
    except (OSError, NotRegularError):
        return b""


def read_settings(content: bytes) -> tuple[tuple[str, ...] | None, tuple[str, ...], tuple[str, ...]]:
    """Return `testpaths` of pytest's settings, and members and exceptions of a uv workspace, in a pyproject.toml."""
    try:
        document: Any = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None, (), ()
    pytest = _table(document, "tool", "pytest")
    options = _table(pytest, "ini_options") if "ini_options" in pytest else pytest
    said = options.get("testpaths", ())
    testpaths = tuple(said.split()) if isinstance(said, str) else _words(said)
    workspace = _table(document, "tool", "uv", "workspace")
    return testpaths if pytest else None, _words(workspace.get("members")), _words(workspace.get("exclude"))


def _table(document: object, *names: str) -> dict[str, Any]:
    for name in names:
        document = cast("dict[str, Any]", document).get(name) if isinstance(document, dict) else None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _words(value: object) -> tuple[str, ...]:
    found = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return tuple(word for word in found if isinstance(word, str))


TOOLCHAIN: Final = PytestToolchain()
