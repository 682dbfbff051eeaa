"""Recognises files that control tests, builds, checks, git, editors or agents.

A closed list. Such a file is changed only when a task names it, and @check reads a note about it. What is not on it is
ordinary: a list that is too long would make honest work ask for leave. Names count at any depth and however they are
written, since some file systems ignore case: pytest, npm and most agents look for theirs in every folder on the way up.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Final

from pipeline.judge.policy.paths import canonical

_NAMES: Final[tuple[str, ...]] = (
    # Python tests, and what pytest takes for its configuration
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "noxfile.py",
    ".coveragerc", "*.ambr",
    # JavaScript tests, and what compiles for them
    "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*", "vitest.workspace.*", "vite.config.*",
    "playwright.config.*", "cypress.config.*", "karma.conf.*", "ava.config.*", ".mocharc.*", ".nycrc", ".nycrc.*",
    ".c8rc", ".c8rc.*", "babel.config.*", ".babelrc", ".babelrc.*", ".swcrc", "tsconfig.json", "tsconfig.*.json",
    "jsconfig.json", "webpack.config.*", "rollup.config.*",
    # other tests: snapshots, nextest, PHPUnit, RSpec
    "*.snap", "insta.yaml", "nextest.toml", "phpunit.xml", "phpunit.xml.dist", ".rspec",
    # what Python imports or loads by itself
    "sitecustomize", "sitecustomize.*", "usercustomize", "usercustomize.*", "*.pth", "*.egg-link", "entry_points.txt",
    ".pdbrc",
    # Python builds and environments
    "pyproject.toml", "setup.cfg", "setup.py", "manifest.in", "requirements*.txt", "constraints*.txt", "pipfile",
    "pipfile.lock", "poetry.lock", "poetry.toml", "pdm.lock", "uv.lock", "uv.toml", "pylock.toml", "pylock.*.toml",
    "environment.yml", "environment.yaml", "pip.conf", ".python-version",
    # Rust
    "cargo.toml", "cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml",
    "rustfmt.toml", ".rustfmt.toml", "deny.toml",
    # JavaScript packages
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml",
    ".pnpmfile.cjs", "bun.lock", "bun.lockb", "bunfig.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", "deno.json",
    "deno.jsonc", "deno.lock", "lerna.json", "nx.json", "turbo.json", "gulpfile.*", "gruntfile.*", ".nvmrc",
    ".node-version",
    # other builds
    "go.mod", "go.sum", "go.work", "gemfile", "gemfile.lock", "rakefile", ".ruby-version", "composer.json",
    "composer.lock", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
    "gradle.properties", "gradlew", "gradlew.bat", "gnumakefile", "makefile", "*.mk", "justfile", ".justfile",
    "taskfile.yml", "taskfile.yaml", "cmakelists.txt", "cmakepresets.json", "meson.build", "build.bazel",
    "module.bazel", "workspace.bazel", ".bazelrc", "sconstruct", "dockerfile", "dockerfile.*", "containerfile",
    "compose.yml", "compose.yaml", "docker-compose*.yml", "docker-compose*.yaml", "vagrantfile", "procfile",
    "flake.nix", "flake.lock", "shell.nix", "default.nix",
    # what shells and version managers load on entering the folder
    ".envrc", ".env", ".env.*", ".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml",
    # checks
    "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", "pyrightconfig.json", ".flake8", ".pylintrc", "pylintrc",
    ".isort.cfg", ".style.yapf", ".importlinter", ".bandit", "eslint.config.*", ".eslintrc", ".eslintrc.*",
    ".eslintignore", ".prettierrc", ".prettierrc.*", ".prettierignore", "prettier.config.*", "biome.json",
    "biome.jsonc", ".stylelintrc", ".stylelintrc.*", ".golangci.yml", ".golangci.yaml", ".editorconfig",
    # continuous integration
    ".gitlab-ci.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".travis.yml", "appveyor.yml",
    ".appveyor.yml", ".cirrus.yml", ".drone.yml", ".woodpecker.yml", "buildspec.yml", "cloudbuild.yaml",
    "codecov.yml", ".codecov.yml", "renovate.json",
    # git and its hooks
    ".gitattributes", ".gitmodules", ".gitignore", ".gitconfig", ".lfsconfig", ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
    "lefthook-local.yml", ".lintstagedrc", ".lintstagedrc.*", "lint-staged.config.*", ".huskyrc", ".huskyrc.*",
    "commitlint.config.*", ".commitlintrc", ".commitlintrc.*", ".overcommit.yml",
    # editors and debuggers that run what they find
    "*.code-workspace", ".devcontainer.json", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".gdbinit",
    ".lldbinit",
    # this program and other agents
    "redfirst.toml", "agents.md", "agents.override.md", "agent.md", "claude.md", "claude.local.md", "gemini.md",
    "opencode.json", "opencode.jsonc", ".mcp.json", ".cursorrules", ".cursorignore", ".windsurfrules", ".clinerules",
    ".goosehints", ".aider.conf.yml", ".aiderignore",
)  # fmt: skip
_FOLDERS: Final[tuple[str, ...]] = (
    # builds and installed packages: entry points are found by these names
    ".cargo", "*.dist-info", "sitecustomize", "usercustomize", "__snapshots__", ".direnv", ".mvn", ".yarn",
    # continuous integration and hooks
    ".github", ".gitea", ".forgejo", ".circleci", ".buildkite", ".woodpecker", ".gitlab", ".ci", ".husky", ".lefthook",
    ".githooks",
    # editors
    ".vscode", ".idea", ".zed", ".fleet", ".devcontainer",
    # agents
    ".claude", ".codex", ".gemini", ".opencode", ".cursor", ".windsurf", ".continue", ".roo", ".clinerules", ".kiro",
    ".junie", ".amazonq", ".goose", ".qwen", ".crush", ".agents", ".aider",
)  # fmt: skip
_NAME: Final = "|".join(map(translate, _NAMES))
_FOLDER: Final = "|".join(map(translate, _FOLDERS))
"""Compiled when a path is looked at, which keeps them: most commands look at none."""


def is_control(path: str) -> bool:
    """Return whether `path` is a control file, by its name or by a folder that it lies in."""
    *folders, name = (canonical(part) for part in path.split("/"))
    return re.fullmatch(_NAME, name) is not None or any(re.fullmatch(_FOLDER, folder) for folder in folders)
