"""The products that are agents: their native programs, and their folders with settings, login and conversations.

A program is found behind npm packages, installers and wrapper scripts. A wrapper in JavaScript would need Node and its
package in the box; the native program beside it needs neither. What npm installs as a bundle for Node is found with the
packages that it needs.

A product's folder is made anew for each dispatch, and only the conversations come back for the next one of the slot.
What an agent writes beside them (hooks, settings, plugins, memories) is gone with its box, so that it can widen nothing
later.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pipeline.config.agents import AgentConfig, Backend, Profile
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.process import BOX_HOME, Mount
from pipeline.programs import SYSTEM_FOLDERS, Program, locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.agents.backends.program import Exchange
    from pipeline.agents.backends.protocol import Session

_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64"}
_ELF: Final = b"\x7fELF"


def require_reach(agent: AgentConfig, name: str) -> None:
    """Check that the configuration lets a product reach a model.

    Raises:
        UserError: it does not.
    """
    if agent.reaches is Network.NONE:
        raise UserError(f'{name} cannot work with network = "none": it has to reach its model.', Reason.CONFIG)
    if agent.login and agent.reaches is not Network.OPEN:
        raise UserError('login = true is for network = "open"; with "model" no agent is shown a login.', Reason.CONFIG)


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
        require_reach(agent, self.name)

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


@dataclass(frozen=True)
class Place:
    """The folders of a product below the home folder.

    Args:
        folder: Its folder.
        conversations: Where in it conversations are.
        login: The file in it that holds the user's login.
    """

    folder: str
    conversations: str
    login: str


PLACES: Final[Mapping[str, Place]] = {
    Profile.CLAUDE: Place(".claude", "projects", ".credentials.json"),
    Profile.CODEX: Place(".codex", "sessions", "auth.json"),
    Profile.OPENCODE: Place(".local/share/opencode", "redfirst", "auth.json"),
    Profile.GEMINI: Place(".gemini", "tmp", "oauth_creds.json"),
}
"""The products' folders by name, whether as backends of their own or as profiles of `acp`."""


def place_of(agent: AgentConfig) -> Place | None:
    """Return the folders of the product that an agent is, None if it is none of ours."""
    name = agent.profile if agent.backend is Backend.ACP else agent.backend
    return PLACES.get(name) if name is not None else None


@dataclass(frozen=True)
class Home:
    """A product's folder in one dispatch, with its mounts.

    Args:
        path: The folder as the agent sees it.
        mounts: What the box shows of it.
        session: Where the conversation is kept; None if it is not.
        made: Whether it is there when the product starts.
    """

    path: Path
    mounts: tuple[Mount, ...] = ()
    session: Session | None = None
    made: bool = True


def home_for(place: Place, exchange: Exchange) -> Home:
    """Return the product's folder for the job of *exchange*.

    Raises:
        UserError: the login is to be shown, and is not there or cannot be shown.
    """
    job = exchange.job
    login: Path | None = None
    if job.home is not None and job.network == "open":
        if job.agent.login and not job.box.maps_paths:
            raise UserError("login = true needs a box that can show single files (bubblewrap).", Reason.CONFIG)
        login = require_login(job.agent, job.home)
    if not job.box.maps_paths:
        folder = exchange.out / "home" / place.folder
        folder.mkdir(parents=True)
        return Home(exchange.inside(folder))
    top = BOX_HOME / place.folder
    mounts: list[Mount] = []
    if job.session is not None:
        mounts.append(replace(job.session.mount, target=top / place.conversations))
    if login is not None:
        mounts.append(Mount(login.resolve(), top / place.login))
    return Home(top, tuple(mounts), job.session, made=bool(mounts))


_VALUE: Final = re.compile(r"(?!https?://)[!-~]{16,}")
"""Tokens and keys; shorter values are names, dates or words of the format."""


def login_values(agent: AgentConfig, home: Path) -> frozenset[str]:
    """Return the tokens and keys of the login that *agent* is shown; empty if none is shown."""
    place = place_of(agent) if agent.login else None
    if place is None:
        return frozenset()
    try:
        content: object = json.loads((home / place.folder / place.login).read_bytes())
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(text for text in _texts(content) if _VALUE.fullmatch(text))


def require_login(agent: AgentConfig, home: Path) -> Path | None:
    """Return the file with the login that *agent* is to be shown, None if it is shown none.

    Raises:
        UserError: it is not there.
    """
    place = place_of(agent) if agent.login else None
    file = home / place.folder / place.login if place is not None else None
    if file is not None and not file.is_file():
        raise UserError(
            f"login = true, and there is no login at {file}. Log in with the product itself, or leave login out and "
            'use network = "model" with a credential.',
            Reason.CONFIG,
            path=str(file),
        )
    return file


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for entry in cast("dict[str, object]", value).values():
                yield from _texts(entry)
        case list():
            for entry in cast("list[object]", value):
                yield from _texts(entry)
        case _:
            return
