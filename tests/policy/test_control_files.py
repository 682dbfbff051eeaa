"""Which files control tests, builds, git or agents, how they may be written, and what is not one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes

CONTROL = (
    "conftest.py", "tests/unit/conftest.py", "pytest.ini", "tests/pytest.ini", "pytest.toml", "tox.ini", "setup.cfg",
    "pyproject.toml", "tests/sitecustomize.py", "tests/sitecustomize/__init__.py", "usercustomize.so", "tests/evil.pth",
    "tests/evil-1.0.dist-info/entry_points.txt", "tests/__snapshots__/a.ambr", "src/__snapshots__/a.snap",
    "tests/snapshots/lib__case.snap", "jest.config.js", "jest.config.mjs", "web/vitest.config.ts", "package.json",
    ".npmrc", "tsconfig.json", "tsconfig.build.json", ".mocharc.json", ".cargo/config.toml", "crates/x/.cargo/config",
    "build.rs", "crates/x/build.rs", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "Makefile", "GNUmakefile",
    "rules.mk", "Dockerfile", "flake.nix", ".envrc", ".env", ".env.test", ".tool-versions", "ruff.toml", ".flake8",
    "pyrightconfig.json", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile",
    ".gitattributes", "docs/.gitattributes", ".gitmodules", ".gitignore", ".gitconfig", ".lfsconfig",
    ".pre-commit-config.yaml", "lefthook.yml", ".lefthook/pre-commit/run.sh", ".husky/pre-commit", ".githooks/pre-push",
    ".lintstagedrc.json", ".vscode/tasks.json", "app.code-workspace", ".idea/runConfigurations/x.xml",
    ".devcontainer/devcontainer.json", ".devcontainer.json", ".exrc", ".dir-locals.el", ".gdbinit", "redfirst.toml",
    "AGENTS.md", "src/AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "opencode.json", "opencode.jsonc",
    ".mcp.json", ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".opencode/agent/x.md",
    ".cursor/mcp.json", ".cursorrules", ".aider.conf.yml",
)  # fmt: skip
ORDINARY = (
    "src/app.py", "tests/test_app.py", "tests/helpers.py", "tests/data/case.json", "tests/data/golden.txt",
    "src/config.py", "src/settings.json", "src/environment.py", "src/env.py", "src/setup_utils.py", "src/make.py",
    "src/tasks.py", "src/makefile_parser.py", "src/package.py", "src/cargo.py", "src/conftest_helpers.py",
    "tests/data/conftest.txt", "README.md", "docs/agents-guide.md", "docs/claude.rst", "src/claude.py", "src/gemini.py",
    "src/codex/reader.py", "src/github/client.py", "src/vscode/x.ts", "src/idea.py", "src/snap.py", "src/hooks/pre.py",
    "src/build.py", "crates/x/src/build_script.rs", "src/lib.rs", "src/rebuild.rs", "src/docker.py", "index.html",
    "src/snapshots.py", "src/sitecustom.py", "src/path.pth.py", "src/entry_points.py", "locale/de.json", "LICENSE",
)  # fmt: skip
GIVEN = st.sampled_from(CONTROL)


@pytest.mark.parametrize("path", CONTROL)
def test_a_control_file_is_one_at_any_depth(path: str) -> None:
    assert is_control(path)
    assert is_control(f"some/where/{path}")


@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_file_is_none(path: str) -> None:
    assert not is_control(path)


@pytest.mark.parametrize(
    "path", ["ConfTest.py", "agents.MD", "MAKEFILE", "tests/conftest.py.", "conftest\u200b.py", ".GitHub/x", ".ENVRC"]
)
def test_however_some_file_system_finds_it(path: str) -> None:
    assert is_control(path)


@pytest.mark.parametrize("writes", [Writes.TASK, Writes.TESTS])
@given(path=GIVEN, kind=st.sampled_from([ChangeKind.ADDED, ChangeKind.MODIFIED]))
def test_it_is_written_only_when_named_literally_and_then_leaves_a_note(
    writes: Writes, path: str, kind: ChangeKind
) -> None:
    inside = f"pkg/{path}" if writes is Writes.TASK else f"tests/{path}"
    others = (Grant("pkg/app.py", Action.MODIFY), Grant(f"{inside}.py", Action.CREATE))
    tests = TestScope(files=(Grant("tests/test_app.py", Action.MODIFY),), folders=("tests",))
    refused = judge(writes, Change(inside, kind), others, tests)
    assert (refused.allowed, refused.rule) == (False, "control-file"), refused
    grant = Grant(inside, Action.CREATE if kind is ChangeKind.ADDED else Action.MODIFY)
    named = judge(
        writes,
        Change(inside, kind),
        (grant,) if writes is Writes.TASK else (),
        TestScope(files=(grant,), folders=("tests",)) if writes is Writes.TESTS else tests,
    )
    assert (named.allowed, named.rule) == (True, "control-file-named"), named
    assert named.note is not None
    assert inside in named.note


PLACES = (".husky/_", "tools/hooks", ".gitconfig")


@pytest.mark.parametrize(
    "path",
    [
        ".husky/_/pre-commit", ".husky/_", ".Husky/_/h", ".husky/_/deep/x", "tools/hooks/pre-push", "TOOLS/hooks/x",
        ".gitconfig", ".husky./_/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("writes", list(Writes))
@pytest.mark.parametrize("kind", list(ChangeKind))
def test_what_the_users_git_obeys_is_nobodys_even_when_named(path: str, writes: Writes, kind: ChangeKind) -> None:
    grants = tuple(Grant(path, action) for action in Action)
    ruling = judge(writes, Change(path, kind), grants, TestScope(files=grants), places=PLACES)
    assert (ruling.allowed, ruling.rule) == (False, "obeyed-by-git")


@pytest.mark.parametrize("path", ["tools/hooks2", "tools/x.py", "src/.husky/_/x", "hooks/x", "src/.gitconfig"])
def test_what_only_looks_like_it_is_not(path: str) -> None:
    ruling = judge(Writes.TASK, Change(path, ChangeKind.ADDED), (Grant(path, Action.CREATE),), places=PLACES)
    assert ruling.allowed, ruling
