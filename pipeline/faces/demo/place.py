"""Creates the demo's folder: a small repository, the script of its agents, and a configuration of its own.

The run in it is a process with a fixed environment: it reads neither the user's redfirst configuration nor their git
configuration, and it writes nothing outside the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.files import disk

if TYPE_CHECKING:
    from collections.abc import Mapping

ISSUE: Final = "SHOP-1"
BASE: Final = "main"
BRANCH: Final = "shop-1"
_DATA: Final = Path(__file__).parent
_PROJECT: Final = _DATA / "project"
_IDENTITY: Final = {"user.name": "redfirst demo", "user.email": "demo@localhost"}
_NOT_OURS: Final = ("GIT_", "REDFIRST_", "XDG_", "SOURCE_DATE_EPOCH")
_DEPTH: Final = "REDFIRST_DEPTH"  # kept: a demo does not run inside an agent either
_CONFIG: Final = """\
sandbox = "{sandbox}"

[agents]
backend = "scripted"
script = {script}

[toolchains.pytest]
command = {command}

[probes]
mutants = 4
"""


@dataclass(frozen=True)
class Place:
    """The folder of one demo."""

    folder: Path

    @property
    def repository(self) -> Path:
        """Return the worktree of the example project."""
        return self.folder / "shop"

    @property
    def script(self) -> Path:
        """Return the file with the agents' answers."""
        return self.folder / "agents.yaml"

    @property
    def run_folder(self) -> Path:
        """Return the folder of the run, the first one of the demo's issue."""
        return self.repository / ".workflow" / f"run-{ISSUE}"

    @property
    def environ(self) -> Mapping[str, str]:
        """Return the environment variables for every process of the demo."""
        kept = {k: v for k, v in os.environ.items() if k == _DEPTH or not k.startswith(_NOT_OURS)}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def git(self, *argv: str) -> str:
        """Run git in the example repository and return its output.

        Raises:
            UserError: git failed.
        """
        done = subprocess.run(
            ["git", *argv],
            cwd=self.repository,
            env=self.environ,
            capture_output=True,
            text=True,
            process_group=0,
            check=False,
        )
        if done.returncode:
            raise UserError(f"git {argv[0]} failed in {self.repository}: {done.stderr.strip()}", Reason.USAGE)
        return done.stdout


def lay_out(folder: Path | None, *, sandbox: str) -> Place:
    """Create the demo's folder, repository and configuration, and return them; nothing of the issue is begun.

    Args:
        folder: Where to; a new temporary folder if None.
        sandbox: `auto` or `none`.

    Raises:
        UserError: the folder is not empty, the disk does not take it, or git is not there.
    """
    if shutil.which("git") is None:
        raise UserError("git is not installed, or not on PATH.", Reason.USAGE)
    place = Place(_new_folder(folder))
    with disk(place.folder):
        # without modules that an installer compiled
        for path in (one for one in _PROJECT.rglob("*") if one.is_file() and "__pycache__" not in one.parts):
            target = place.repository / path.relative_to(_PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        (place.folder / "home").mkdir()
        _configure(place, sandbox)
    place.git("init", "--quiet", "--template=", f"--initial-branch={BASE}")
    for key, value in _IDENTITY.items():
        place.git("config", "--local", key, value)
    place.git("add", "--all")
    place.git("commit", "--quiet", "--message=A very small shop")
    return place


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="redfirst-demo-")).resolve()
    path = folder.expanduser().absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(
            f"{path} is there already and is not an empty folder. Name one that is not there yet.",
            Reason.USAGE,
            path=str(path),
            actions=("redfirst demo",),
        )
    with disk(path):
        path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def _configure(place: Place, sandbox: str) -> None:
    place.script.write_bytes((_DATA / place.script.name).read_bytes())
    path = place.folder / "config" / "redfirst" / "config.toml"
    path.parent.mkdir(parents=True)
    # pytest is a dependency of ours, so the interpreter that runs us can run the example's tests
    command = [sys.executable, "-m", "pytest"]
    text = _CONFIG.format(sandbox=sandbox, script=_toml(str(place.script)), command=_toml(command))
    path.write_text(text, encoding="utf-8")


def _toml(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)  # these are written the same way in TOML
