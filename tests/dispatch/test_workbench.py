"""The tools that run something: real pytest in a real box, and nothing else than what was judged."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from dispatch.one_view import open_view
from languages.direct import environment, write

from pipeline.agents.dispatch.gate import Policy
from pipeline.agents.dispatch.model_tools import Workbench
from pipeline.agents.dispatch.roles import load_roles
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.judge.policy.roles import Writes
from pipeline.process import WORKSPACE, Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.measure.project_tools import Tools
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.agents.backends.protocol import ToolAnswer
    from pipeline.process import Box


pytestmark = pytest.mark.slow

BWRAP = shutil.which("bwrap") or ""
PROJECT = {
    "core.py": "def answer():\n    return 41\n",
    "evil.py": "import pathlib\npathlib.Path('evil-ran').touch()\n",
    "tests/test_core.py": """
        from core import answer

        def test_right(): assert answer() == 42
        def test_called(): assert answer()
        """,
    "tests/test_world.py": """
        import os, socket, sys, time

        def test_tells(): sys.stdout.write("\\x1b[2J" + repr(sorted(os.environ))); assert False
        def test_where(): print(os.path.abspath("core.py")); assert False
        def test_waits(): time.sleep(60)
        def test_talks(): print("x" * 500_000); assert False
        def test_dies(): os.kill(os.getpid(), 9)
        """,
}


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("none", marks=pytest.mark.broad)])
def box(request: pytest.FixtureRequest) -> Box:
    if request.param == "none":
        return NoBox()
    made = Bubblewrap(BWRAP)
    if not BWRAP or not anyio.run(made.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    return made


@pytest.fixture
def bench(tmp_path: Path, box: Box) -> Workbench:
    return workbench(tmp_path, box)


def workbench(tmp_path: Path, box: Box, role: Role = Role.MAKE) -> Workbench:
    tree = write(tmp_path / "tree", PROJECT)
    env = environment()
    return Workbench(
        load_roles()[role],
        Mount(tree, box.inside(tree, WORKSPACE), writable=True),
        box,
        Policy(
            load_roles()[role].writes,
            (Grant("core.py", Action.MODIFY), Grant("new.py", Action.CREATE)),
            TestScope(files=(Grant("tests/test_core.py", Action.MODIFY),)),
        ),
        tools=Tools(
            env.mounts,
            {"PATH": f"{env.prefix / 'bin'}:/usr/bin:/bin", "PYTHONPATH": "."},
            test_command=(*env.command, "-q", "-p", "no:cacheprovider"),
        ),
        search_path=f"{env.prefix / 'bin'}:{os.environ['PATH']}",
    )


def run(bench: Workbench, text: str) -> ToolAnswer:
    return anyio.run(bench.run, text)


def run_tests(bench: Workbench, *selectors: str) -> ToolAnswer:
    return anyio.run(bench.run_tests, selectors)


def tree(bench: Workbench) -> list[str]:
    return sorted(str(path.relative_to(bench.view.source)) for path in bench.view.source.rglob("*") if path.is_file())


@pytest.mark.broad
def test_a_listed_command_runs_and_tells_how_it_ended(bench: Workbench) -> None:
    answer = run(bench, "pytest -q -p x tests/test_core.py")
    assert (answer.rule, answer.exit_code) == ("option-not-listed", None)
    answer = run(bench, "pytest -q tests/test_core.py")
    assert (answer.rule, answer.exit_code) == (None, 1)
    assert "1 failed, 1 passed" in answer.text
    assert answer.text.endswith("[exit code 1]")


def test_what_is_refused_runs_nothing_and_leaves_no_trace(bench: Workbench) -> None:
    before = tree(bench)
    assert run_tests(bench, "tests/test_core.py", "-p", "evil").rule == "test-selector"
    for text in ("pytest -p evil", "pytest; touch x", "pytest > x"):
        answer = run(bench, text)
        assert (answer.rule is None, answer.exit_code) == (False, None), text
    assert tree(bench) == before


def test_no_shell_reads_the_words(bench: Workbench) -> None:
    before = tree(bench)
    answer = run(bench, "cat 'core.py; touch x' '$(touch y)' 'core.py' '`touch z`'")
    assert answer.exit_code == 1
    assert "def answer" in answer.text
    assert "core.py; touch x" in answer.text
    assert tree(bench) == before


@pytest.mark.broad(but_first=1)
def test_a_command_sees_a_fixed_environment_and_its_output_commands_no_terminal(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p evil")
    monkeypatch.setenv("MODEL_API_KEY", "secret")
    answer = run_tests(bench, "tests/test_world.py::test_tells")
    assert "PYTHONDONTWRITEBYTECODE" in answer.text
    assert "MODEL_API_KEY" not in answer.text
    assert "PYTEST_ADDOPTS" not in answer.text
    assert "\x1b" not in answer.text
    assert "\\x1b[2J" in answer.text
    assert "evil-ran" not in tree(bench)


def test_a_command_reaches_no_network(tmp_path: Path) -> None:
    box = Bubblewrap(BWRAP)
    if not BWRAP or not anyio.run(box.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    bench = workbench(tmp_path, box)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        test = f"import socket\n\ndef test_it(): socket.create_connection(('127.0.0.1', {port}), 5)\n"
        (bench.view.source / "tests/test_net.py").write_text(test)
        answer = run_tests(bench, "tests/test_net.py")
    assert answer.exit_code == 1
    assert "ConnectionRefusedError" in answer.text or "OSError" in answer.text


@pytest.mark.broad(but_first=1)
def test_what_does_not_end_is_stopped(bench: Workbench) -> None:
    answer = run_tests(replace(bench, timeout_s=0.5), "tests/test_world.py::test_waits")
    assert answer.exit_code is None
    assert answer.text.endswith("[stopped after 0.5 seconds]")


def test_a_program_that_is_not_installed_is_an_answer(bench: Workbench, tmp_path: Path) -> None:
    answer = run(replace(bench, search_path=str(tmp_path)), "go test ./...")
    assert answer.rule == "program-missing"
    assert "go" in answer.text


def test_the_checks_run_on_the_tasks_files_that_are_there(bench: Workbench) -> None:
    show = ("python", "-c", "import sys; print(sys.argv[1:]); sys.exit(len(sys.argv) - 2)", "{files}")
    answer = anyio.run(replace(bench, checks=(show, ("cat", "no-such-file"), ("cat", "core.py"))).run_check)
    assert "['core.py', 'tests/test_core.py']\n\n[exit code 1]" in answer.text
    assert "$ cat core.py\ndef answer" in answer.text
    assert answer.exit_code == 1
    assert anyio.run(replace(bench, checks=(("cat", "core.py"),)).run_check).exit_code == 0
    assert anyio.run(bench.run_check).rule == "no-checks"
    assert anyio.run(replace(bench, checks=(show,), policy=Policy(Writes.TASK)).run_check).rule == "no-checks"


@pytest.mark.parametrize("role", [Role.CHECK, Role.SIMPLIFY, Role.ORCHESTRATOR, Role.PM])
def test_a_role_without_a_shell_runs_nothing(tmp_path: Path, role: Role) -> None:
    bench = replace(workbench(tmp_path, NoBox(), role), checks=(("cat", "core.py"),))
    assert run(bench, "ls").rule == "shell"
    assert run_tests(bench).rule == "shell"
    assert anyio.run(bench.run_check).rule == "shell"


def search(bench: Workbench, pattern: str, path: str = ".") -> ToolAnswer:
    return anyio.run(bench.search, pattern, path)


def test_lines_are_found_by_a_regular_expression(bench: Workbench) -> None:
    assert search(bench, r"return\s\d+").text == "core.py:2:     return 41\n"
    assert search(bench, "answer", "tests/test_core.py").text.splitlines() == [
        "tests/test_core.py:1: from core import answer",
        "tests/test_core.py:3: def test_right(): assert answer() == 42",
        "tests/test_core.py:4: def test_called(): assert answer()",
    ]
    assert search(bench, "answer", f"{bench.workspace}/tests").text.startswith("tests/test_core.py:1: ")
    assert search(bench, "no such words").text == "nothing matches"


def test_a_search_that_cannot_be_made_says_why(bench: Workbench) -> None:
    for pattern, path, rule in (
        ("(", ".", "pattern"),
        ("x\0", ".", "pattern"),
        ("\udcff", ".", "pattern"),
        ("x", "no-such-folder", "no-such-file"),
        ("x", "../outside", "path-form"),
        ("x", "/etc", "path-form"),
    ):
        answer = search(bench, pattern, path)
        assert (answer.rule, bool(answer.text)) == (rule, True), (pattern, path)


@pytest.mark.broad(but_first=1)
def test_a_search_follows_no_link_and_reads_text_only(bench: Workbench, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": "answer: secret\n"})
    tree = bench.view.source
    (tree / "link.txt").symlink_to(outside / "secret.txt")
    (tree / "folder").symlink_to(outside)
    (tree / "binary").write_bytes(b"answer\0")
    os.mkfifo(tree / "fifo")
    assert "secret" not in search(bench, "answer|secret").text
    assert search(bench, "secret", "folder").rule == "no-such-file"
    assert search(bench, "secret", "folder/secret.txt").rule == "no-such-file"
    assert search(bench, "secret", "link.txt").rule == "no-such-file"
    assert "binary" not in search(bench, "answer").text


@pytest.mark.broad(but_first=1)
def test_a_pattern_without_end_is_given_up(bench: Workbench) -> None:
    (bench.view.source / "trap.txt").write_text("a" * 60 + "\n")
    answer = search(replace(bench, search_s=1.0), "(a+)+$b")
    assert (answer.rule, answer.text) == ("pattern", "the search did not end within 1 s; make it simpler")


def test_what_was_changed_is_shown(tmp_path: Path, box: Box) -> None:
    def fill(top: Path) -> None:
        write(top, PROJECT)

    view = open_view(fill, tmp_path / "view", workspace=WORKSPACE, writable=True)
    mount = replace(view.mount, target=box.inside(view.mount.source, WORKSPACE))
    bench = replace(workbench(tmp_path, box), view=mount)
    assert anyio.run(bench.changes).text == "nothing was changed"
    assert bench.edit("core.py", "41", "42").rule is None
    assert bench.write("new.py", "x = 1\n").rule is None
    lines = anyio.run(bench.changes).text.splitlines()
    assert lines[:2] == [" M core.py", "?? new.py"]
    assert "-    return 41" in lines
    assert "+    return 42" in lines
    view.close()


@pytest.mark.broad(but_first=1)
def test_the_bench_of_a_dispatch_finds_the_projects_programs(tmp_path: Path, box: Box) -> None:
    bench = workbench(tmp_path, box)
    env = environment()
    tools = replace(bench.tools, folders=(env.prefix / "bin",), test_command=env.command)
    bench = replace(bench, tools=tools, search_path="/usr/bin:/bin", checks=(("pytest", "--version"),))
    assert run_tests(bench, "tests/test_core.py::test_called").exit_code == 0
    assert anyio.run(bench.run_check).exit_code == 0
    assert bench.write("core.py", "").rule is None
