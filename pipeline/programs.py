"""Locates programs on the host, with the mounts that each needs to run in the box.

The box shows `/usr` and the system's other program folders; whatever lies elsewhere has to be mounted. Version managers
put scripts named `python3` on PATH that ask a database in the home folder which interpreter is meant: the question is
answered here, on the host, so that the box needs neither the script nor the home. Nothing else is
started: where an interpreter is installed is read from the files around it (ADR-R89).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Mount

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSTEM_FOLDERS: Final = tuple(Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"))
"""The folders that every box shows read-only, so that programs in them need no mount."""
SYSTEM_SETTINGS: Final = tuple(
    Path("/etc", name)
    for name in (
        "alpine-release", "alternatives", "arch-release", "ca-certificates", "crypto-policies", "debian_version",
        "ethertypes", "fedora-release", "fonts", "gai.conf", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf",
        "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "mime.types", "networks",
        "nsswitch.conf", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols", "redhat-release", "rpc",
        "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "system-release", "terminfo", "timezone",
    )
)  # fmt: skip
"""The files of `/etc` that every box shows: what says which system this is, and what libraries read of it.

`/etc/profile` stays out: a login shell would reset PATH. `/etc/ssl` as a whole stays out: it has private keys. What
tells this machine or its users from others is made up, or stays out."""

_PYTHON: Final = re.compile(r"(python|pypy)\d*(\.\d+)?t?")
_NIX_STORE: Final = Path("/nix/store")
_ASK_TIMEOUT_S: Final = 30
_SHEBANG_BYTES: Final = 256
_ASK: Final = "import json, sys; print(json.dumps(sys.executable))"
_LIBRARIES: Final = ("lib/python*/os.py", "lib64/python*/os.py", "lib/pypy*/os.py", "lib-python/*/os.py")
"""The places of an installation's standard library; the last is that of older PyPys."""
_ENVIRONMENT: Final = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share")
"""The entries of an environment that was created at the top of a repository."""


@dataclass(frozen=True)
class Program:
    """A program with the mounts that it needs in a box.

    Args:
        path: What to execute, absolute, the same inside and outside.
        mounts: Read-only mounts that it needs.
        prefix: Arguments that come before the caller's own; a script that names its interpreter through `env` is
            started as `interpreter script`, because PATH in the box is not the host's.
    """

    path: Path
    mounts: tuple[Mount, ...] = ()
    prefix: tuple[str, ...] = ()

    def argv(self, *arguments: str) -> tuple[str, ...]:
        """Return the command line of the program with these arguments."""
        return (str(self.path), *self.prefix, *arguments)


@cache
def locate(argv0: str, search_path: str | None = None) -> Program:
    """Return the program that `argv0` names on the host; the result is cached for the life of the process.

    Args:
        argv0: A name looked up on `search_path`, or a path.
        search_path: Folders divided by `:`; the PATH of this process if None.

    Raises:
        UserError: there is no such program, or it cannot be run.
    """
    found = shutil.which(argv0, path=search_path)
    if found is None:
        where = argv0 if "/" in argv0 else f"{argv0} on PATH"
        raise UserError(
            f"The program {where} was not found or may not be executed. Install it, or give its absolute path.",
            Reason.CONFIG,
            path=argv0,
        )
    path = Path(found).absolute()
    if path.parent.name == "shims":
        return locate(_behind_shim(path, search_path), search_path)
    if shebang := _shebang(path):
        return _script(path, shebang, search_path)
    if _PYTHON.fullmatch(path.name):
        return _python(path)
    return Program(path, _tidy(_links(path)))


def _behind_shim(shim: Path, search_path: str | None) -> str:
    # A folder that is called so counts only where the user has it on PATH: a repository may have one, too.
    folders = (search_path if search_path is not None else os.environ.get("PATH", "")).split(":")
    if not _PYTHON.fullmatch(shim.name) or str(shim.parent) not in folders:
        raise UserError(
            f"{shim} is a version manager's shim, which cannot run in the box. Give the program's own absolute path.",
            Reason.CONFIG,
            path=str(shim),
        )
    # In the root no file of a project chooses a version; -I and -S: no .pth file runs code here.
    try:
        asked = subprocess.run(
            [shim, "-I", "-S", "-c", _ASK],
            cwd="/",
            env={**os.environ, "PYENV_DIR": "/"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            process_group=0,  # Ctrl-C at a terminal is for the driver
            check=True,
            timeout=_ASK_TIMEOUT_S,
            text=True,
        )
        return str(json.loads(asked.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(
            f"{shim} did not say where its installation is ({error}). Give another interpreter by its absolute path.",
            Reason.CONFIG,
            path=str(shim),
        ) from None


def _shebang(path: Path) -> list[str]:
    """Return the words of a script's `#!` line, none for any other file."""
    try:
        with path.open("rb") as file:
            first = file.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
    except OSError:  # executable but not readable is legal
        return []
    if not first.startswith(b"#!"):
        return []
    return first[2:].decode(errors="surrogateescape").strip().split(maxsplit=1)


def _script(path: Path, shebang: list[str], search_path: str | None) -> Program:
    real = path.resolve()
    interpreter, *rest = shebang
    if Path(interpreter).name == "env":
        words = shlex.split(rest[0].removeprefix("-S").strip()) if rest else []
        if not words:
            raise UserError(f"The first line of {path} names no interpreter.", Reason.CONFIG, path=str(path))
        interpreter, rest = words[0], words[1:]
    runner = locate(interpreter, search_path)
    mounts = _tidy([*runner.mounts, Mount(real, real)])
    return Program(runner.path, mounts, (*runner.prefix, *rest, str(real)))


def _python(path: Path) -> Program:
    """Return an interpreter with its installation and, if it belongs to one, its virtual environment."""
    real = path.resolve()
    folders = [real.parent.parent]
    environment = path.parent.parent
    marker = environment / "pyvenv.cfg"
    if marker.is_file():
        homes = (line.partition("=") for line in marker.read_text(errors="replace").splitlines())
        folders += [Path(value.strip()).parent for key, _, value in homes if key.strip() == "home"]
    folders = [folder for folder in folders if folder.is_absolute() and _has_library(folder)]
    if not folders:
        raise UserError(
            f"Around {path} there is no installation of Python. Give another interpreter by its absolute path.",
            Reason.CONFIG,
            path=str(path),
        )
    if marker.is_file():
        folders.append(environment)
    else:
        # An interpreter finds its library from its own place, and a link that is mounted is a link no more.
        path = real
    mounts = [mount for folder in dict.fromkeys(folders) if not _is_system(folder) for mount in _folder(folder)]
    return Program(path, _tidy([*mounts, *_links(path)]))


def _has_library(folder: Path) -> bool:
    return any(True for pattern in _LIBRARIES for _ in folder.glob(pattern))


def _folder(folder: Path) -> list[Mount]:
    if folder in {Path("/"), Path.home()}:
        raise UserError(
            f"The interpreter's installation is {folder} itself, which the box must hide. Use a virtual environment.",
            Reason.CONFIG,
            path=str(folder),
        )
    shown = [folder]
    if (folder / ".git").exists():  # an environment at the top of a repository: the rest of that is not its own
        shown = [place for name in _ENVIRONMENT if (place := folder / name).exists()]
    return [Mount(place.resolve(), place) for place in shown]


def _links(path: Path) -> list[Mount]:
    """Return a mount for the file and for each symbolic link on the way to it."""
    mounts = [Mount(path.resolve(), path)]
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent / path.readlink()))
        mounts.append(Mount(path.resolve(), path))
    real = path.resolve()
    return [*mounts, Mount(real, real)]


def _tidy(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Return the mounts without those that the box or another mount already shows, outer folders first."""
    kept: list[Mount] = []
    for mount in sorted(map(_widen, mounts), key=lambda mount: len(mount.target.parts)):
        shown = any(mount.target.is_relative_to(other.target) for other in kept)
        if not shown and not _is_system(mount.target):
            kept.append(mount)
    return tuple(kept)


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM_FOLDERS)


def _widen(mount: Mount) -> Mount:
    # A nix program is spread over the store: its libraries are neighbours there, not below it.
    return Mount(_NIX_STORE, _NIX_STORE) if mount.target.is_relative_to(_NIX_STORE) else mount
