"""Finds the interpreter that runs a project's tests, on the host, before any agent ran.

Order: the configured command; with `uv.lock` the project's `.venv`, else a private environment made from the lock; the
`.venv` or `venv` of the worktree or of the main checkout; the python on PATH. The first that has pytest counts.

An interpreter is started as `-I -S`, in the root, and computes its answer from files (`environment_facts.py`). Which
interpreter a `pytest` program belongs to is read from its first lines.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL, PIPE, SubprocessError, run
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from pydantic import ValidationError

from pipeline.data_types import Frozen
from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, locate
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.environments.devshell import answer_of
from pipeline.testing.languages.protocol import Environment, Lookup, Missing, PlacedFolder
from pipeline.testing.languages.python.toolchain import is_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


PLACES: Final = (".venv", "venv")
"""The folders of a project's own environment; with a lock only the first is uv's."""

_NOTHING: Final = Path("/dev/null")
_PLAIN: Final = 'give it as ["PYTHON", "-m", "pytest"]'
_PROBE_TIMEOUT_S: Final = 60.0
_SYNC_TIMEOUT_S: Final = 900.0
PYTEST: Final = frozenset({"pytest", "py.test"})
_PYTHON: Final = re.compile(r"(python|pypy)\d*(\.\d+)?t?")
_STARTERS: Final = frozenset({"coverage", "hatch", "nox", "pdm", "pipenv", "poetry", "rye", "tox", "uv", "uvx"})
"""Programs that find the interpreter themselves and make no development shell."""

_SOURCES: Final = "src"
_INTERPRETER_PLUGIN: Final = """\
import os, sys
with open(os.environ["REDFIRST_PROBE"], "w") as out:
    out.write(sys.executable)
os._exit(0)
"""
"""A pytest plugin that writes the interpreter's path and exits before conftest.py of the project is loaded on the
host."""


async def find_environment(lookup: Lookup) -> Environment | Missing:
    """Return the environment of the project's tests, or why it is missing; a configured command excludes all others."""
    worktree, search_path = lookup.worktree, lookup.search_path
    checkouts = tuple(dict.fromkeys((worktree, lookup.main)))
    if lookup.configured:
        return await _from_command(lookup.configured, worktree, checkouts, search_path)
    tried: list[str] = []

    async def of(python: Path) -> Environment | None:
        facts = await _ask(python, {"PATH": search_path})
        return environment(facts, ("-m", "pytest"), checkouts) if facts is not None and facts.pytest else None

    for folders, private in _levels(lookup):
        uv = lock_tool(folders[0], search_path)
        for python in interpreters(folders, locked=uv is not None):
            tried.append(str(python.parent.parent))
            if (env := await of(python)) is not None:
                return env
        if uv is not None:
            problem = await _sync(uv, folders[0], private, search_path)
            why = problem or "pytest is not in uv.lock"
            missing = Missing(f"`uv sync --frozen` gave no environment with pytest: {why}")
            return missing if problem else await of(private / "bin" / "python") or missing
    for found in filter(None, (shutil.which(name, path=search_path) for name in ("python3", "python"))):
        tried.append(found)
        if (env := await of(Path(found))) is not None:
            return env
    looked = ", ".join(tried) or "no interpreter on PATH, no .venv"
    shell = devshell.advice(worktree, "pytest")
    own = interpreters(checkouts, locked=False)
    remedy = f"{own[0]} -m pip install pytest, or: uv pip install --python {own[0]} pytest" if own else ""
    return Missing(
        f"No interpreter with pytest was found (looked at: {looked}). Set [toolchains.pytest] command.{shell}", remedy
    )


def _levels(lookup: Lookup) -> Iterator[tuple[tuple[Path, ...], Path]]:
    """Yield the folders in which an environment may be, the nearest first, and where one is made from their lock.

    Members of a workspace share that of its root.
    """
    own = tuple(dict.fromkeys((lookup.worktree, lookup.main)))
    outer = tuple(one for one in dict.fromkeys(lookup.outer) if one not in own)
    shared = lookup.state / "venv"
    digest = hashlib.sha256(os.fsencode(lookup.worktree)).hexdigest()[:12]
    yield own, lookup.state / f"venv-{lookup.worktree.name}-{digest}" if outer else shared
    if outer:
        yield outer, shared


def lock_tool(worktree: Path, search_path: str) -> str | None:
    """Return the path of uv if the project has a uv lock and uv is installed, else None."""
    return shutil.which("uv", path=search_path) if (worktree / LOCK).is_file() else None


def interpreters(checkouts: Iterable[Path], *, locked: bool) -> tuple[Path, ...]:
    """Return the interpreters of the checkouts' environments, in the order in which they are tried."""
    names = PLACES[:1] if locked else PLACES
    found = (checkout / name / "bin" / "python" for checkout in checkouts for name in names)
    return tuple(python for python in found if os.access(python, os.X_OK))


async def _from_command(
    configured: tuple[str, ...], worktree: Path, checkouts: Sequence[Path], search_path: str
) -> Environment | Missing:
    """Return the environment behind a configured command, through wrappers such as `uv run` and `nix develop -c`.

    Of a development shell the variables count too; what starts pytest by itself (`uv run`) is left to do that.
    """
    shown = " ".join(configured)
    words = devshell.split(configured, lambda words: Path(words[0]).name in PYTEST)
    if words is None:
        return Missing(f"[toolchains.pytest] command does not name pytest: {shown}")
    wrapper = _shell_of(words[0])
    shell = await devshell.entered(wrapper, worktree, search_path, "pytest")
    if isinstance(shell, Missing):
        return shell
    starter, rest = words[0][len(wrapper) :], words[1][1:]
    first, *more = (*starter, words[1][0])
    found = devshell.found_program(first, worktree, shell.search_path)
    if found is None:
        return Missing(f"[toolchains.pytest] command: {first} was not found")
    inside = {**shell.variables, "PATH": shell.search_path}
    python: Path | None = Path(found)
    if not starter:
        python = interpreter_of(Path(found), shell.search_path)
    if (python is None and wrapper) or Path(first).name in _STARTERS:
        python = await _started((found, *more), worktree, inside)
    facts = await _ask(python, inside) if python is not None else None
    if facts is None or not facts.pytest:
        return Missing(
            f"[toolchains.pytest] command does not start pytest: {shown}"
            + ("" if python is not None else f"; the text of {found} does not say with which interpreter: {_PLAIN}")
        )
    script = Path(facts.executable).parent / "pytest"
    as_module = starter[-1:] == ("-m",) or not script.is_file()
    env = environment(facts, ("-m", "pytest", *rest) if as_module else (str(script), *rest), checkouts)
    mounts = tuple(dict.fromkeys((*env.mounts, *shell.mounts)))
    return replace(env, mounts=mounts, variables=shell.variables_for(env.prefix))


def _shell_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words before pytest that make a development shell.

    A python that is told to run pytest as a module belongs to pytest, and so does what starts it by itself.
    """
    if words[-1:] == ("-m",):
        places = [at for at, word in enumerate(words) if _PYTHON.fullmatch(Path(word).name)]
        words = words[: places[-1]] if places else ()
    return () if not words or Path(words[0]).name in _STARTERS else words


def environment(facts: Facts, arguments: tuple[str, ...], checkouts: Sequence[Path]) -> Environment:
    """Return the environment of an interpreter that has pytest.

    Raises:
        UserError: the interpreter's installation cannot be shown in a box.
    """
    program = locate(facts.executable)
    roots = _editable_roots(facts, checkouts)
    sources = () if roots else _source_folders(checkouts[0], facts)
    return Environment(
        command=program.argv(*arguments),
        mounts=(*program.mounts, *_elsewhere(facts, checkouts)),
        editable_roots=roots,
        prefix=Path(facts.prefix),
        versions=(f"Python {facts.python}", f"pytest {facts.pytest}", *(f"imports from {name}/" for name in sources)),
        plugins=frozenset(facts.plugins),
        source_folders=sources,
    )


def _source_folders(worktree: Path, facts: Facts) -> tuple[str, ...]:
    """Return `src` if tests could not import from it otherwise: it is no package, and none of it is installed."""
    folder = worktree / _SOURCES
    if not folder.is_dir() or (folder / "__init__.py").exists():
        return ()
    names = {entry.name.removesuffix(".py") for entry in folder.iterdir() if _is_importable(entry)}
    known = (Path(entry) for entry in facts.path if Path(entry).is_dir())
    installed = {entry.name.partition(".")[0] for place in known for entry in place.iterdir()}
    return (_SOURCES,) if names and not names & installed else ()


def _is_importable(entry: Path) -> bool:
    return entry.name.removesuffix(".py").isidentifier() and (
        entry.suffix == ".py" or (entry.is_dir() and any(entry.glob("*.py")))
    )


def _editable_roots(facts: Facts, checkouts: Sequence[Path]) -> tuple[PlacedFolder, ...]:
    """Return the folders from which editable installs import this project; the project folder if only that is known."""
    installed = (Path(facts.prefix), Path(facts.base_prefix))
    direct = [Path(entry) for entry in (*facts.path, *facts.mapped)]
    roots = [root for path in direct if not _under(path, installed) and (root := _root_of(path, checkouts))]
    for project in map(Path, facts.editable):
        if not any(_under(root.path, [project]) for root in roots) and (root := _root_of(project, checkouts)):
            roots.append(root)
    return tuple(sorted(set(roots), key=lambda root: root.path))


def _root_of(path: Path, checkouts: Sequence[Path]) -> PlacedFolder | None:
    folder = path if path.is_dir() else path.parent
    for checkout in checkouts:
        for base in (checkout, checkout.resolve()):
            if folder.is_dir() and folder.is_relative_to(base):
                return PlacedFolder(folder, folder.relative_to(base).as_posix())
    return None


def _elsewhere(facts: Facts, checkouts: Sequence[Path]) -> tuple[Mount, ...]:
    """Return mounts of other folders that the environment imports from, such as editable installs of other projects."""
    known = [Path(facts.prefix), Path(facts.base_prefix), *SYSTEM_FOLDERS]
    known += [base for checkout in checkouts for base in (checkout, checkout.resolve())]
    paths = sorted({Path(entry) for entry in (*facts.path, *facts.mapped)})
    shown = [path for path in paths if path.exists() and not _under(path, known)]
    hidden = [private for path in shown for private in _private(path)]
    return (*(Mount(path, path) for path in shown), *(Mount(_NOTHING, private) for private in hidden))


def _private(folder: Path) -> list[Path]:
    """Return the files of another project that may hold secrets and are not needed to import its code."""
    names = [folder / ".git" / "config", folder / ".git" / "credentials", *sorted(folder.glob(".env*"))]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def _under(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


async def _ask(python: Path, environ: Mapping[str, str]) -> Facts | None:
    return await anyio.to_thread.run_sync(ask, python, environ)


async def _started(argv: tuple[str, ...], worktree: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the interpreter with which a command starts pytest; None if it starts none.

    Such a command runs what the project has, so it is the user's own, or trusted (`config.trust`).
    """
    with scratch_folder("probe") as folder:
        answer = folder / "python"
        (folder / "redfirst_probe.py").write_text(_INTERPRETER_PLUGIN, encoding="utf-8")
        given = cleaned({**environ, "PYTHONPATH": str(folder), "REDFIRST_PROBE": str(answer)})
        argv = (*argv, "-p", "redfirst_probe")
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            try:
                await answer_of(argv, folder=worktree, environ=given)
            except OSError:
                return None
        try:
            return Path(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


async def _sync(uv: str, worktree: Path, private: Path, search_path: str) -> str | None:
    """Create or update the private environment from the lock; return the error message, None if it worked."""
    environ = cleaned({"PATH": search_path, "UV_PROJECT_ENVIRONMENT": str(private)})
    members = ("--all-packages",) if is_workspace(worktree) else ()
    with anyio.move_on_after(_SYNC_TIMEOUT_S):
        code, said = await answer_of(
            (uv, "sync", "--frozen", *members), folder=worktree, environ=environ, stdout=DEVNULL, stderr=PIPE
        )
        if code == 0:
            return None
        lines = said.decode("utf-8", "replace").strip().splitlines()
        telling = [line for line in lines if line.startswith("error")] or lines
        return telling[0] if telling else f"exit code {code}"
    return f"it took longer than {_SYNC_TIMEOUT_S:.0f} s"


_FACTS: Final = Path(__file__).with_name("environment_facts.py")
_LIMIT_S: Final = 60.0
_HEAD: Final = 2048
_EXEC: Final = re.compile(rb"'''exec' (?P<words>[^\n]+)")
_BESIDE: Final = re.compile(r""""\$\(dirname -- "\$\(realpath -- "\$0"\)"\)"/'?(?P<name>[\w.-]+)'?""")
_DROPPED: Final = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "CONDA_", "UV_PROJECT", "NIX_PYTHON")


class Facts(Frozen):
    """The facts that an interpreter reports about its environment."""

    executable: str
    prefix: str
    base_prefix: str
    python: str
    pytest: str
    plugins: tuple[str, ...]
    path: tuple[str, ...]
    mapped: tuple[str, ...]
    editable: tuple[str, ...]


def ask(python: Path, environ: Mapping[str, str]) -> Facts | None:
    """Return an interpreter's facts, None if it does not run.

    Args:
        python: The interpreter, or a version manager's script in its place.
        environ: Variables for it, PATH among them.
    """
    try:
        done = run(
            [python, "-I", "-S", "-c", _FACTS.read_text(encoding="utf-8")],  # pyenv looks for versions beside a file
            cwd="/",
            env=cleaned({**devshell.UNSEARCHED, **environ}),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            timeout=_LIMIT_S,
            process_group=0,  # Ctrl-C at a terminal is for the driver
            check=False,
        )
        return Facts.model_validate_json(done.stdout)
    except (OSError, SubprocessError, ValidationError):
        return None


def cleaned(more: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables and *more*, without those that point Python or uv at another environment."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}, **more}


def interpreter_of(script: Path, search_path: str) -> Path | None:
    """Return the interpreter in a `pytest` script's first lines; None if they name none.

    Args:
        script: What an installer wrote: `#!/path/python`, or a line for `sh` where that would be too long; or a
            version manager's script, beside which there is one for the interpreter.
        search_path: Where `#!/usr/bin/env python` is looked up.
    """
    if script.parent.name == "shims":
        return script.with_name("python")
    try:
        with script.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    first, _, rest = head.partition(b"\n")
    words = os.fsdecode(first).removeprefix("#!").split() if first.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name == "env":
        found = shutil.which(words[-1], path=search_path)
        return Path(found) if found is not None and len(words) > 1 else None
    if Path(words[0]).name in {"sh", "bash", "dash"}:
        line = _EXEC.match(rest)
        return _behind(os.fsdecode(line["words"]), script) if line else None
    return _absolute(os.fsdecode(first).removeprefix("#!").strip(), script)


def _behind(words: str, script: Path) -> Path | None:
    """Return the program in `'''exec' /path/python "$0" "$@"`, quoted or not, or relative to the script."""
    relocatable = _BESIDE.match(words)
    if relocatable:
        return script.resolve().parent / relocatable["name"]
    return _absolute(words.removesuffix('"$@"').rstrip().removesuffix('"$0"').strip().strip("\"'"), script)


def _absolute(path: str, script: Path) -> Path | None:
    found = Path(path if os.access(path, os.X_OK) else path.split(" ", maxsplit=1)[0])
    return found if found.is_absolute() and found != script else None


LOCK: Final = "uv.lock"
MADE_BY: Final = "uv sync --frozen"
BUILT: Final = "uv runs what builds the project, on the host; no environment with pytest is there yet"
INSTEAD: Final = "or make the environment yourself (uv sync), or name one: [toolchains.pytest] command"


def is_locked(folder: Path, search_path: str) -> bool:
    """Return whether a run would create the environment from a lock file."""
    return lock_tool(folder, search_path) is not None


def has_runner(interpreter: Path, search_path: str) -> bool:
    """Return whether an environment has pytest; no code of the project is run."""
    facts = ask(interpreter, {"PATH": search_path})
    return facts is not None and bool(facts.pytest)


def first_run(interpreter: Path) -> tuple[str, ...]:
    """Return the command that runs tests in an environment, without creating one."""
    return (str(interpreter), "-m", "pytest")
