"""Finds the interpreter that runs a project's tests, on the host, before any agent ran.

Order: the configured command; with `uv.lock` the project's `.venv`, else a private environment made from the lock; the
`.venv` or `venv` of the worktree or of the main checkout; the python on PATH. The first that has pytest counts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Final

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.process import Mount
from pipeline.programs import SYSTEM_FOLDERS, locate
from pipeline.toolchains import devshell
from pipeline.toolchains.protocol import EditableRoot, Environment, Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NOTHING: Final = Path("/dev/null")
_PROBE_TIMEOUT_S: Final = 60.0
_SYNC_TIMEOUT_S: Final = 900.0
_PYTEST: Final = frozenset({"pytest", "py.test"})
_PYTHON: Final = re.compile(r"(python|pypy)\d*(\.\d+)?t?")
_STARTERS: Final = frozenset({"coverage", "hatch", "nox", "pdm", "pipenv", "poetry", "rye", "tox", "uv", "uvx"})
"""Programs that look for the interpreter themselves and need nothing else: they make no development shell."""

_PROBE: Final = """\
import json, os, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
found = metadata.entry_points()
plugins = found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", ())
mapped, editable = [], []
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        mapped += [str(path) for path in getattr(module, "MAPPING", {}).values()]
for distribution in metadata.distributions():
    url = json.loads(distribution.read_text("direct_url.json") or "{}")
    if url.get("dir_info", {}).get("editable") and url.get("url", "").startswith("file://"):
        editable.append(url["url"][len("file://"):])
facts = dict(
    executable=sys.executable, prefix=sys.prefix, base_prefix=sys.base_prefix, python=sys.version.split()[0],
    pytest=version("pytest"), plugins=sorted({entry.name for entry in plugins}),
    path=[entry for entry in sys.path if entry], mapped=mapped, editable=editable,
)
with open(os.environ["REDFIRST_PROBE"], "w") as out:
    json.dump(facts, out)
"""


class Facts(BaseModel):
    """What an interpreter says about itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    executable: str
    prefix: str
    base_prefix: str
    python: str
    pytest: str
    plugins: tuple[str, ...]
    path: tuple[str, ...]
    mapped: tuple[str, ...]
    editable: tuple[str, ...]


async def find_environment(
    worktree: Path, main: Path, configured: tuple[str, ...] | None, state: Path, search_path: str
) -> Environment | Missing:
    """Return how the project's tests are run, or why that is not known.

    Args:
        worktree: The checkout the user stands in.
        main: The main checkout of the same repository; may be the same folder.
        configured: `[toolchains.pytest] command`, if any; nothing else is tried then.
        state: A private folder for an environment made from `uv.lock`.
        search_path: PATH of the user.
    """
    checkouts = tuple(dict.fromkeys((worktree, main)))
    if configured:
        return await _from_command(configured, worktree, checkouts, search_path)
    tried: list[str] = []
    path = {"PATH": search_path}
    uv = shutil.which("uv", path=search_path)
    locked = uv is not None and (worktree / "uv.lock").is_file()
    places = [checkout / ".venv" for checkout in checkouts]
    if not locked:
        places = [checkout / name for checkout in checkouts for name in (".venv", "venv")]
    for place in places:
        python = place / "bin" / "python"
        if _is_there(python):
            tried.append(str(place))
            facts = await _ask(python, worktree, path)
            if facts is not None and facts.pytest:
                return environment(facts, ("-m", "pytest"), checkouts)
    if uv is not None and locked:
        private = state / "venv"
        problem = await _sync(uv, worktree, private, search_path)
        facts = None if problem else await _ask(private / "bin" / "python", worktree, path)
        if facts is not None and facts.pytest:
            return environment(facts, ("-m", "pytest"), checkouts)
        return Missing(f"`uv sync --frozen` gave no environment with pytest: {problem or 'pytest is not in uv.lock'}")
    for name in ("python3", "python"):
        found = shutil.which(name, path=search_path)
        if found is not None:
            tried.append(found)
            facts = await _ask(Path(found), worktree, path)
            if facts is not None and facts.pytest:
                return environment(facts, ("-m", "pytest"), checkouts)
    looked = ", ".join(tried) or "no interpreter on PATH, no .venv"
    return Missing(f"No interpreter with pytest was found (looked at: {looked}). Set [toolchains.pytest] command.")


async def _from_command(
    configured: tuple[str, ...], worktree: Path, checkouts: Sequence[Path], search_path: str
) -> Environment | Missing:
    """Return the environment behind a configured command, wrappers such as `uv run` and `nix develop -c` included.

    The command is started once with a plugin that reports the interpreter and leaves before project code is loaded. Of
    a development shell the variables count too; what starts pytest by itself (`uv run`) is left to do that.
    """
    shown = " ".join(configured)
    words = devshell.split(configured, lambda words: Path(words[0]).name in _PYTEST)
    if words is None:
        return Missing(f"[toolchains.pytest] command does not name pytest: {shown}")
    wrapper = _shell_of(words[0])
    shell = await devshell.entered(wrapper, worktree, search_path, "pytest")
    if isinstance(shell, Missing):
        return shell
    starter, rest = words[0][len(wrapper) :], words[1][1:]
    first, *more = (*starter, words[1][0])
    program = devshell.found_program(first, worktree, shell.search_path)
    if program is None:
        return Missing(f"[toolchains.pytest] command: {first} was not found")
    inside = {**shell.variables, "PATH": shell.search_path}
    facts = await _ask_through((program, *more, "-p", "redfirst_probe"), worktree, inside)
    facts = facts and await _ask(Path(facts.executable), worktree, inside)
    if facts is None or not facts.pytest:
        return Missing(f"[toolchains.pytest] command does not start pytest: {shown}")
    script = Path(facts.executable).parent / "pytest"
    as_module = starter[-1:] == ("-m",) or not script.is_file()
    found = environment(facts, ("-m", "pytest", *rest) if as_module else (str(script), *rest), checkouts)
    variables = dict(shell.variables)
    if "PATH" in variables:
        variables["PATH"] = devshell.box_path(found.prefix, variables)
    return replace(found, mounts=tuple(dict.fromkeys((*found.mounts, *shell.mounts))), variables=variables)


def _shell_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the words before pytest that make a development shell.

    A python that is told to run pytest as a module belongs to pytest, and so does what starts it by itself.
    """
    if words[-1:] == ("-m",):
        places = [at for at, word in enumerate(words) if _PYTHON.fullmatch(Path(word).name)]
        words = words[: places[-1]] if places else ()
    return () if not words or Path(words[0]).name in _STARTERS else words


def _is_there(python: Path) -> bool:
    return os.access(python, os.X_OK)


def environment(facts: Facts, arguments: tuple[str, ...], checkouts: Sequence[Path]) -> Environment:
    """Return the environment of an interpreter that has pytest.

    Raises:
        UserError: the interpreter's installation cannot be shown in a box.
    """
    program = locate(facts.executable)
    return Environment(
        command=program.argv(*arguments),
        mounts=(*program.mounts, *_elsewhere(facts, checkouts)),
        editable_roots=_editable_roots(facts, checkouts),
        prefix=Path(facts.prefix),
        versions=(f"Python {facts.python}", f"pytest {facts.pytest}"),
        plugins=frozenset(facts.plugins),
    )


def _editable_roots(facts: Facts, checkouts: Sequence[Path]) -> tuple[EditableRoot, ...]:
    """Return where editable installs import this project from; the project folder itself when only that is known."""
    installed = (Path(facts.prefix), Path(facts.base_prefix))
    direct = [Path(entry) for entry in (*facts.path, *facts.mapped)]
    roots = [root for path in direct if not _under(path, installed) and (root := _root_of(path, checkouts))]
    for project in map(Path, facts.editable):
        if not any(_under(root.path, [project]) for root in roots) and (root := _root_of(project, checkouts)):
            roots.append(root)
    return tuple(sorted(set(roots), key=lambda root: root.path))


def _root_of(path: Path, checkouts: Sequence[Path]) -> EditableRoot | None:
    folder = path if path.is_dir() else path.parent
    for checkout in checkouts:
        for base in (checkout, checkout.resolve()):
            if folder.is_dir() and folder.is_relative_to(base):
                return EditableRoot(folder, folder.relative_to(base).as_posix())
    return None


def _elsewhere(facts: Facts, checkouts: Sequence[Path]) -> tuple[Mount, ...]:
    """Return mounts for folders outside installation and checkouts that it imports from: other editable installs."""
    known = [Path(facts.prefix), Path(facts.base_prefix), *SYSTEM_FOLDERS]
    known += [base for checkout in checkouts for base in (checkout, checkout.resolve())]
    paths = sorted({Path(entry) for entry in (*facts.path, *facts.mapped)})
    shown = [path for path in paths if path.exists() and not _under(path, known)]
    hidden = [private for path in shown for private in _private(path)]
    return (*(Mount(path, path) for path in shown), *(Mount(_NOTHING, private) for private in hidden))


def _private(folder: Path) -> list[Path]:
    """Return the files of another project that its code is imported without: where its secrets are."""
    names = [folder / ".git" / "config", folder / ".git" / "credentials", *sorted(folder.glob(".env*"))]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def _under(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


async def _ask(python: Path, worktree: Path, environ: Mapping[str, str]) -> Facts | None:
    """Return what an interpreter says about itself, or None when it does not run.

    `-I` keeps the folder it is asked in, PYTHONPATH and the user's own packages out, as the box does.
    """
    return await _ask_through((str(python), "-I", "-c", _PROBE), worktree, environ)


async def _ask_through(argv: tuple[str, ...], worktree: Path, environ: Mapping[str, str]) -> Facts | None:
    with tempfile.TemporaryDirectory(prefix="redfirst-probe-") as folder:
        answer = _lay_out_probe(Path(folder))
        given = _environ({**environ, "PYTHONPATH": folder, "REDFIRST_PROBE": str(answer)})
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            try:
                await anyio.run_process(
                    argv, cwd=worktree, env=given, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, check=False
                )
            except OSError:
                return None
        return _read_facts(answer)


def _lay_out_probe(folder: Path) -> Path:
    # leaving at once keeps pytest from loading the project's conftest.py on the host
    (folder / "redfirst_probe.py").write_text(_PROBE + "os._exit(0)\n", encoding="utf-8")
    return folder / "facts.json"


def _read_facts(answer: Path) -> Facts | None:
    try:
        return Facts.model_validate(json.loads(answer.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError):
        return None


async def _sync(uv: str, worktree: Path, private: Path, search_path: str) -> str | None:
    """Make or update the private environment from the lock; return what went wrong, or None."""
    environ = _environ({"PATH": search_path, "UV_PROJECT_ENVIRONMENT": str(private)})
    with anyio.move_on_after(_SYNC_TIMEOUT_S):
        done = await anyio.run_process(
            (uv, "sync", "--frozen"), cwd=worktree, env=environ, stdin=DEVNULL, stdout=DEVNULL, check=False
        )
        if done.returncode == 0:
            return None
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        telling = [line for line in lines if line.startswith("error")] or lines
        return telling[0] if telling else f"exit code {done.returncode}"
    return f"it took longer than {_SYNC_TIMEOUT_S:.0f} s"


def _environ(more: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without what would point Python or uv at another environment."""
    dropped = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "CONDA_", "UV_PROJECT")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, **more}
