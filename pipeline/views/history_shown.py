"""What a decoy tells of the repository that it stands for: names of tags, and where `origin` is.

Tests and builds ask for a version (`git describe`) or for the project's name. Neither commits nor contents are told, no
credential of an address, and no path of the host. It is asked once for a run: what tests see of it must not differ
between the baseline and what is compared with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.runs.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository

_FILE: Final = "history.json"
_MOST: Final = 50
"""The most tags that are told, the newest: each is a file of the decoy, which views copy."""
_SSH: Final = re.compile(r"([\w.-]+@)?[\w.-]+:(?!//)[^\s?#]*")
_HTTP: Final = ("http", "https")


class ShownTag(BaseModel):
    """A tag of the commit that the branch stands on, or of one before it; `seconds` is when it was made."""

    model_config = ConfigDict(frozen=True)

    name: str
    annotated: bool
    seconds: int


class ShownHistory(BaseModel):
    """The tags, and the address of `origin`, empty where there is none."""

    model_config = ConfigDict(frozen=True)

    tags: tuple[ShownTag, ...] = ()
    origin: str = ""

    def settings(self) -> str:
        """Return the part of a git configuration file about `origin`."""
        return f'[remote "origin"]\n\turl = "{self.origin}"\n' if self.origin else ""

    def commands(self, mark: bytes) -> bytes:
        """Return the commands for git fast-import that put every tag on one commit.

        `git describe` takes an annotated tag before others, and of those the newest: so tags without a note get one
        where no tag has one, else it would take them by their names.
        """
        with_note = any(tag.annotated for tag in self.tags)
        lines: list[bytes] = []
        for tag in self.tags:
            name = tag.name.encode(errors="surrogateescape")
            if tag.annotated or not with_note:
                tagger = b"base <base@localhost> %d +0000" % tag.seconds
                lines.append(b"tag %s\nfrom %s\ntagger %s\ndata 0\n" % (name, mark, tagger))
            else:
                lines.append(b"reset refs/tags/%s\nfrom %s\n\n" % (name, mark))
        return b"".join(lines)


NOTHING: Final = ShownHistory()


def history_shown(repository: Repository, place: Path) -> ShownHistory:
    """Return what is told of a repository, as it was when it was asked first.

    Args:
        repository: The user's.
        place: The run's own folder, which keeps the answer.
    """
    kept = place / _FILE
    try:
        return ShownHistory.model_validate_json(kept.read_bytes())
    except (OSError, ValidationError):
        pass
    asked = (tag for tag in repository.tags("HEAD", _MOST) if tag[0].isprintable())
    tags = (ShownTag(name=name, annotated=noted, seconds=when) for name, noted, when in asked)
    found = ShownHistory(tags=tuple(tags), origin=_without_secrets(repository.config("remote.origin.url") or ""))
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(kept, found.model_dump_json(), durable=False)
    return found


def _without_secrets(address: str) -> str:
    """Return an address without credentials and queries; of a folder of this machine only its name."""
    if not address.isprintable() or set(address) & set('"\\'):
        return ""
    if "://" not in address:
        return address if _SSH.fullmatch(address) else address.rstrip("/").rpartition("/")[2]
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if not parts.hostname:
        return parts.path.rstrip("/").rpartition("/")[2]
    user = f"{parts.username}@" if parts.username and not parts.password and parts.scheme not in _HTTP else ""
    return f"{parts.scheme}://{user}{parts.hostname}{port}{parts.path}"
