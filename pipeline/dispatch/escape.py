"""Did a dispatch reach out of its view? Asked where no kernel box stands in between (architecture 6, Gate).

Compared are the parts of the common git directory that make git run programs, our own refs of this run, and the private
checkout. Branch and remote settings are left out: the user may change those meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.runs.store import publish_ref, run_ref

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.checkout import PrivateCheckout

_USERS_OWN = ("branch.", "remote.")


@dataclass(frozen=True)
class Fingerprint:
    """Hashes by name; two of them are compared."""

    parts: tuple[tuple[str, str], ...]

    @classmethod
    def take(cls, repository: Repository, checkout: PrivateCheckout, run_id: str) -> Fingerprint:
        """Return how things stand now."""
        common = repository.common_dir
        parts = {
            "config": _hash(_dangerous(repository.local_config()).encode()),
            "hooks": _folder(common / "hooks"),
            "info": _folder(common / "info"),
            "private checkout": "intact" if checkout.is_intact() else "changed",
            "refs of the run": " ".join(str(repository.resolve(ref)) for ref in _own_refs(repository, run_id)),
        }
        return cls(tuple(sorted(parts.items())))

    def differs(self, repository: Repository, checkout: PrivateCheckout, run_id: str) -> str | None:
        """Return what has changed since, in one sentence, or None."""
        now = dict(Fingerprint.take(repository, checkout, run_id).parts)
        changed = [name for name, value in self.parts if now[name] != value]
        if not changed:
            return None
        return f"While the agent ran, this changed outside its view: {', '.join(changed)} of {repository.common_dir}."


def _own_refs(repository: Repository, run_id: str) -> tuple[str, str]:
    return run_ref(repository, run_id), publish_ref(repository, run_id)


def _dangerous(listing: str) -> str:
    return "\0".join(line for line in listing.split("\0") if not line.startswith(_USERS_OWN))


def _folder(folder: Path) -> str:
    if not folder.is_dir():
        return ""
    lines: list[str] = []
    for path in sorted(folder.rglob("*")):
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        lines.append(f"{path.relative_to(folder)} {path.lstat().st_mode:o} {_hash(content)}")
    return _hash("\n".join(lines).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
