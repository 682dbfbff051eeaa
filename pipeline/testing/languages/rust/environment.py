"""Finds the Rust toolchain that runs a project's tests, on the host, before any agent ran.

rustup puts programs on PATH that ask its settings which toolchain is meant, and may fetch one: the question is answered
here, once, with fetching off, in the root, where no file of a project chooses. The box is shown the toolchain's own
folder.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from pipeline.programs import locate
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.protocol import Environment, Lookup, Missing

HINT: Final = "install Rust (https://rustup.rs, or the packages `cargo` and `rustc`) and a C linker (`cc`)"

_ASK_TIMEOUT_S: Final = 60.0
_FIXED: Final = {"CARGO_NET_OFFLINE": "true"}


async def find_environment(lookup: Lookup) -> Environment | Missing:
    """Return the environment of the project's tests, or why it is missing."""
    found = await devshell.started_by("cargo", lookup)
    if isinstance(found, Missing):
        return found
    shell, arguments = found
    rustc = shutil.which("rustc", path=shell.search_path)
    cargo = shutil.which("cargo", path=shell.search_path)
    if rustc is None or cargo is None:
        which, shown = "rustc" if rustc is None else "cargo", devshell.advice(lookup.worktree, "cargo", "test")
        return Missing(f"No {which} was found on PATH: {HINT}.{shown}")
    sysroot = await _ask((rustc, "--print", "sysroot"), shell.search_path)
    if sysroot is None:
        return Missing(f"{rustc} does not say where its toolchain is: {HINT}.")
    prefix = Path(sysroot)
    own = prefix / "bin" / "cargo"
    program = locate(str(own) if os.access(own, os.X_OK) else cargo)
    version = await _ask((str(program.path), "--version"), shell.search_path)
    compiler = await _ask((rustc, "--version"), shell.search_path)
    if version is None or compiler is None:
        return Missing(f"{program.path} cannot be started: {HINT}.")
    return Environment(
        command=program.argv("test", *arguments),
        # not the whole of cargo's folder, which has registry credentials as well
        mounts=shell.mounts_for(program, prefix, cargo_home() / "registry", cargo_home() / "git"),
        prefix=prefix,
        versions=(compiler, version),
        variables={**shell.variables_for(prefix), **_FIXED, "CARGO_HOME": str(cargo_home())},
    )


def cargo_home() -> Path:
    """Return the folder of the user's cargo with the fetched packages."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


async def _ask(argv: tuple[str, ...], search_path: str) -> str | None:
    """Return a program's output, None if it does not run; a missing toolchain is not fetched."""
    environ = {"RUSTUP_AUTO_INSTALL": "0", **_FIXED}
    return await devshell.ask(argv, search_path, limit_s=_ASK_TIMEOUT_S, environ=environ)
