"""The folder with a product's settings, login and conversations, as one dispatch shows it.

It is made anew for each dispatch, and only the conversations come back for the next one of the slot. What an agent
writes beside them (hooks, settings, plugins, memories) is gone with its box, so that it can widen nothing later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import BOX_HOME, Mount

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.backends.program import Exchange
    from pipeline.backends.protocol import Session

_LOGIN: Final = 'run the product\'s own login on this machine first, or use network = "model" with an API key'


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
    login = job.home is not None and job.agent is not None and job.agent.login and job.network == "open"
    if not job.box.maps_paths:
        if login:
            raise UserError("login = true needs a box that can show single files (bubblewrap).", Reason.CONFIG)
        folder = exchange.out / "home" / place.folder
        folder.mkdir(parents=True)
        return Home(exchange.inside(folder))
    top = BOX_HOME / place.folder
    mounts: list[Mount] = []
    if job.session is not None:
        mounts.append(replace(job.session.mount, target=top / place.conversations))
    if login and job.home is not None:
        file = job.home / place.folder / place.login
        if not file.is_file():
            raise UserError(f"login = true, and there is no login at {file}: {_LOGIN}.", Reason.CONFIG, path=str(file))
        mounts.append(Mount(file.resolve(), top / place.login))
    return Home(top, tuple(mounts), job.session, made=bool(mounts))
