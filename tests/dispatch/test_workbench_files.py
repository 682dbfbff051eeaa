"""The tools for files: through no link, by the role's policy, and so that the gate admits what they wrote."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view

from pipeline.agents.dispatch.gate import Policy, inspect
from pipeline.agents.dispatch.model_tools import Workbench
from pipeline.agents.dispatch.roles import load_roles
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.overlay import OverlayView, overlay_works
from pipeline.sandbox.views.view_files import opened_top, put_file
from pipeline.vocabulary import Role

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.sandbox.views.view import View

GRANTS = (
    Grant("src/app.py", Action.MODIFY),
    Grant("src/new.py", Action.CREATE),
    Grant("src/deep/er/new.py", Action.CREATE),
    Grant("src/old.py", Action.DELETE),
    Grant("src/to.py", Action.RENAME, "src/from.py"),
    Grant("run.sh", Action.MODIFY),
)
TESTS = TestScope(files=(Grant("tests/test_app.py", Action.MODIFY),), folders=("tests",))
FILES = ("src/app.py", "src/old.py", "src/from.py", "src/other.py", "tests/test_app.py", "run.sh", "src/lib.rs")
RUST = "fn one() -> u8 { 1 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn old() {}\n}\n"


def fill(folder: Path) -> None:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RUST if name.endswith(".rs") else f"{name}\n")
    (folder / "run.sh").chmod(0o755)


def shadow(tmp_path: Path) -> View:
    return open_view(fill, tmp_path / "view", workspace=Path("/view"), writable=True)


def overlay(tmp_path: Path) -> View:
    if fault := overlay_works(tmp_path, None):
        pytest.skip(fault)
    lower, at = tmp_path / "lower", tmp_path / "view"
    lower.mkdir()
    at.mkdir()
    fill(lower)
    return OverlayView.open((lower,), at, workspace=Path("/view"), writable=True)


@pytest.fixture(params=[shadow, overlay])
def view(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[View]:
    opened = request.param(tmp_path)
    yield opened
    opened.close()


def workbench(mount: Mount, role: Role = Role.MAKE) -> Workbench:
    spec = load_roles()[role]
    return Workbench(spec, mount, NoBox(), Policy(spec.writes, GRANTS, TESTS, test_regions=spec.test_regions))


@pytest.fixture
def bench(view: View) -> Workbench:
    return workbench(view.mount)


@pytest.fixture
def top(bench: Workbench) -> Path:
    return bench.view.reach


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "app.py").write_text("not yours\n")
    return folder


def test_a_file_is_read_and_a_folder_is_listed(bench: Workbench) -> None:
    assert bench.read("src/app.py").text == "src/app.py\n"
    assert bench.read("src").text.split() == ["app.py", "from.py", "lib.rs", "old.py", "other.py"]
    assert {"src/", "tests/", "run.sh"} <= set(bench.read(".").text.split())


def test_what_the_agent_was_shown_beside_the_view_is_read_by_its_absolute_path(bench: Workbench, outside: Path) -> None:
    (outside / "task").mkdir()
    (outside / "task" / "1.md").write_text("the task\n")
    (outside / "link").symlink_to("/etc/passwd")
    folder = replace(bench, artifacts=(Mount(outside, Path("/run/artifacts")),))
    shown = bench.box.inside(outside, Path("/run/artifacts"))
    assert folder.read(f"{shown}/task/1.md").text == "the task\n"
    assert folder.read(f"{shown}/task").text == "1.md"
    assert folder.read(f"{shown}").text == "app.py\nlink\ntask/"
    assert folder.read(f"{shown}/other.md").rule == "no-such-file"
    assert folder.read(f"{shown}/link").rule == "file-kind"
    assert folder.read(f"{shown}/../outside/app.py").rule == "path-form"
    assert folder.write(f"{shown}/app.py", "mine").rule == "path-form"
    file = replace(bench, artifacts=(Mount(outside / "app.py", Path("/run/artifacts/task.md")),))
    assert file.read(f"{shown}/app.py").text == "not yours\n"
    assert file.read(f"{shown}/task/1.md").rule == "path-form"
    assert bench.read(f"{shown}/app.py").rule == "path-form"


def test_the_absolute_path_of_the_prompt_means_the_same(bench: Workbench, top: Path) -> None:
    absolute = f"{bench.workspace}/src/app.py"
    assert bench.read(absolute).text == "src/app.py\n"
    assert bench.write(absolute, "mine\n").text == "src/app.py: 5 bytes written"
    assert bench.edit(absolute, "mine", "yours").rule is None
    assert (top / "src/app.py").read_text() == "yours\n"
    assert bench.delete(f"{bench.workspace}/src/old.py").rule is None
    assert "src/" in bench.read(str(bench.workspace)).text
    assert bench.write(f"{bench.workspace}/src/other.py", "mine\n").rule == "outside-task"
    assert bench.read(f"{bench.workspace}/../x").rule == "path-form"


def test_some_lines_of_a_file(bench: Workbench, top: Path) -> None:
    (top / "a").write_text("one\ntwo\nthree")
    assert bench.read("a", 1, 3).text == "one\ntwo\nthree"
    assert bench.read("a", 2).text == "two\nthree\n[lines 2 to 3 of 3]"
    assert bench.read("a", 2, 1).text == "two\n[lines 2 to 2 of 3]"
    assert bench.read("a", 0, 0).text == "one\n[lines 1 to 1 of 3]"
    assert (bench.read("a", 4).rule, bench.read("a", 4).text) == ("no-such-line", "the file has 3 lines")
    (top / "b").write_text("")
    assert bench.read("b").text == ""


def test_one_passage_is_replaced(bench: Workbench, top: Path) -> None:
    (top / "src/app.py").write_text("a = 1\nb = 1\n")
    assert bench.edit("src/app.py", "a = 1\n", "a = 2\n").text == "src/app.py: 12 bytes written"
    assert (top / "src/app.py").read_text() == "a = 2\nb = 1\n"
    for old, rule in (("c", "no-such-text"), ("", "no-such-text"), ("=", "several-texts"), ("\udcff", "content")):
        answer = bench.edit("src/app.py", old, "x")
        assert (answer.rule, answer.denied) == (rule, False), answer.text
    assert bench.edit("src/app.py", "a = 2", "\udcff").rule == "content"
    assert (top / "src/app.py").read_text() == "a = 2\nb = 1\n"


def test_what_the_policy_refuses_is_not_edited(bench: Workbench, view: View) -> None:
    for path, rule in (
        ("src/other.py", "outside-task"),
        ("tests/test_app.py", "test-file"),
        ("src/new.py", "no-such-file"),
        ("src/unnamed.py", "outside-task"),
        (".git/config", "git-alias"),
        ("src", "file-kind"),
    ):
        assert bench.edit(path, "no such text", "mine").rule == rule, path
    assert bench.edit("src/other.py", "src", "mine").denied
    assert view.survey().changes == ()


def test_hidden_characters_large_and_binary_files_are_told(bench: Workbench, top: Path) -> None:
    (top / "a").write_text("\x1b[2Jx\u202ey\tz\r\n")
    assert bench.read("a").text == "\\x1b[2Jx\\u202ey\tz\r\n"
    (top / "b").write_bytes(b"\0\1")
    assert bench.read("b").rule == "binary-file"
    (top / "c").write_bytes(b"x" * 1_000_000)
    assert bench.read("c").text.endswith("x\n[only the first 400000 bytes are shown]")
    (top / "d").write_bytes(b"caf\xe9")
    assert bench.read("d").text == "caf\ufffd"


@pytest.mark.broad(but_first=4)
@pytest.mark.parametrize("path", ["", "..", "src/../../outside/app.py", "/etc/passwd", "src/app.py\0", "\udcff", "~"])
def test_a_text_that_is_no_path_inside_is_not_read(bench: Workbench, path: str) -> None:
    answer = bench.read(path)
    assert answer.rule in {"path-form", "path-characters", "path-encoding", "no-such-file"}


def test_no_link_is_followed(bench: Workbench, top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside / "app.py")
    (top / "folder").symlink_to(outside)
    os.mkfifo(top / "fifo")
    for path in ("link", "folder", "folder/app.py", "fifo"):
        assert bench.read(path).rule == "file-kind", path
    grants = tuple(Grant(path, action) for path in ("link", "folder/app.py", "folder/new.py") for action in Action)
    bench = replace(bench, policy=replace(bench.policy, grants=grants))
    for path in ("link", "folder/app.py", "folder/new.py"):
        assert bench.write(path, "mine\n").rule == "file-kind", path
    assert bench.delete("folder/app.py").rule == "file-kind"
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"app.py": "not yours\n"}


def test_a_link_that_appears_after_the_look_is_not_followed(top: Path, outside: Path) -> None:
    (top / "folder").symlink_to(outside)
    (top / "link").symlink_to(outside / "app.py")
    with opened_top(top) as descriptor:
        with pytest.raises(OSError, match="directory"):
            put_file(descriptor, "folder/app.py", b"mine")
        put_file(descriptor, "link", b"mine")
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"app.py": "not yours\n"}
    assert not (top / "link").is_symlink()


@pytest.mark.broad(but_first=1)
def test_what_is_written_is_what_the_gate_admits(bench: Workbench, view: View, top: Path) -> None:
    for path in ("src/app.py", "src/new.py", "src/deep/er/new.py", "src/to.py", "run.sh"):
        assert bench.write(path, f"new {path} ü\n").rule is None, path
    for path in ("src/old.py", "src/from.py"):
        assert bench.delete(path).rule is None, path
    assert (top / "run.sh").stat().st_mode & 0o777 == 0o755
    result = inspect(view, Policy(bench.spec.writes, GRANTS, TESTS))
    assert result.admitted, result.violations
    assert {change.path: change.kind for change in result.changes} == {
        "src/app.py": "modified",
        "src/new.py": "added",
        "src/deep/er/new.py": "added",
        "src/to.py": "added",
        "run.sh": "modified",
        "src/old.py": "deleted",
        "src/from.py": "deleted",
    }


@pytest.mark.broad(but_first=4)
@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("src/other.py", "outside-task"),
        ("SRC/APP.PY", "path-collision"),
        ("tests/test_app.py", "test-file"),
        (".git/config", "git-alias"),
        (".workflow/x", "workflow-folder"),
        ("src/../src/app.py", "path-form"),
        ("src/app.py\0.md", "path-characters"),
        ("src/old.py", "action-not-named"),
        ("conftest.py", "control-file"),
        ("src", "file-kind"),
        ("src/app.py/x", "file-kind"),
    ],
)
def test_what_the_policy_refuses_is_not_written(bench: Workbench, view: View, path: str, rule: str) -> None:
    answer = bench.write(path, "mine\n")
    assert (answer.rule, bool(answer.text)) == (rule, True), answer.text
    assert view.survey().changes == ()


def test_another_name_of_the_file_keeps_its_content(bench: Workbench, top: Path, tmp_path: Path) -> None:
    os.link(top / "src/app.py", top / "alias.py")
    (top / "run.sh").chmod(0o4755)
    assert bench.write("src/app.py", "mine\n").rule is None
    assert bench.write("run.sh", "mine\n").rule is None
    assert (top / "alias.py").read_text() == "src/app.py\n"
    assert (top / "run.sh").stat().st_mode & 0o7777 == 0o755, "no bit but execute is kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes for somebody else")
def test_what_root_writes_belongs_to_whom_the_view_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    os.chown(tmp_path, 12345, 12346)
    assert workbench(Mount(tmp_path, tmp_path, writable=True)).write("src/deep/er/new.py", "mine\n").rule is None
    for path in ("src/deep", "src/deep/er", "src/deep/er/new.py"):
        status = (tmp_path / path).stat()
        assert (status.st_uid, status.st_gid) == (12345, 12346)


@pytest.mark.broad(but_first=1)
def test_test_writes_its_tests_and_test_regions(view: View) -> None:
    bench = workbench(view.mount, Role.TEST)
    assert bench.write("tests/test_app.py", "mine\n").rule is None
    assert bench.write("tests/test_more.py", "mine\n").rule is None
    assert bench.write("src/lib.rs", RUST.replace("fn old() {}", "fn old() { super::one(); }")).rule is None
    refused = bench.write("src/lib.rs", RUST.replace("{ 1 }", "{ 2 }"))
    assert refused.rule == "outside-task"
    assert bench.edit("src/lib.rs", "super::one();", "super::one(); super::one();").rule is None
    assert bench.edit("src/lib.rs", "{ 1 }", "{ 2 }").rule == "outside-task"
    assert "line 1" in refused.text
    assert bench.write("src/app.py", "mine\n").rule == "outside-task"


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize("role", [Role.CHECK, Role.SIMPLIFY, Role.ORCHESTRATOR, Role.PM])
def test_a_role_that_only_answers_reads_and_changes_nothing(view: View, role: Role) -> None:
    bench = workbench(view.mount, role)
    assert bench.read("src/app.py").rule is None
    for path in ("src/app.py", "src/new.py", "tests/test_app.py", "TODO/x.md"):
        assert bench.write(path, "mine\n").rule in {"read-only-role", "tracker-file"}
        assert bench.delete(path).rule in {"read-only-role", "tracker-file"}
    assert view.survey().changes == ()
