"""Finds agents that npm installs as bundles for Node, with the packages that they need in a box."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, Program, locate

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGES: Final = "node_modules"


@dataclass(frozen=True)
class Bundle:
    """A product that runs on Node.

    Args:
        name: Its command.
        install: What to type to get it.
        tested: The version that the tests drive.
    """

    name: str
    install: str
    tested: str

    def program(self, argv: Sequence[str], search_path: str | None) -> Program:
        """Return Node with the bundle in a form that the box can run.

        Args:
            argv: What the configuration names: nothing, or the program alone.
            search_path: Where it is looked up; the PATH of this process if None.

        Raises:
            UserError: it is not installed.
        """
        path = self.installed(search_path, argv[0] if argv else None)
        if path is None:
            where = argv[0] if argv else f"{self.name} on PATH"
            raise UserError(
                f"{where} was not found; {self.install}.", Reason.CONFIG, path=self.name, actions=(self.install,)
            )
        program = locate(str(path), search_path)
        packages = _packages_of(path.resolve())
        if Path.home().is_relative_to(packages):
            raise UserError(
                f"{path} lies in {packages} itself, which the box must hide; {self.install}.",
                Reason.CONFIG,
                path=str(path),
                actions=(self.install,),
            )
        if any(packages.is_relative_to(system) for system in SYSTEM_FOLDERS):
            return program
        others = tuple(mount for mount in program.mounts if not mount.target.is_relative_to(packages))
        return replace(program, mounts=(*others, Mount(packages, packages)))

    def installed(self, search_path: str | None, argv0: str | None = None) -> Path | None:
        """Return the path of the program, None if it is not installed.

        Args:
            search_path: Where it is looked up; the PATH of this process if None.
            argv0: What to look for instead of the product's own name.
        """
        found = shutil.which(argv0 or self.name, path=search_path)
        return Path(found).absolute() if found is not None else None


def _packages_of(script: Path) -> Path:
    """Return the outermost package folder that contains a script: its imports are beside it."""
    outermost = [above for above in script.parents if above.name == _PACKAGES]
    return outermost[-1] if outermost else script.parent
