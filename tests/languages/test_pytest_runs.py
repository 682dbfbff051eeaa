"""Runs that end badly, lie, or come with an awkward configuration."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from languages.direct import TOOLCHAIN, context_of, environment, files_of, measure, write
from languages.measured import ends, find
from waiting import longer_limits

import pipeline.testing.languages.python.measuring
from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red_classes import RedClass
from pipeline.process import Answer
from pipeline.testing.languages.protocol import Environment, Selection
from pipeline.testing.languages.python.records import observe, read_session

if TYPE_CHECKING:
    from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

pytestmark = pytest.mark.slow

CORE = {"core.py": "def answer():\n    return 42\n"}
PASSES = "from core import answer\n\ndef test_answer():\n    assert answer() == 42\n"


@pytest.mark.broad
def test_tests_that_kill_the_process_are_named_and_the_rest_still_runs(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "test_it.py": """
                import os, signal, sys

                def test_before(): pass
                def test_exits(): os._exit(0)
                def test_between(): pass
                def test_killed(): os.kill(os.getpid(), signal.SIGKILL)
                def test_interrupted(): raise KeyboardInterrupt
                def test_system_exit(): sys.exit(0)
                def test_after(): pass
                """
        },
    )
    observation = measure(tmp_path)
    assert observation.state is RunState.CRASHED
    assert ends(observation) == {
        "test_before": Ended.PASSED,
        "test_exits": Ended.CRASHED,
        "test_between": Ended.PASSED,
        "test_killed": Ended.CRASHED,
        "test_interrupted": Ended.CRASHED,
        "test_system_exit": Ended.FAILED,
        "test_after": Ended.PASSED,
    }
    for symptom, legal in (("crash", True), ("hang", False), (None, False)):
        context = context_of(observation, frozenset(), symptom=symptom)
        found = classify(observation.records["test_it.py::test_exits"], context)
        assert (found.cls, found.legal) == (RedClass.CRASHED, legal), "it is RED only for a task about crashes"


def test_a_test_that_hangs_is_ended_and_the_rest_still_runs(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "test_it.py": """
                import time

                def test_before(): pass

                def test_hangs():
                    while True:
                        try:
                            time.sleep(60)
                        except Exception:
                            pass

                def test_after(): pass
                """
        },
    )
    observation = measure(tmp_path, per_test_timeout_s=1)
    assert list(ends(observation).values()) == [Ended.PASSED, Ended.TIMED_OUT, Ended.PASSED]
    record = observation.records["test_it.py::test_hangs"]
    assert classify(record, context_of(observation, frozenset(), symptom="hang")).legal
    assert not classify(record, context_of(observation, frozenset(), symptom="crash")).legal
    assert classify(record, context_of(observation, frozenset())).cls is RedClass.TEST_TIMEOUT


def test_a_run_that_reaches_its_limit_names_the_test_that_was_running(tmp_path: Path) -> None:
    write(tmp_path, {"test_it.py": "import time\n\ndef test_hangs(): time.sleep(60)\n\ndef test_after(): pass\n"})
    ended = (measure(tmp_path, timeout_s=limit) for limit in longer_limits(2))
    observation = next(each for each in ended if each.records)
    assert observation.state is RunState.TIMED_OUT
    assert ends(observation) == {"test_hangs": Ended.TIMED_OUT, "test_after": None}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "production",
    [
        "import os\nprint('1 passed')\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import pytest\npytest.exit('fine', returncode=0)\n",
        "def answer():\n    import pytest\n    pytest.skip('later')\n",
        "def answer():\n    import pytest\n    pytest.xfail('known')\n",
        "import pytest\npytest.skip('all', allow_module_level=True)\n",
        "def answer():\n    raise KeyboardInterrupt\n",
    ],
    ids=["exit-at-import", "sys-exit-at-import", "pytest-exit", "skip", "xfail", "module-skip", "interrupt"],
)
def test_production_code_cannot_pretend_that_a_test_passed(tmp_path: Path, production: str) -> None:
    write(tmp_path, {"core.py": production, "test_it.py": PASSES})
    observation = measure(tmp_path)
    assert observation.environment_problem is None
    assert Ended.PASSED not in ends(observation).values()


@pytest.mark.broad
def test_a_conftest_that_rewrites_reports_does_not_turn_a_failure_into_a_pass(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "conftest.py": """
                import pytest

                @pytest.hookimpl(hookwrapper=True)
                def pytest_runtest_makereport(item, call):
                    outcome = yield
                    outcome.get_result().outcome = "passed"
                """,
            "test_it.py": "def test_fails(): assert 1 == 2\n",
        },
    )
    assert ends(measure(tmp_path)) == {"test_fails": Ended.FAILED}


@pytest.mark.broad
def test_a_runner_that_reports_every_check_as_passed_is_noticed(tmp_path: Path) -> None:
    forged = """
        from _pytest.reports import TestReport

        true = TestReport.from_item_and_call.__func__

        def forged(cls, item, call):
            call.excinfo = None
            return true(cls, item, call)

        TestReport.from_item_and_call = classmethod(forged)

        def answer():
            return 41
        """
    write(tmp_path, {"core.py": forged, "test_it.py": PASSES})
    observation = measure(tmp_path)
    assert observation.state is RunState.UNUSABLE
    assert "tampered" in observation.detail


@pytest.mark.parametrize("line", ['{"kind": "test"}', "not json", '{"nonce":"x","n":0,"kind":"start","id":"a"}'])
@pytest.mark.broad(but_first=1)
def test_records_that_the_plugin_did_not_write_are_refused(tmp_path: Path, line: str) -> None:
    spray = f"""
        import glob, os

        def answer():
            for fd in os.listdir("/proc/self/fd"):
                target = os.path.realpath("/proc/self/fd/" + fd)
                if "/socket:" in target:
                    os.write(int(fd), {line!r}.encode() + b"\\n")
            return 42
        """
    write(tmp_path, {"core.py": spray, "test_it.py": PASSES})
    observation = measure(tmp_path)
    assert observation.state is RunState.UNUSABLE
    assert observation.records == {}
    assert observation.environment_problem is not None


LOOKING = """
    import os, socket

    assert "REDFIRST_SOCKET" not in os.environ

    def test_request():
        open_ones = {fd: os.path.realpath("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")}
        (fd,) = [fd for fd, target in open_ones.items() if "/socket:" in target]
        with socket.socket(fileno=os.dup(int(fd))) as ours:
            assert ours.recv(1, socket.MSG_PEEK) == b"", "the request is read to its end"

    def test_child_that_returns_into_pytest():
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)

    def test_message(tmp_path):
        raise ValueError(f"{object()} {tmp_path} {__file__}")
    """


def test_of_the_request_a_forked_child_and_this_machine_nothing_is_seen_and_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path, {**CORE, "test_core.py": PASSES, "test_it.py": LOOKING})
    before = files_of(tmp_path)
    observation = measure(tmp_path)
    assert (observation.state, ends(observation)) == (
        RunState.COMPLETE,
        {
            "test_answer": Ended.PASSED,
            "test_request": Ended.PASSED,
            "test_child_that_returns_into_pytest": Ended.PASSED,
            "test_message": Ended.FAILED,
        },
    )
    fault = observation.records["test_it.py::test_message"].fault
    assert fault is not None
    message = fault.raised.message
    assert message.startswith("<object object at 0x..> <scratch>/temproot/")
    assert message.endswith(" ./test_it.py")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(before)


@pytest.mark.broad
def test_a_project_module_loaded_from_elsewhere_breaks_the_environment(tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "elsewhere", CORE)
    project = {
        **CORE,
        "pytest.ini": f"[pytest]\naddopts = --import-mode=importlib\npythonpath = {elsewhere}\n",
        "test_it.py": PASSES,
    }
    observation = measure(write(tmp_path / "project", project))
    assert [module.name for module in observation.foreign_modules] == ["core"]
    assert "core" in (observation.environment_problem or "")


def test_an_option_that_pytest_does_not_know_makes_the_run_unusable_with_its_words(tmp_path: Path) -> None:
    write(tmp_path, {"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_it.py": "def test_it(): pass\n"})
    observation = measure(tmp_path)
    assert observation.state is RunState.UNUSABLE
    assert "--no-such-option" in (observation.environment_problem or "")


def test_an_interpreter_without_pytest_makes_the_run_unusable(tmp_path: Path) -> None:
    write(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    bare = Environment(("/bin/sh", "-c", "echo no pytest here; exit 1", "sh"), (), Path("/usr"), ())
    observation = measure(tmp_path, env=bare)
    assert "no pytest here" in (observation.environment_problem or "")


@pytest.mark.broad
def test_a_region_changes_with_the_test_and_its_decorators_and_nothing_else(tmp_path: Path) -> None:
    def regions(body: str) -> dict[str, str]:
        write(tmp_path, {"test_it.py": body})
        found = measure(tmp_path, Selection.nothing()).records
        return {entry.partition("::")[2]: record.region_sha256 for entry, record in found.items()}

    source = """
        import pytest

        @pytest.mark.parametrize("n", [1])
        def test_a(n):
            assert n

        class TestB:
            def test_b(self):
                assert True
        """
    before = regions(source)
    assert regions("\n        # a comment above" + source.replace("assert True", "assert 1")) == {
        "test_a[1]": before["test_a[1]"],
        "TestB::test_b": regions(source.replace("assert True", "assert 1"))["TestB::test_b"],
    }
    assert before["TestB::test_b"] != regions(source.replace("assert True", "assert 1"))["TestB::test_b"]
    after = regions(source.replace("[1]", "[1, 2]"))
    assert after["test_a[1]"] != before["test_a[1]"]
    (tmp_path / "test_it.py").write_text((tmp_path / "test_it.py").read_text().rstrip())
    unended = {entry.partition("::")[2]: one.region_sha256 for entry, one in measure(tmp_path).records.items()}
    assert unended["TestB::test_b"] == before["TestB::test_b"], "what ends the last line of a file is none of its test"


@pytest.mark.broad
def test_which_files_are_tests_follows_the_runner(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pytest.ini": "[pytest]\ntestpaths = checks\npython_files = *_spec.py\n",
            "checks/a_spec.py": "def test_a(): pass\n",
            "checks/test_b.py": "def test_b(): pass\n",
            "src/c_spec.py": "def test_c(): pass\n",
        },
    )
    layout = measure(tmp_path, Selection.nothing()).layout
    found = {
        path: layout.is_test(path)
        for path in ("checks/a_spec.py", "checks/new_spec.py", "checks/test_b.py", "src/c_spec.py")
    }
    assert found == {
        "checks/a_spec.py": True,
        "checks/new_spec.py": True,
        "checks/test_b.py": False,
        "src/c_spec.py": False,
    }


def test_the_plugin_is_valid_python_3_8() -> None:
    modules = list(Path(pipeline.testing.languages.python.measuring.__file__).with_name("plugin").glob("*.py"))
    assert modules
    for module in modules:
        assert ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"nonce":"n","n":0,"kind":"session_start","python":"3","pytest":"9"}\n{"non']
)
def test_records_cut_short_are_a_crash_or_unusable_but_never_complete(data: bytes) -> None:
    session = read_session(Answer(data), "n", exit_code=0, timed_out=False)
    assert observe([session], command=(), tail="").state in (RunState.CRASHED, RunState.UNUSABLE)


@pytest.mark.broad
def test_the_command_that_is_told_is_the_one_that_runs_with_the_projects_options(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n    pass\n", encoding="utf-8")
    env = replace(environment(), command=(*environment().command, "-p", "no:doctest"))
    chosen = Selection(ids=frozenset({"test_a.py::test_a"}))
    told = measure(tmp_path, chosen, env=env).command
    assert told == (sys.executable, "-m", "pytest", "-p", "no:doctest", "test_a.py::test_a")
    assert subprocess.run(told, cwd=tmp_path, capture_output=True, check=False).returncode == 0


# --- in the kernel box, where paths differ and the records leave through a mount


def test_a_measurement_in_the_box_equals_one_outside(tmp_path: Path, box: Bubblewrap) -> None:
    write(
        tmp_path,
        {
            "core.py": "def answer():\n    return 41\n",
            "test_it.py": """
                import os
                from core import answer

                def test_fails(tmp_path): assert answer() == 42
                def test_exits(): os._exit(0)
                def test_passes(): assert os.getcwd() != "/"
                """,
        },
    )
    inside, outside = measure(tmp_path, box=box), measure(tmp_path)
    assert inside.state is RunState.CRASHED
    assert [record.outcome for record in inside.records.values()] == [Ended.FAILED, Ended.CRASHED, Ended.PASSED]
    assert inside.records == outside.records
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["core.py", "test_it.py"]


@pytest.mark.parametrize("inside", ["src", "."])
@pytest.mark.broad
def test_the_view_is_shown_where_an_editable_install_points(tmp_path: Path, box: Bubblewrap, inside: str) -> None:
    module = f"{inside}/core.py"
    test = "import core\n\ndef test_it(): assert core.answer() == 42\n"
    config = "[pytest]\naddopts = --import-mode=importlib\n"
    files = {module: "def answer():\n    return 41\n", "tests/test_it.py": test, "pytest.ini": config}
    tree = write(tmp_path / "tree", files)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / ".venv"], check=True)
    site = next(tree.glob(".venv/lib/python*/site-packages"))
    (site / "it.pth").write_text(f"{sysconfig.get_path('purelib')}\n{tree / inside}\n")
    env = find(TOOLCHAIN, tree, path="/nowhere")
    assert isinstance(env, Environment)
    view = write(tmp_path / "view", {**files, module: "def answer():\n    return 42\n"})
    observation = measure(view, env=env, box=box)
    assert observation.modules["core"] == module.removeprefix("./")
    assert [record.outcome for record in observation.records.values()] == [Ended.PASSED], observation.tail


# --- a module in the place of a file of tests is a collection error, however it came there

PLANTED = """
import os, sys, types
os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"
module = types.ModuleType("test_b")
module.test_it = lambda: None
{named}
sys.modules["test_b"] = module
"""
FAILS = "def test_it():\n    assert 0\n"


@pytest.mark.parametrize("named", ["", "module.__file__ = __file__"], ids=["nothing", "another"])
@pytest.mark.parametrize("mode", ["prepend", "importlib"])
@pytest.mark.broad(but_first=2)
def test_a_planted_module_is_no_file_of_tests(named: str, mode: str, tmp_path: Path) -> None:
    settings = f"[pytest]\npythonpath = .\naddopts = --import-mode={mode}\n"
    files = {
        "pytest.ini": settings,
        "app.py": PLANTED.format(named=named),
        "test_a.py": "import app\n",
        "test_b.py": FAILS,
    }
    seen = measure(write(tmp_path, files))
    assert seen.unread == {"test_b.py"}
    assert "was loaded in its place" in seen.collection_errors[0].fault.raised.message


@pytest.mark.broad
def test_honest_modules_are_in_their_own_place(tmp_path: Path) -> None:
    passes = "def test_it():\n    '''\n    >>> 1\n    1\n    '''\n"
    files = {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
        "pkg/__init__.py": passes,
        "pkg/tests/__init__.py": passes,
        "pkg/tests/test_a.py": passes,
        "other/test_b.py": passes,
    }
    root = write(tmp_path / "real", files)
    (root / "linked").symlink_to("other")
    (tmp_path / "link").symlink_to(root)
    for place in (root, tmp_path / "link"):
        assert measure(place).collection_errors == ()
