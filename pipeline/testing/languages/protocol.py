"""The values that a toolchain takes and returns: environments, views, measurements, settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from pipeline.trees import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.process import Box, Command, Completed, Mount


@dataclass(frozen=True)
class PlacedFolder:
    """A host folder, and where it lies inside a checkout."""

    path: Path
    relative: str


@dataclass(frozen=True)
class Environment:
    """The environment of a project's tests: command, mounts and variables.

    `command` is an absolute argv prefix; `mounts` are needed read-only in the box, at the same paths; at each of
    `editable_roots`, from which editable installs of this project import, the view must be shown too, else the tests
    import the wrong code. `prefix` is
    where the language is installed: its `bin` comes first on an agent's PATH. `versions` say for people what was found;
    `variables` are set where tests run, and for agents. `installed`, packages, is shown read-only inside the view
    (`installed.installed_mounts`): git ignores it, so that no tree has it. `test_variables` are set for tests alone.
    `source_folders` of the project are put on the import path, since nothing is installed that would do it.
    """

    command: tuple[str, ...]
    mounts: tuple[Mount, ...]
    prefix: Path
    versions: tuple[str, ...]
    editable_roots: tuple[PlacedFolder, ...] = ()
    plugins: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    installed: tuple[PlacedFolder, ...] = ()
    test_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    source_folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """The environment is missing; the sentence says where it was looked for and what to do.

    `remedy` is what mends it, where that is not to install the language.
    """

    sentence: str
    remedy: str = ""


@dataclass(frozen=True)
class View:
    """The files to measure, with the mount that shows them in a box."""

    mount: Mount

    @property
    def host(self) -> Path:
        """Return the path of the files for this process."""
        return self.mount.reach

    @property
    def files(self) -> Files:
        """Return the files for reading, safely even if tested code may have changed them."""
        return Files(Path(str(self.host).removesuffix(self.mount.inner)), self.mount.inner)

    @property
    def workspace(self) -> Path:
        """Return the path of the files for the tests."""
        return self.mount.target


@dataclass(frozen=True)
class Selection:
    """The collected tests to run: those with these ids or in these files. All tests are collected in any case."""

    ids: frozenset[str] | None = None
    files: frozenset[str] | None = None

    @classmethod
    def nothing(cls) -> Selection:
        """Return the selection of no tests, which only collects."""
        return cls(ids=frozenset())

    def has(self, entry: str, path: str) -> bool:
        """Return whether a test is selected, by its id and its file."""
        return (self.ids is None or entry in self.ids) and (self.files is None or path in self.files)


@dataclass(frozen=True)
class Cache:
    """A folder of compiled code that outlives one test run: bytecode, dependencies and the like.

    `warm=True` fills it, and is for runs before any agent (the baseline); afterwards it is mounted read-only, so that
    tested code cannot poison what a later run loads.
    """

    folder: Path
    warm: bool = False


@dataclass(frozen=True)
class FoundInputs:
    """A folder of ours with the inputs that tools of the tests found, such as counterexamples of property tests.

    Every measurement of a run is given them, so that what was found stays found. With `keeps` what it finds is added:
    not what is traced, or found over faults that were put in.
    """

    folder: Path
    keeps: bool = True


@dataclass(frozen=True)
class Measurement:
    """A request to measure: the tests of a view, in a box, with an environment.

    Args:
        box: Where it runs.
        view: The files; tests may write into them, so the view is disposable.
        env: From `Toolchain.find_environment`.
        selection: Which of the tests to run, None for all; all are listed in any case.
        trace: Say which production the tests reach; slow, for a few named tests.
        timeout_s: For everything together.
        per_test_timeout_s: A limit for each test.
        cache: Compiled code to share between measurements; None compiles everything again.
        elsewhere: Folders of the view that other projects of the same toolchain measure; their tests are left out.
        found: Inputs that tests found in measurements before; None for none.
    """

    box: Box
    view: View
    env: Environment
    selection: Selection | None = None
    trace: bool = False
    timeout_s: float = 900.0
    per_test_timeout_s: float | None = None
    cache: Cache | None = None
    elsewhere: tuple[str, ...] = ()
    found: FoundInputs | None = None

    def selects(self, entry: str, path: str) -> bool:
        """Return whether a test is to be run, by its id and its file."""
        return self.selection is None or self.selection.has(entry, path)


class OtherBox:
    """A box that changes each command that it is given, and hands it on to another box."""

    def __init__(self, box: Box, change: Callable[[Command], Command]) -> None:
        self.name, self.maps_paths, self.inside = box.name, box.maps_paths, box.inside
        self._run, self._change = box.run, change

    async def run(self, command: Command) -> Completed:
        """Run the changed command."""
        return await self._run(self._change(command))


@dataclass(frozen=True)
class Lookup:
    """The folders in which an environment is looked for on the host.

    Args:
        worktree: The checkout that the user stands in, or the one in which `setup` was run.
        main: The main checkout of the same repository; may be the same folder.
        configured: `[toolchains.NAME] command`, if any: the words before the test runner make the environment.
        state: A private folder for an environment that is made.
        search_path: PATH of the user.
        variables: `[toolchains.NAME] env`: what the tests get beside what the environment sets.
        outer: The folders around that of a project below the top, in both checkouts: what is installed there serves
            the project, too, as one `.venv` or `node_modules` does for all members of a workspace.
    """

    worktree: Path
    main: Path
    configured: tuple[str, ...] | None
    state: Path
    search_path: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    outer: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Members:
    """The projects below a folder, in paths of the repository.

    Args:
        folders: Those that are measured from their own folder.
        top_counts: Whether the folder itself is a project beside them.
        workspace: The members that the folder declares, measured with it or not: they share what is installed there.
    """

    folders: tuple[str, ...] = ()
    top_counts: bool = True
    workspace: frozenset[str] = frozenset()


Checkouts: TypeAlias = ModuleType
"""The module `environment` of a language that finds environments inside a checkout.

`PLACES` are their folders, `LOCK` is the file that `MADE_BY` makes one from; `BUILT` says what that runs on the host,
`INSTEAD` what a person can do who does not want it. It has these functions:

* `is_locked(folder, search_path)`: whether a run would create the environment from a lock file;
* `interpreters(folders, locked=)`: the interpreters in checkouts, in the order in which they are tried;
* `has_runner(interpreter, search_path)`: whether an environment has the test runner; nothing of the project is run;
* `first_run(interpreter)`: the command that runs tests in an environment, without creating one.
"""
