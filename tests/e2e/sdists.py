"""Source distributions of real packages, downloaded once through pip as it is configured, known by their hash."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT_S: Final = 180


@dataclass(frozen=True)
class Sdist:
    """One pinned source distribution."""

    name: str
    version: str
    sha256: str

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}"


INFLECTION: Final = Sdist("inflection", "0.5.1", "1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417")
PARSE: Final = Sdist("parse", "1.20.2", "b41d604d16503c79d81af5165155c0b20f6c8d6c559efa66b4b695c3e5a0a0ce")
TOOLZ: Final = Sdist("toolz", "0.12.1", "ecca342664893f177a13dac0e6b41cbd8ac25a358e5f215316d43e2100224f4d")


def fetch(sdist: Sdist, cache: Path) -> Path:
    """Return the archive in *cache*, downloaded unless it is there; a download that fails, fails the test."""
    archive = cache / f"{sdist.stem}.tar.gz"
    if not archive.exists():
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", sdist.name]
        done = subprocess.run(
            [*argv, "--dest", str(cache), f"{sdist.name}=={sdist.version}"],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"pip could not download {sdist.stem}: {done.stderr[-2000:]}"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert digest == sdist.sha256, f"{archive} is not the {sdist.stem} that these tests were written for: {digest}"
    return archive


def unpack(sdist: Sdist, cache: Path, folder: Path) -> None:
    """Put the files of the distribution into *folder*, without what building it left behind."""
    top = f"{sdist.stem}/"
    with tarfile.open(fetch(sdist, cache)) as archive:
        for member in archive.getmembers():
            name = member.name.removeprefix(top)
            if member.isfile() and member.name.startswith(top) and ".egg-info/" not in name and name != "PKG-INFO":
                archive.extract(member.replace(name=name, deep=False), folder, filter="data")
