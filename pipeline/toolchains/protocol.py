"""What a language's test toolchain must offer, and the values that cross this seam."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.evidence.classify import Symbol
    from pipeline.evidence.observation import Observation
    from pipeline.process import Mount, Sandbox


@dataclass(frozen=True)
class EditableRoot:
    """A host folder that an editable install of this project imports from, and the same folder inside a checkout."""

    path: Path
    relative: str


@dataclass(frozen=True)
class Environment:
    """How the tests of a project are started.

    `command` is an absolute argv prefix; `mounts` are needed read-only in the box, at the same paths; at each of
    `editable_roots` the view must be shown too, else the tests import the wrong code (architecture 5). `versions` say
    for people what was found; `variables` are set where tests run.
    """

    command: tuple[str, ...]
    mounts: tuple[Mount, ...]
    editable_roots: tuple[EditableRoot, ...]
    python_version: str
    pytest_version: str
    prefix: Path
    plugins: frozenset[str] = frozenset()
    versions: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Missing:
    """There is no environment; the sentence says what was looked at and what to do."""

    sentence: str


@dataclass(frozen=True)
class View:
    """The files to measure, and how the box shows them."""

    mount: Mount

    @property
    def host(self) -> Path:
        """Return the path at which this process finds them."""
        return self.mount.reach

    @property
    def workspace(self) -> Path:
        """Return the path at which the tests find them."""
        return self.mount.target


@dataclass(frozen=True)
class Selection:
    """Which collected tests to run: those with these ids, those in these files. Everything is collected in any case."""

    ids: frozenset[str] | None = None
    files: frozenset[str] | None = None

    @classmethod
    def nothing(cls) -> Selection:
        """Return the selection that only collects."""
        return cls(ids=frozenset())


@dataclass(frozen=True)
class Bytecode:
    """A folder of compiled modules that outlives one run.

    `warm=True` fills it, and is for runs before any agent (the baseline); afterwards it is mounted read-only, so that
    tested code cannot poison what a later run imports.
    """

    folder: Path
    warm: bool = False


@dataclass(frozen=True)
class Stubbed:
    """The changed files of a stubbing, and the symbols that were not found."""

    files: Mapping[str, str]
    unknown: tuple[Symbol, ...]


class Toolchain(Protocol):
    """One language's way to run tests and to recognise them."""

    name: str

    def detect(self, worktree: Path) -> bool:
        """Return whether the project looks like one of this toolchain's."""
        ...

    async def find_environment(
        self, worktree: Path, main: Path, configured: tuple[str, ...] | None, state: Path, search_path: str
    ) -> Environment | Missing:
        """Return how to run the tests; asked on the host, before any agent ran."""
        ...

    async def run_tests(
        self,
        sandbox: Sandbox,
        view: View,
        env: Environment,
        selection: Selection | None = None,
        *,
        trace: bool = False,
        timeout_s: float = 900.0,
        per_test_timeout_s: float | None = None,
        bytecode: Bytecode | None = None,
    ) -> Observation:
        """Run the tests in the box and return what was observed.

        Raises:
            SandboxError: the box did not work; nothing is known about the tests.
        """
        ...

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new."""
        ...

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run or what they import."""
        ...

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the bodies of the symbols replaced by a failure."""
        ...

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        """Return what the files define at their top level that they did not define before."""
        ...
