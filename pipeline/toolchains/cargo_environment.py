"""Finds the Rust toolchain that runs a project's tests, on the host, before any agent ran.

rustup puts programs on PATH that ask its settings which toolchain is meant, and may fetch one: the question is answered
here, once, with fetching off, and the box is shown the toolchain's own folder. Nothing of the project is run.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, locate
from pipeline.toolchains.protocol import Environment, Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

HINT: Final = "install Rust (https://rustup.rs, or the packages `cargo` and `rustc`) and a C linker (`cc`)"

_ASK_TIMEOUT_S: Final = 60.0
_NIX_STORE: Final = Path("/nix/store")
_PINS: Final = ("rust-toolchain.toml", "rust-toolchain")
_CARRIED: Final = ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "AR", "NIX_")
"""What of a development shell's environment a build needs, beside PATH; names that end in `_` are prefixes."""


async def find_environment(
    worktree: Path, configured: tuple[str, ...] | None, search_path: str
) -> Environment | Missing:
    """Return how the project's tests are run, or why that is not known.

    Args:
        worktree: The checkout the user stands in.
        configured: `[toolchains.cargo] command`, if any: what comes before `cargo` makes the environment (`nix develop
            -c cargo test`) and is run here, what comes after `test` is given to it.
        search_path: PATH of the user.
    """
    if pinned := _pinned_by_path(worktree):
        return Missing(f"{pinned} names a toolchain by its path, which would run a program of the project's choice.")
    wrapper, arguments = _split(configured or ("cargo", "test"))
    if wrapper is None:
        return Missing(f"[toolchains.cargo] command does not name `cargo test`: {' '.join(configured or ())}")
    shell = await _shell(wrapper, worktree, search_path)
    if isinstance(shell, Missing):
        return shell
    rustc = shutil.which("rustc", path=shell.get("PATH", search_path))
    cargo = shutil.which("cargo", path=shell.get("PATH", search_path))
    if rustc is None or cargo is None:
        return Missing(f"No {'rustc' if rustc is None else 'cargo'} was found on PATH: {HINT}.")
    sysroot = await _ask((rustc, "--print", "sysroot"), worktree, search_path)
    if sysroot is None:
        return Missing(f"{rustc} does not say where its toolchain is: {HINT}; or rustup cannot find the one asked for.")
    prefix = Path(sysroot)
    own = prefix / "bin" / "cargo"
    program = locate(str(own) if os.access(own, os.X_OK) else cargo)
    version = await _ask((str(program.path), "--version"), worktree, search_path)
    compiler = await _ask((rustc, "--version"), worktree, search_path)
    if version is None or compiler is None:
        return Missing(f"{program.path} cannot be started: {HINT}.")
    folders = (*_toolchain(prefix), *_registry())
    own_mounts = [
        mount for mount in program.mounts if not any(mount.target.is_relative_to(one.target) for one in folders)
    ]
    return Environment(
        command=program.argv("test", *arguments),
        mounts=(*folders, *own_mounts),
        prefix=prefix,
        versions=(compiler, version),
        variables={"CARGO_HOME": str(cargo_home()), "CARGO_NET_OFFLINE": "true", **_carried(shell)},
    )


def cargo_home() -> Path:
    """Return the folder in which the user's cargo keeps what it fetched."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


def _toolchain(prefix: Path) -> tuple[Mount, ...]:
    if any(prefix.is_relative_to(folder) for folder in SYSTEM_FOLDERS):
        return ()
    shown = _NIX_STORE if prefix.is_relative_to(_NIX_STORE) else prefix
    return (Mount(shown.resolve(), shown),)


def _registry() -> tuple[Mount, ...]:
    """Return what was fetched before, never the folder itself: it holds the credentials of registries as well."""
    places = [cargo_home() / name for name in ("registry", "git")]
    return tuple(Mount(place.resolve(), place) for place in places if place.is_dir())


def _split(command: tuple[str, ...]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return what makes the environment, and the further arguments of `cargo test`; None if that is not in it."""
    places = [at for at, word in enumerate(command) if Path(word).name == "cargo"]
    if not places or command[places[-1] + 1 : places[-1] + 2] not in {(), ("test",)}:
        return None, ()
    return command[: places[-1]], command[places[-1] + 2 :]


async def _shell(wrapper: tuple[str, ...], worktree: Path, search_path: str) -> Mapping[str, str] | Missing:
    """Return the environment that a wrapper makes; asked once, outside the box, which it could not work in."""
    if not wrapper:
        return {}
    program = shutil.which(wrapper[0], path=search_path)
    said = await _ask((program, *wrapper[1:], "/usr/bin/env", "-0"), worktree, search_path) if program else None
    if said is None:
        return Missing(f"[toolchains.cargo] command: {' '.join(wrapper)} does not start")
    pairs = (entry.partition("=") for entry in said.split("\0"))
    return {name: value for name, _, value in pairs if name}


def _carried(shell: Mapping[str, str]) -> dict[str, str]:
    wanted = ("PATH", *_CARRIED)
    return {name: value for name, value in shell.items() if any(_is(name, want) for want in wanted)}


def _is(name: str, wanted: str) -> bool:
    return name.startswith(wanted) if wanted.endswith("_") else name == wanted


def _pinned_by_path(worktree: Path) -> str | None:
    for name in _PINS:
        try:
            table = tomllib.loads((worktree / name).read_text(encoding="utf-8")).get("toolchain", {})
        except (OSError, ValueError):  # the older form is a bare name
            continue
        if isinstance(table, dict) and "path" in table:
            return name
    return None


async def _ask(argv: tuple[str, ...], worktree: Path, search_path: str) -> str | None:
    """Return what a program prints, None if it does not run; a toolchain that is not there is not fetched."""
    environ = {**os.environ, "PATH": search_path, "RUSTUP_AUTO_INSTALL": "0", "CARGO_NET_OFFLINE": "true"}
    with anyio.move_on_after(_ASK_TIMEOUT_S):
        try:
            done = await anyio.run_process(argv, cwd=worktree, env=environ, stdin=DEVNULL, stderr=DEVNULL, check=False)
        except OSError:
            return None
        return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None
    return None
