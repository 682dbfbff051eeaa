"""Packages of npm as they are published, downloaded once through npm as it is configured, known by their hash."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT_S: Final = 180
_TOP: Final = "package/"


@dataclass(frozen=True)
class Tarball:
    """One pinned package."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


PROCESS_WARNING: Final = Tarball(
    "process-warning", "5.0.0", "9220188a409e3593eb8fb481d2f4714edfb8514aedfb8711a713fc2338fc6b92"
)


def fetch(package: Tarball, cache: Path) -> Path:
    """Return the archive in *cache*, downloaded unless it is there; a download that fails, fails the test."""
    archive = cache / package.file
    if not archive.exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is not installed"
        done = subprocess.run(
            [npm, "pack", "--silent", "--pack-destination", str(cache), f"{package.name}@{package.version}"],
            cwd=cache,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"npm could not download {package.file}: {done.stderr[-2000:]}"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert digest == package.sha256, f"{archive} is not the package that these tests were written for: {digest}"
    return archive


def unpack(package: Tarball, cache: Path, folder: Path) -> None:
    """Put the files of the package into *folder*."""
    with tarfile.open(fetch(package, cache)) as archive:
        for member in archive.getmembers():
            if member.isfile() and member.name.startswith(_TOP):
                archive.extract(member.replace(name=member.name.removeprefix(_TOP), deep=False), folder, filter="data")
