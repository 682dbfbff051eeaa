"""A toolchain that knows the file names of its language, and loads what runs tests and reads sources when it is needed.

Most parsers are shared libraries, and every toolchain is asked whether it recognises a project.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING

from pipeline.languages.limited_stubs import Scaffolding

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.languages.protocol import Environment, Lookup, Measurement, Missing


class LazyToolchain(Scaffolding):
    """What a toolchain has of the protocol by its names.

    `package` is the folder of its modules: `environment` finds one, `measuring` runs the tests and checks the types.
    `markers` are files by which a project is recognised; `control` are patterns of names, and `control_folders` names
    of folders, of files that control how tests run, all in lower case.
    """

    package: str
    markers: tuple[str, ...]
    control: tuple[str, ...]
    control_folders: frozenset[str] = frozenset()

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder has one of the files by which a project is recognised."""
        return any((worktree / name).is_file() for name in self.markers)

    async def find_environment(self, lookup: Lookup) -> Environment | Missing:
        """Return how the tests are run, or why that is not known."""
        return await import_module(f"{self.package}.environment").find_environment(lookup)

    async def run_tests(self, asked: Measurement) -> Observation:
        """Run the selected tests and return what was observed.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").run_tests(asked)

    async def check_types(self, asked: Measurement) -> Observation:
        """Return what does not compile or type-check, as collection errors.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").check_types(asked)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new."""
        return observation.layout.is_test(path)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run, what is compiled for them, or what they import."""
        *folders, name = path.casefold().split("/")
        return not self.control_folders.isdisjoint(folders) or any(fnmatchcase(name, one) for one in self.control)
