"""The base of toolchains: knows the file names of its language, and imports runners and readers when they are needed.

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
    """The part of the toolchain protocol that follows from names.

    `package` is the folder of its modules: `environment` finds one, `measuring` runs the tests and checks the types.
    `markers` are files by which a project is recognised; `control` are patterns of names, and `control_folders` names
    of folders, of files that control how tests run, all in lower case.
    """

    package: str
    markers: tuple[str, ...]
    control: tuple[str, ...]
    control_folders: frozenset[str] = frozenset()

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder contains a file that marks a project of this language."""
        return any((worktree / name).is_file() for name in self.markers)

    async def find_environment(self, lookup: Lookup) -> Environment | Missing:
        """Return the environment of the project's tests, or why there is none."""
        return await import_module(f"{self.package}.environment").find_environment(lookup)

    async def run_tests(self, asked: Measurement) -> Observation:
        """Run the selected tests and return the observation.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").run_tests(asked)

    async def check_types(self, asked: Measurement) -> Observation:
        """Return compile and type errors as collection errors.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").check_types(asked)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new."""
        return observation.layout.is_test(path)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run, how they are compiled, or what they import."""
        *folders, name = path.casefold().split("/")
        return not self.control_folders.isdisjoint(folders) or any(fnmatchcase(name, one) for one in self.control)
