"""Development shells: reads what a wrapper such as `nix develop -c` sets, once on the host, for use in the box.

A wrapper needs what the box hides: a store to build into, a daemon, the home folder. So it is started here, once for a
driver and before any agent, around a program that only prints its environment. What it adds to PATH, the variables
that builds and tests read, and those that a nix shell declares go into the box; the rest stays out: it may be secret.
Where a flake or an `.envrc` of the project runs code, it runs outside the box: such a command needs trust
(`config.trust`).

A shell has variables of the project's own, such as where test data is, that no list of ours can name. Those that the
derivation declares are no secrets: they lie in the store, for everybody to read. What a hook of the shell sets is not
among them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any, Final

import anyio

from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, Program
from pipeline.testing.languages.protocol import Lookup, Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


async def answer_of(
    argv: Sequence[str | Path], *, folder: Path, environ: Mapping[str, str], stdout: int = PIPE, stderr: int = DEVNULL
) -> tuple[int, bytes]:
    """Run a program to its end and return exit code and output; after a cancellation nothing is left running.

    Args:
        argv: The program and its arguments; it can read nothing from the terminal, nor be ended by it.
        folder: Where it runs.
        environ: Its whole environment.
        stdout: What it prints is returned if this is `PIPE`; else where it goes.
        stderr: The same for what it prints as errors; one of both is returned at most.

    Raises:
        OSError: it cannot be started.
    """
    said = bytearray()
    process = await anyio.open_process(
        [str(word) for word in argv],
        cwd=folder,
        env=dict(environ),
        stdin=DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,  # Ctrl-C at the terminal is for the driver
    )
    stream = process.stdout or process.stderr
    try:
        if stream is not None:
            async for part in stream:
                said += part
        return await process.wait(), bytes(said)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()


_SHELLS: Final[Mapping[str, tuple[str, ...]]] = {
    "flake.nix": ("nix", "develop", "-c"),
    "shell.nix": ("nix", "develop", "-f", "shell.nix", "-c"),
}
_DEVELOP: Final = "develop"
_STARTS: Final = frozenset({"-c", "--command"})
_INSTALLABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_NOT_TAKEN: Final = re.compile(
    r"(HOME|TMP|TMPDIR|TEMP|TEMPDIR|SHELL|SHLVL|TERM|USER|LOGNAME|PATH|HOST_PATH|PWD|OLDPWD|CONFIG_SHELL|IFS|ENV|BASH_ENV"
    r"|LD_PRELOAD|LD_AUDIT|NODE_OPTIONS|CARGO_TARGET_DIR|GOCACHE|GOTMPDIR)"
    r"|(NIX|PYTHON|PYTEST|GIT|SSH|XDG|BASH|REDFIRST)_?.*"
)
"""Variables that belong to the nix build, to the user, or to the measurement."""


def asking(wrapper: Sequence[str]) -> tuple[str, ...] | None:
    """Return the arguments for nix that print a wrapper's declared variables; None for other wrappers."""
    words = tuple(wrapper)
    if Path(words[0]).name != "nix" or _DEVELOP not in words:
        return None
    at = words.index(_DEVELOP)
    rest = words[at + 1 : -1] if words[-1] in _STARTS else words[at + 1 :]
    return (*words[1:at], "print-dev-env", "--json", *rest)


def declared(said: str | None) -> dict[str, str]:
    """Return the variables in the output of `nix print-dev-env --json`; none if it is something else."""
    try:
        document: Any = json.loads(said or "")
        found: dict[str, dict[str, Any]] = document["variables"]
        values = {name: one.get("value") for name, one in found.items() if one.get("type") == "exported"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    names = [name for name in values if _INSTALLABLE.fullmatch(name) and not _NOT_TAKEN.fullmatch(name)]
    return {name: value for name in names if isinstance(value := values[name], str)}


def advice(worktree: Path, *runner: str) -> str:
    """Return advice for a project whose development shell is not used; empty if it has none."""
    file = next((name for name in _SHELLS if (worktree / name).is_file()), None)
    if file is None:
        return ""
    words = json.dumps([*_SHELLS[file], *runner])
    return f" The project has a {file}: with its shell that is command = {words}."


LIMIT_S: Final = 900.0
"""The seconds that a wrapper may take: the first `nix develop` builds the shell."""

_ROOT: Final = Path("/")
UNSEARCHED: Final = {"PYENV_DIR": "/", "NODENV_DIR": "/"}
"""Variables that reset where version managers search for a project's files, in case one of them started redfirst."""
_NIX_STORE: Final = Path("/nix/store")
_PRINT: Final = ("/usr/bin/env", "-0")
_CARRIED: Final = (
    # where libraries, headers and data of other packages are
    "ACLOCAL_PATH", "CMAKE_INCLUDE_PATH", "CMAKE_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "CPATH", "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH", "FONTCONFIG_FILE", "GI_TYPELIB_PATH", "LD_LIBRARY_PATH", "LIBCLANG_PATH", "LIBRARY_PATH",
    "LOCALE_ARCHIVE", "OPENSSL_CONF", "OPENSSL_DIR", "OPENSSL_INCLUDE_DIR", "OPENSSL_LIB_DIR", "OPENSSL_NO_VENDOR",
    "OPENSSL_STATIC", "PKG_CONFIG_", "PROTOC", "PROTOC_INCLUDE", "SSL_CERT_FILE", "TZDIR", "XDG_DATA_DIRS",
    # which compilers, with which flags
    "AR", "AS", "BINDGEN_", "CC", "CFLAGS", "CPP", "CPPFLAGS", "CXX", "CXXFLAGS", "LD", "LDFLAGS", "NM", "OBJCOPY",
    "RANLIB", "STRIP", "NIX_BINTOOLS", "NIX_CC", "NIX_CFLAGS_", "NIX_HARDENING_ENABLE", "NIX_LD", "NIX_LDFLAGS",
    "NIX_SSL_CERT_FILE",
    # languages
    "CGO_", "CONDA_PREFIX", "GOFLAGS", "GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "NODE_PATH", "RUSTDOCFLAGS", "RUSTFLAGS",
    "RUST_SRC_PATH",
)  # fmt: skip
"""Variables that builds and tests read; a name that ends in `_` is a prefix. `NIX_` as a whole would be too much:
NIX_CONFIG can hold access tokens."""
_OF_TARGETS: Final = re.compile(r"(AR|CC|CFLAGS|CXX|CXXFLAGS)_\w+|CARGO_TARGET_\w+_(LINKER|RUSTFLAGS)")
"""Such variables for a single target: `CC_x86_64_unknown_linux_gnu`."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_GREETING: Final = re.compile(r"\A[^\0]*\n(?=[A-Za-z_]\w*=)")
"""Greeting lines before the first variable, whose value is assumed to contain no such line."""


@dataclass(frozen=True)
class Shell:
    """The search path, variables and mounts that a wrapper sets; all empty without a wrapper.

    `search_path` is where programs are looked up on the host; `variables` go into the box, PATH among them when the
    shell changes it; `mounts` show the folders that it adds to PATH.
    """

    search_path: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[Mount, ...] = ()

    def variables_for(self, prefix: Path) -> dict[str, str]:
        """Return the variables for a language installed at `prefix`, whose own programs come first on PATH."""
        path = {"PATH": box_path(prefix, self.variables)} if "PATH" in self.variables else {}
        return {**self.variables, **path}

    def mounts_for(self, program: Program, prefix: Path, *more: Path) -> tuple[Mount, ...]:
        """Return the mounts for a program of a language installed at `prefix`, and of the folders `more` if present."""
        further = (Mount(place.resolve(), place) for place in more if place.is_dir())
        folders = tuple(dict.fromkeys((*_installation(prefix), *further, *self.mounts)))
        own = (one for one in program.mounts if not any(one.target.is_relative_to(known.target) for known in folders))
        return (*folders, *own)


def split(
    command: Sequence[str], is_runner: Callable[[Sequence[str]], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return a configured command in two parts, before the test runner and from it on; None if it has no runner.

    Args:
        command: The words.
        is_runner: Whether the runner begins with these words; the first place where it does counts.
    """
    words = tuple(command)
    return next(((words[:at], words[at:]) for at in range(len(words)) if is_runner(words[at:])), None)


async def entered(wrapper: Sequence[str], worktree: Path, search_path: str, name: str) -> Shell | Missing:
    """Return the shell that a wrapper makes, asked once; an empty one without a wrapper.

    Args:
        wrapper: The words before the test runner; a program with a slash is looked up in the worktree.
        worktree: Where it is started.
        search_path: PATH of the user.
        name: The toolchain, for what is said when it does not work.
    """
    if not wrapper:
        return Shell(search_path)
    shown = " ".join(wrapper)
    program = found_program(wrapper[0], worktree, search_path)
    if program is None:
        return Missing(f"[toolchains.{name}] command: {wrapper[0]} was not found.")
    said = await ask((program, *wrapper[1:], *_PRINT), search_path, limit_s=LIMIT_S, folder=worktree)
    if said is None:
        return Missing(f"[toolchains.{name}] command: `{shown}` does not start a program given behind it.")
    words = asking(wrapper)
    answer = None
    if words is not None:  # what it does not tell is not carried, and that is all
        answer = await ask((program, *words), search_path, limit_s=LIMIT_S, folder=worktree)
    return _shell(variables_in(said), search_path, declared(answer))


async def started_by(program: str, lookup: Lookup) -> tuple[Shell, tuple[str, ...]] | Missing:
    """Return the shell in which a configured `PROGRAM test` is started, and the words behind that.

    What comes before the program in the command is run here (`nix develop -c go test`).

    Args:
        program: The program, after which its toolchain is called.
        lookup: What is configured, and where.
    """
    configured = lookup.configured or (program, "test")
    words = split(configured, lambda some: Path(some[0]).name == program and some[1:2] in {(), ("test",)})
    if words is None:
        return Missing(f"[toolchains.{program}] command does not name `{program} test`: {' '.join(configured)}")
    shell = await entered(words[0], lookup.worktree, lookup.search_path, program)
    return shell if isinstance(shell, Missing) else (shell, words[1][2:])


def found_program(word: str, worktree: Path, search_path: str) -> str | None:
    """Return the path of a configured program: relative to the worktree if it has a slash, else looked up on PATH."""
    if "/" in word:
        return str(worktree / word) if os.access(worktree / word, os.X_OK) else None
    return shutil.which(word, path=search_path)


async def ask(
    argv: Sequence[str],
    search_path: str,
    *,
    limit_s: float,
    environ: Mapping[str, str] | None = None,
    folder: Path = _ROOT,
) -> str | None:
    """Return a program's stripped output; None if it does not run, fails, or prints nothing.

    Args:
        argv: What to run.
        search_path: Its PATH.
        limit_s: How long it may take.
        environ: Variables beside those of this process.
        folder: Where; in the root no file of a project chooses what runs.
    """
    given = {**os.environ, **(environ or {}), "PATH": search_path}
    with anyio.move_on_after(limit_s):
        try:
            code, said = await answer_of(argv, folder=folder, environ=given)
        except OSError:
            return None
        return said.decode("utf-8", "replace").strip() or None if code == 0 else None
    return None


def variables_in(said: str) -> dict[str, str]:
    """Return the variables in the output of `env -0`, without a shell's greeting before or messages after them."""
    pairs = (entry.partition("=") for entry in _GREETING.sub("", said, count=1).split("\0"))
    return {name: value for name, equals, value in pairs if equals and _NAME.fullmatch(name)}


def box_path(prefix: Path, variables: Mapping[str, str]) -> str:
    """Return PATH for a command in the box: the language's programs, those of its shell, the system's."""
    rest = variables.get("PATH", "").split(":")
    return ":".join(dict.fromkeys(filter(None, (str(prefix / "bin"), *rest, *SYSTEM_PATH))))


SYSTEM_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""The folders on every box's PATH."""


def _shell(said: Mapping[str, str], search_path: str, declared: Mapping[str, str]) -> Shell:
    path = said.get("PATH", search_path)
    theirs = set(search_path.split(":"))
    added = [Path(folder) for folder in dict.fromkeys(path.split(":")) if folder.startswith("/")]
    # who starts us inside such a shell has its folders on PATH already
    new = [folder for folder in added if str(folder) not in theirs or folder.is_relative_to(_NIX_STORE)]
    added = [folder for folder in new if not _is_system(folder)]
    # what a hook of the shell has set since then may be anything, a secret too
    variables = {key: value for key, value in said.items() if is_carried(key) or declared.get(key) == value}
    if added:
        variables["PATH"] = ":".join(dict.fromkeys((*map(str, added), *SYSTEM_PATH)))
    return Shell(path, variables, tuple(dict.fromkeys(_mounts(added, variables))))


def is_carried(name: str) -> bool:
    """Return whether a shell's variable is set in the box; PATH is judged folder by folder."""
    several = tuple(entry for entry in _CARRIED if entry.endswith("_"))
    return name in _CARRIED or name.startswith(several) or _OF_TARGETS.fullmatch(name) is not None


def _mounts(added: Sequence[Path], variables: Mapping[str, str]) -> Iterator[Mount]:
    """Yield the mounts for added folders of PATH; for nix the whole store, in which packages are spread.

    A folder that holds the home folder, or is it, is never shown.
    """
    home = Path.home()
    for folder in added:
        if folder.is_dir() and not home.is_relative_to(folder):
            if not folder.is_relative_to(_NIX_STORE):
                yield Mount(folder.resolve(), folder)
            if folder.resolve().is_relative_to(_NIX_STORE):
                yield Mount(_NIX_STORE, _NIX_STORE)
    if str(_NIX_STORE) in " ".join(variables.values()) and _NIX_STORE.is_dir():
        yield Mount(_NIX_STORE, _NIX_STORE)


def _installation(prefix: Path) -> tuple[Mount, ...]:
    """Return the mount of an installation outside of system folders: its programs start others beside them."""
    if _is_system(prefix) or Path.home().is_relative_to(prefix):
        return ()
    shown = _NIX_STORE if prefix.is_relative_to(_NIX_STORE) else prefix
    return (Mount(shown.resolve(), shown),)


def _is_system(folder: Path) -> bool:
    return any(folder.is_relative_to(known) for known in SYSTEM_FOLDERS)
