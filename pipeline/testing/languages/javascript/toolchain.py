"""The toolchain of JavaScript and TypeScript projects, tested with node:test, vitest or jest."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.listed_commands import NO_OPERANDS, ListedCommand
from pipeline.testing.languages.javascript import environment, project
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pipeline.testing.languages.protocol import Members

_VITEST: Final = (
    "--run --silent --hideSkippedTests --no-color --no-coverage --expandSnapshotDiff -t EXPRESSION"
    " --testNamePattern EXPRESSION --reporter default|verbose|dot|tap|tap-flat|json|basic"
    " --bail NUMBER --testTimeout NUMBER --maxWorkers NUMBER --maxConcurrency NUMBER"
)
_TEST_SCRIPTS: Final = ("npm test", "npm run test", "pnpm test", "yarn test")
"""The commands for the project's own `test` script, without arguments: nothing is known about what it does with
them."""

_COMMANDS: Final = (
    ListedCommand(
        "node --test",
        "--test-only --test-force-exit --no-warnings --experimental-strip-types --test-name-pattern TEXT"
        " --test-skip-pattern TEXT --test-reporter spec|tap|dot --test-concurrency NUMBER --test-timeout NUMBER",
    ),
    ListedCommand("npx vitest run", _VITEST),
    ListedCommand("npx vitest", _VITEST, required="--run"),
    ListedCommand(
        "npx jest",
        "--silent --verbose --runInBand -i --ci --bail -b --listTests --no-coverage --expand -e --noStackTrace"
        " --no-color -t EXPRESSION --testNamePattern EXPRESSION -w NUMBER --maxWorkers NUMBER --testTimeout NUMBER",
    ),
    ListedCommand("npx tsc", "--noEmit --pretty --skipLibCheck --strict", required="--noEmit"),
    *(ListedCommand(script, "--silent", NO_OPERANDS) for script in _TEST_SCRIPTS),
)


class NodeToolchain(Toolchain):
    """The `Toolchain` of JavaScript and TypeScript projects.

    `__mocks__` replaces modules by being there; `patches` changes installed packages.
    """

    name = "node"
    package = "pipeline.testing.languages.javascript"
    sources: tuple[str, ...] = project.SOURCES
    stub = 'throw new Error("not implemented")'
    stub_like = re.compile(r"\bthrow\s+(?:new\s+)?Error\(\s*[\"'`]not implemented")
    install_hint = environment.HINT
    markers = ("package.json",)
    control = (
        "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
        "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".nvmrc",
        ".node-version", ".tool-versions", "node.config.json", "vite.config.*", "vitest.config.*",
        "vitest.workspace.*", "vitest.setup.*", "vitest.projects.*", "jest.config.*", "jest.setup.*", "jest.preset.*",
        "setuptests.*", "tsconfig.json", "tsconfig.*.json", "jsconfig.json", "babel.config.*", ".babelrc",
        ".babelrc.*", ".swcrc", ".env", ".env.*", "webpack.config.*", "rollup.config.*", "*.snap",
    )  # fmt: skip
    control_folders = frozenset({"__mocks__", "__snapshots__", "patches", ".yarn"})
    commands = _COMMANDS

    def members(self, worktree: Path, top: str, tracked: Collection[str], is_ours: Callable[[str], bool]) -> Members:
        """Return the projects below a folder; see `project.members`."""
        return project.members(worktree, top, tracked, is_ours)

    def is_module(self, path: str, module: str) -> bool:
        """Return whether a script is the module, which has no ending and names a folder for its `index`."""
        stem = str(PurePosixPath(path).with_suffix("")).removesuffix("/index")
        return bool(module) and (stem == module or stem.endswith(f"/{module}"))


TOOLCHAIN: Final = NodeToolchain()
