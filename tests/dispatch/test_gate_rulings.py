from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from dispatch.one_view import open_view

from pipeline.agents.dispatch.gate import AdmittedChange, GateResult, Policy, inspect
from pipeline.judge.policy.rights import Action, ChangeKind, Grant, TestScope
from pipeline.judge.policy.roles import Writes
from pipeline.sandbox.views.view import ShadowView

pytestmark = pytest.mark.slow

TESTS = TestScope(files=(Grant("tests/test_app.py", Action.MODIFY),), folders=("tests",))
MAKE = Policy(Writes.TASK, (Grant("src/app.py", Action.MODIFY), Grant("src/new.py", Action.CREATE)), TESTS)
TEST = Policy(Writes.TESTS, MAKE.grants, TESTS)
READER = Policy(Writes.NOTHING, MAKE.grants, TESTS)


def fill(folder: Path) -> None:
    for name in (
        "src/app.py",
        "src/other.py",
        "src/tool",
        "tests/test_app.py",
        "tests/conftest.py",
        "x.pyc",
        "TODO/GAL-1.md",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (folder / "src/tool").chmod(0o755)
    (folder / ".gitignore").write_text("*.log\n")


@pytest.fixture
def view(tmp_path: Path) -> ShadowView:
    return open_view(fill, tmp_path / "view", workspace=Path("/view"), writable=True)


def after(view: ShadowView, script: str, policy: Policy) -> GateResult:
    subprocess.run(["bash", "-c", script], cwd=view.host, check=False, capture_output=True)
    return inspect(view, policy)


def test_an_honest_change_is_handed_over_with_its_bytes(view: ShadowView) -> None:
    result = after(view, "echo '# ok' >> src/app.py; echo new > src/new.py", MAKE)
    content = b"# src/app.py\n# ok\n"
    assert result.admitted
    assert result.changes == (
        AdmittedChange("src/app.py", ChangeKind.MODIFIED, content, hashlib.sha256(content).hexdigest(), "100644"),
        AdmittedChange("src/new.py", ChangeKind.ADDED, b"new\n", hashlib.sha256(b"new\n").hexdigest(), "100644"),
    )


@pytest.mark.parametrize(
    ("policy", "script", "rules"),
    [
        pytest.param(MAKE, "rm src/app.py; ln -s /etc/shadow src/app.py", {"symlink"}, id="FS-08"),
        pytest.param(MAKE, "ln tests/test_app.py src/hl.py; echo x >> src/hl.py", {"hard-link"}, id="FS-11"),
        pytest.param(MAKE, "rm tests/test_app.py", {"test-file"}, id="FS-13"),
        pytest.param(MAKE, "mkdir -p src/.GIT; echo x > src/.GIT/config", {"git-alias"}, id="GIT-alias"),
        pytest.param(MAKE, "git init -q --separate-git-dir=src/g .; true", {"nested-repository"}, id="GIT-14"),
        pytest.param(TEST, "git init -q --bare tests/bare.git", {"nested-repository"}, id="GIT-08"),
        pytest.param(TEST, "echo x >> tests/conftest.py", {"control-file"}, id="WF-07"),
        pytest.param(READER, "chmod +x src/app.py; touch src/app.py; ln -s a b", {"read-only-role"}, id="WF-18"),
        pytest.param(MAKE, "echo x >> TODO/GAL-1.md", {"tracker-file"}, id="tracker"),
        pytest.param(MAKE, "chmod +x src/app.py; echo x >> src/app.py", {"mode-change"}, id="mode"),
        pytest.param(MAKE, "rm src/app.py", {"deletion-not-named"}, id="delete-what-may-be-modified"),
        pytest.param(MAKE, "echo x > src/App.py", {"path-collision"}, id="case"),
    ],
)  # fmt: skip
@pytest.mark.broad(but_first=1)
def test_an_attack_is_a_violation(view: ShadowView, policy: Policy, script: str, rules: set[str]) -> None:
    result = after(view, script, policy)
    assert not result.admitted
    assert {violation.rule for violation in result.violations} & rules, result.violations
    view.shadow.restore(result.offending)
    assert inspect(view, policy).admitted, "after putting back what offends, the rest stands"


def test_the_decoy_may_be_destroyed_without_consequence(view: ShadowView) -> None:
    script = (
        "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; git config core.fsmonitor 'touch /tmp/P'; rm -rf .git"
    )
    result = after(view, script, READER)
    assert (result.admitted, result.changes) == (True, ())


def test_scratch_of_honest_tools_is_dropped_with_one_line_each(view: ShadowView) -> None:
    script = (
        "mkdir -p src/__pycache__ .pytest_cache/v; echo x > .pytest_cache/v/x; "
        "echo x > src/__pycache__/a.pyc; echo y > src/__pycache__/b.pyc"
    )
    result = after(view, script, READER)
    assert result.admitted
    assert set(result.dropped) == {"src/__pycache__ (__pycache__)", ".pytest_cache (.pytest_cache)"}


def test_scratch_that_the_project_tracks_is_judged(view: ShadowView) -> None:
    assert [one.rule for one in after(view, "echo x >> x.pyc", MAKE).violations] == ["outside-task"]


def test_scratch_that_the_task_names_is_judged(view: ShadowView) -> None:
    policy = Policy(Writes.TASK, (Grant("data/cache.pyc", Action.CREATE),))
    result = after(view, "mkdir data; echo x > data/cache.pyc", policy)
    assert [change.path for change in result.changes] == ["data/cache.pyc"]


def test_a_repository_hidden_in_scratch_is_found(view: ShadowView) -> None:
    assert (
        after(view, "mkdir -p __pycache__/.git; echo x > __pycache__/.git/config", READER).violations[0].rule
        == "git-alias"
    )


def test_a_named_rename_is_two_changes_and_keeps_the_execute_bit(view: ShadowView) -> None:
    policy = Policy(Writes.TASK, (Grant("src/renamed", Action.RENAME, "src/tool"),))
    result = after(view, "mv src/tool src/renamed", policy)
    assert [(change.path, change.kind, change.mode) for change in result.changes] == [
        ("src/renamed", ChangeKind.ADDED, "100755"),
        ("src/tool", ChangeKind.DELETED, None),
    ]


@pytest.mark.parametrize("script", ["rm src/tool", "cp src/tool src/renamed"])
def test_half_a_rename_is_a_violation(view: ShadowView, script: str) -> None:
    policy = Policy(Writes.TASK, (Grant("src/renamed", Action.RENAME, "src/tool"),))
    result = after(view, script, policy)
    assert [one.rule for one in result.violations] == ["rename-incomplete"]
    assert result.changes == ()
    view.shadow.restore(result.offending)
    assert inspect(view, policy).changes == ()


@pytest.mark.parametrize(("text", "mode"), [("#!/bin/sh", "100755"), ("plain", "100644")])
def test_a_new_file_is_executable_only_as_a_script(view: ShadowView, text: str, mode: str) -> None:
    result = after(view, f"echo '{text}' > src/new.py; chmod +x src/new.py", MAKE)
    assert [change.mode for change in result.changes] == [mode]


def test_a_script_that_was_not_executable_may_become_so(view: ShadowView) -> None:
    result = after(view, "echo '#!/bin/sh' > src/app.py; chmod +x src/app.py", MAKE)
    assert [(change.kind, change.mode) for change in result.changes] == [(ChangeKind.MODIFIED, "100755")]


def test_a_control_file_that_the_task_names_is_noted(view: ShadowView) -> None:
    result = after(view, "echo x > pyproject.toml", Policy(Writes.TASK, (Grant("pyproject.toml", Action.CREATE),)))
    assert result.admitted
    assert len(result.notes) == 1


def test_a_built_environment_is_one_violation(view: ShadowView) -> None:
    result = after(view, "mkdir -p target/debug; for i in $(seq 50); do echo x > target/debug/$i; done", MAKE)
    (violation,) = result.violations
    assert (violation.path, violation.rule) == ("target", "outside-task")
    view.shadow.restore(result.offending)
    assert not (view.host / "target").exists()


def test_a_swapped_file_is_not_what_was_judged(view: ShadowView) -> None:
    class Restless(ShadowView):
        def read(self, path: str) -> bytes:
            return super().read(path) + b"more"

    subprocess.run(["sh", "-c", "echo x >> src/app.py"], cwd=view.host, check=True)
    restless = Restless(view.shadow, view.workspace, view.writable, view.release)
    assert [one.rule for one in inspect(restless, MAKE).violations] == ["unstable"]


def test_a_change_of_what_runs_while_tests_are_compiled_is_noted(view: ShadowView) -> None:
    policy = Policy(Writes.TASK, (Grant("src/mac.rs", Action.CREATE), Grant("Cargo.toml", Action.CREATE)))
    script = "printf '[lib]\\nproc-macro = true\\n' > Cargo.toml; echo 'fn two() {}' > src/mac.rs"
    assert any(
        "runs while tests are compiled (a procedural macro" in note for note in after(view, script, policy).notes
    )


def test_a_name_that_is_not_utf8_can_be_reported_as_text(view: ShadowView) -> None:
    result = after(view, "printf x > $'tests/\\xff.py'", TEST)
    (violation,) = result.violations
    assert violation.rule == "path-encoding"
    assert violation.path.encode() == b"tests/\\udcff.py"
    view.shadow.restore(result.offending)
    assert inspect(view, TEST).admitted
