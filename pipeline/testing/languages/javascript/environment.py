"""Finds node, the runner and the installed packages of a project, on the host, before any agent ran.

Version managers put programs on PATH that choose a node by the files around them: the question which one runs is
answered here, once, in the root, where no file of a project lies. Nothing of the project is run: package.json is read,
and the runner that is installed is looked at.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.process import Mount
from pipeline.programs import locate
from pipeline.repo.tracked_paths import TrackedFiles
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.javascript.command import ENTRIES, Runner, Unknown, is_start, of_words
from pipeline.testing.languages.javascript.project import Project, read_project
from pipeline.testing.languages.protocol import Environment, Lookup, Missing, PlacedFolder
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


HINT: Final = "install Node.js 20 or newer (https://nodejs.org, or the package `nodejs`)"
MODULES: Final = "node_modules"
READONLY: Final = resources.files("pipeline.testing.languages.javascript") / "js" / "readonly.cjs"
_SHIM: Final = f"--require={json.dumps(str(READONLY))}"
"""The option of every node process, including agents' own: see `readonly.cjs`."""

_ASK_TIMEOUT_S: Final = 60.0
_LARGEST: Final = 1_000_000
_OLDEST: Final = 20
_OLDEST_RUNNER: Final[Mapping[Runner, int]] = {"vitest": 3, "jest": 28}
_INSTALL: Final = (
    'install what package.json asks for (`npm ci`), or let redfirst do it: [toolchains.node] setup = ["npm", "ci"]'
)
_IN_CI: Final = {  # keeps tools quiet and offline
    "CI": "1",
    "NO_COLOR": "1",
    "FORCE_COLOR": "0",
    "DO_NOT_TRACK": "1",
    "npm_config_offline": "true",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "YARN_ENABLE_TELEMETRY": "0",
    "NEXT_TELEMETRY_DISABLED": "1",
}
_UNSHARED: Final = {
    "NODE_DISABLE_COMPILE_CACHE": "1",
    "DISABLE_V8_COMPILE_CACHE": "1",
    "TSX_DISABLE_CACHE": "1",
    "BABEL_DISABLE_CACHE": "1",
}
"""Variables that stop compiled code being shared by files between test processes, whatever a script sets."""

_KEPT_OUT: Final = ("NODE_", "npm_", "NPM_")
"""Prefixes of this process's variables that could make node load or fetch something when it is asked here."""
_NOT_THEIRS: Final = re.compile(r"PATH|LD_\w+|REDFIRST_\w+|HOME|TMPDIR|npm_config_\w+")
"""Variables that a script of the project cannot set in a measurement."""


async def find_environment(lookup: Lookup) -> Environment | Missing:
    """Return the environment of the project's tests, or why it is missing.

    What comes before the runner in a configured command is run here (`nix develop -c node --test`). The installed
    packages of the main checkout serve where the worktree has none.
    """
    worktree, configured = lookup.worktree, lookup.configured
    project = read_project(worktree)
    if isinstance(project, str):
        return Missing(f"{project}.")
    parts = devshell.split(configured, is_start) if configured else ((), ())
    if parts is None:
        return Missing(f"[toolchains.node] command names no test runner: {' '.join(configured or ())}")
    wrapper, command = parts
    invocation = of_words(command, project.root.scripts) if command else project.invocation()
    if isinstance(invocation, Unknown) and command:
        return Missing(f"[toolchains.node] command does not start node --test, vitest or jest: {' '.join(command)}")
    if isinstance(invocation, Unknown):
        return Missing(
            f"The `test` script of package.json runs {invocation.name}; node:test, vitest and jest can be measured. "
            "Set [toolchains.node] command if the project can be tested with one of them."
        )
    shell = await devshell.entered(wrapper, worktree, lookup.search_path, "node")
    if isinstance(shell, Missing):
        return shell
    node = await _node(shell.search_path)
    if isinstance(node, Missing):
        return node
    program, version = node
    installed = _installed(project, lookup)
    if isinstance(installed, Missing):
        return installed
    runner = _runner(invocation.runner, project, installed)
    if isinstance(runner, Missing):
        return runner
    found = locate(str(program))
    prefix = program.parent.parent
    # a workspace has the runner's program at its root
    home, entry = home_of(invocation.runner, installed), "/".join(ENTRIES.get(invocation.runner, ()))
    words = (f"{home}/{word}" if home != "." and word == entry else word for word in invocation.words())
    theirs = {name: value for name, value in invocation.variables.items() if not _NOT_THEIRS.fullmatch(name)}
    options = " ".join(filter(None, (theirs.get("NODE_OPTIONS", ""), _SHIM)))
    return Environment(
        command=found.argv(*words),
        mounts=(*shell.mounts_for(found, prefix), Mount(Path(str(READONLY)), Path(str(READONLY)))),
        prefix=prefix,
        versions=(f"Node {version}", *runner),
        variables={**shell.variables_for(prefix), "NODE_OPTIONS": _SHIM},
        installed=installed,
        test_variables={**_IN_CI, **theirs, **_UNSHARED, "NODE_OPTIONS": options},
    )


async def _node(search_path: str) -> tuple[Path, str] | Missing:
    """Return the node behind the one on PATH, and its version."""
    named = shutil.which("node", path=search_path) or shutil.which("nodejs", path=search_path)
    if named is None:
        return Missing(f"No node was found on PATH: {HINT}.")
    without_settings = {name: "" for name in os.environ if name.startswith(_KEPT_OUT)}
    said = await devshell.ask(
        (named, "-p", "process.execPath + '\\n' + process.version"),
        search_path,
        limit_s=_ASK_TIMEOUT_S,
        environ={**without_settings, **devshell.UNSEARCHED},
    )
    path, _, version = (said or "").partition("\n")
    number = re.fullmatch(r"v(\d+)\.\d+\.\d+\S*", version)
    if number is None or not os.access(path, os.X_OK):
        return Missing(f"{named} cannot be started: {HINT}.")
    if int(number[1]) < _OLDEST:
        return Missing(f"{path} is node {version}; {HINT}.")
    return Path(path), version


def home_of(runner: Runner, installed: Sequence[PlacedFolder]) -> str:
    """Return the folder of the package in which a runner is installed, `.` for the project's own."""
    having = (folder.relative for folder in installed if (folder.path / runner).exists())
    return posixpath.dirname(next(having, MODULES)) or "."


def _installed(project: Project, lookup: Lookup) -> tuple[PlacedFolder, ...] | Missing:
    """Return the folders of installed packages, in this checkout or else in the main one.

    Those of the workspace that it is a member of serve, too.
    """
    worktree, main = lookup.worktree, lookup.main
    outer = lookup.outer or (worktree, main)
    for checkout, above in dict.fromkeys(zip((worktree, main), outer, strict=True)):
        found = installed_of(project, checkout)
        if above != checkout:
            up = posixpath.relpath(above, checkout)
            shared = installed_of(project.alone, above)
            found += tuple(PlacedFolder(one.path, f"{up}/{one.relative}") for one in shared)
        if found:
            return found
    if any((checkout / name).exists() for checkout in (worktree, main) for name in (".pnp.cjs", ".pnp.js")):
        return Missing(
            "Yarn keeps the packages of this project in archives: set `nodeLinker: node-modules` and install."
        )
    if project.needs:
        return Missing(f"There is no {MODULES} in {worktree} (a tracked link is not followed): {_INSTALL}.")
    return ()


def installed_of(project: Project, checkout: Path) -> tuple[PlacedFolder, ...]:
    """Return the folders with installed packages in a checkout, in the order of its packages.

    A link of the user's own is followed. What a tracked one leads to is passed over: it could show any folder of the
    host to the tests.
    """
    top, tracked = checkout.resolve(), TrackedFiles((checkout,))

    def is_ours(place: Path) -> bool:
        return place.resolve() == place or not tracked.lead_to(place)

    places = (f"{folder}/{MODULES}".lstrip("/") for folder in project.packages)
    return tuple(
        PlacedFolder((top / inside).resolve(), inside)
        for inside in places
        if (top / inside).is_dir() and is_ours(top / inside)
    )


def _runner(runner: Runner, project: Project, installed: Sequence[PlacedFolder]) -> tuple[str, ...] | Missing:
    """Return the runner's version in words, empty for node's own; a package may have it where the root has not."""
    oldest = _OLDEST_RUNNER.get(runner)
    if oldest is None:
        return ()
    for folder in installed:
        version = _version(folder.path / runner / "package.json")
        if version is not None:
            if int(version.partition(".")[0]) >= oldest:
                return (f"{runner} {version}",)
            newer = f"npm install --save-dev {runner}@latest"
            return Missing(f"{runner} {version} is installed; {runner} {oldest} or newer can be measured.", newer)
    wanted = "is not installed" if runner in project.needs else "is no dependency of this project"
    return Missing(f"The tests are run with {runner}, which {wanted}: {_INSTALL}.")


def _version(path: Path) -> str | None:
    """Return the version of a package, None if it is unknown; a tracked one may be a link to anything."""
    try:
        said: object = json.loads(read_regular(os.path.realpath(path), _LARGEST))["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return said if isinstance(said, str) and re.match(r"\d+\.", said) else None
