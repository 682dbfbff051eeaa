"""Finds a product's native program behind npm packages, installers and wrapper scripts.

A wrapper in JavaScript would need Node and its package in the box; the native program beside it needs neither.
What npm installs as a bundle for Node is found with the packages that it needs.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.roles import Network
from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, Program, locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.config.agents import AgentConfig


_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64"}
_ELF: Final = b"\x7fELF"


@dataclass(frozen=True)
class Native:
    """A product with a native program.

    Args:
        name: Its command, and the backend's name.
        package: Its npm package.
        inside: Where in the platform's package the program is, as a pattern.
        marker: A file in the folder above the program's that says that all of it belongs to the program, if any.
        install: What to type to get it.
        tested: The version that the backend was tested with.
    """

    name: str
    package: str
    inside: str
    marker: str | None
    install: str
    tested: str

    def program(self, argv: Sequence[str], search_path: str | None) -> Program:
        """Return the product's program in a form that the box can run.

        Args:
            argv: What the configuration names: nothing, or the program alone.
            search_path: Where it is looked up; the PATH of this process if None.

        Raises:
            UserError: it is not installed, or is no program that the box can run.
        """
        if len(argv) > 1:
            raise self._refusal(f"For the backend {self.name}, argv names the program and nothing more.")
        path = self.installed(search_path, argv[0] if argv else None)
        if path is None:
            what = argv[0] if argv else f"The program {self.name}"
            raise self._refusal(f"{what} was not found, or is no build for this machine. Install it: {self.install}.")
        located = locate(str(path), search_path)
        home = path.parent.parent
        if self.marker is None or not (home / self.marker).is_file():
            return located
        return Program(path, (*located.mounts, Mount(home, home)))

    def installed(self, search_path: str | None, argv0: str | None = None) -> Path | None:
        """Return the path of the native program, None if it is not installed.

        Args:
            search_path: Where it is looked up; the PATH of this process if None.
            argv0: What to look for instead of the product's own name.
        """
        found = shutil.which(argv0 or self.name, path=search_path)
        if found is None:
            return None
        path = Path(found).absolute()
        candidates = (path, *self._behind(path.resolve()))
        return next((candidate for candidate in candidates if _is_native(candidate)), None)

    def require(self, agent: AgentConfig, search_path: str | None) -> None:
        """Check that the program is installed and that the configuration lets it reach a model.

        Raises:
            UserError: it is not, or does not.
        """
        self.program(agent.argv, search_path)
        if agent.reaches is Network.NONE:
            raise self._refusal(
                f'The backend {self.name} cannot work with network = "none": it has to reach its model.'
            )
        if agent.login and agent.reaches is not Network.OPEN:
            raise self._refusal('The key login is for network = "open"; with "model" no login is shown to an agent.')

    def _behind(self, wrapper: Path) -> Iterator[Path]:
        """Yield the native programs in the npm package of a wrapper script."""
        scope, _, name = self.package.partition("/")
        machine = _MACHINES.get(platform.machine(), platform.machine())
        for top in wrapper.parents[:3]:
            for near in (top.parent, top / "node_modules" / scope, top):
                found = sorted(near.glob(f"{name}-linux-{machine}*/{self.inside}"))
                yield from (path.resolve() for path in found)

    def _refusal(self, message: str) -> UserError:
        return UserError(message, Reason.CONFIG, path=self.name, actions=(self.install,))


def _is_native(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:
        return False


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
