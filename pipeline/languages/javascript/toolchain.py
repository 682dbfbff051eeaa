"""The toolchain of JavaScript and TypeScript projects, tested with node:test, vitest or jest."""

from __future__ import annotations

import re
from typing import Final

from pipeline.languages.javascript import environment
from pipeline.languages.javascript.project import SOURCES
from pipeline.languages.lazy_toolchain import LazyToolchain


class NodeToolchain(LazyToolchain):
    """The `Toolchain` of JavaScript and TypeScript projects.

    `__mocks__` replaces modules by being there; `patches` changes installed packages.
    """

    name = "node"
    package = "pipeline.languages.javascript"
    sources: tuple[str, ...] = SOURCES
    stub = 'throw new Error("not implemented")'
    stub_like = re.compile(r"\bthrow\s+(?:new\s+)?Error\(\s*[\"'`]not implemented")
    stub_readers = ("pipeline.languages.javascript.stubs", "pipeline.languages.javascript.stubs")
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


TOOLCHAIN: Final = NodeToolchain()
