"""Runs that end badly, lie, or come with an awkward configuration."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, environment, files_of, measure, write
from waiting import longer_limits

import pipeline.testing.languages.python.measuring
from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red_classes import RedClass, Symptom
from pipeline.process import Answer
from pipeline.testing.languages.protocol import Environment, Selection
from pipeline.testing.languages.python.records import observe, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import Observation

pytestmark = pytest.mark.slow

CORE = {"core.py": "def answer():\n    return 42\n"}
PASSES = "from core import answer\n\ndef test_answer():\n    assert answer() == 42\n"


def _outcomes(observation: Observation) -> Mapping[str, Ended | None]:
    return {entry.partition("::")[2]: record.outcome for entry, record in observation.records.items()}


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
    assert _outcomes(observation) == {
        "test_before": Ended.PASSED,
        "test_exits": Ended.CRASHED,
        "test_between": Ended.PASSED,
        "test_killed": Ended.CRASHED,
        "test_interrupted": Ended.CRASHED,
        "test_system_exit": Ended.FAILED,
        "test_after": Ended.PASSED,
    }


@pytest.mark.parametrize(("symptom", "legal"), [("crash", True), ("hang", False), (None, False)])
@pytest.mark.broad
def test_a_crash_is_red_only_for_a_task_about_crashes(tmp_path: Path, symptom: Symptom | None, legal: bool) -> None:
    write(tmp_path, {"test_it.py": "import os\n\ndef test_exits(): os._exit(0)\n"})
    observation = measure(tmp_path)
    found = classify(
        observation.records["test_it.py::test_exits"], context_of(observation, frozenset(), symptom=symptom)
    )
    assert (found.cls, found.legal) == (RedClass.CRASHED, legal)


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
    assert list(_outcomes(observation).values()) == [Ended.PASSED, Ended.TIMED_OUT, Ended.PASSED]
    record = observation.records["test_it.py::test_hangs"]
    assert classify(record, context_of(observation, frozenset(), symptom="hang")).legal
    assert not classify(record, context_of(observation, frozenset(), symptom="crash")).legal
    assert classify(record, context_of(observation, frozenset())).cls is RedClass.TEST_TIMEOUT


def test_a_run_that_reaches_its_limit_names_the_test_that_was_running(tmp_path: Path) -> None:
    write(tmp_path, {"test_it.py": "import time\n\ndef test_hangs(): time.sleep(60)\n\ndef test_after(): pass\n"})
    ended = (measure(tmp_path, timeout_s=limit) for limit in longer_limits(2))
    observation = next(each for each in ended if each.records)
    assert observation.state is RunState.TIMED_OUT
    assert _outcomes(observation) == {"test_hangs": Ended.TIMED_OUT, "test_after": None}


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
    assert Ended.PASSED not in _outcomes(observation).values()


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
    assert _outcomes(measure(tmp_path)) == {"test_fails": Ended.FAILED}


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


@pytest.mark.broad
def test_a_forked_child_that_returns_into_pytest_adds_no_records(tmp_path: Path) -> None:
    forking = "import os\n\ndef test_forks():\n    pid = os.fork()\n    if pid:\n        os.waitpid(pid, 0)\n"
    write(tmp_path, {"test_it.py": forking})
    observation = measure(tmp_path)
    assert (observation.state, _outcomes(observation)) == (RunState.COMPLETE, {"test_forks": Ended.PASSED})


def test_the_request_with_the_nonce_is_gone_before_project_code_runs(tmp_path: Path) -> None:
    looking = """
        import os, socket

        assert "REDFIRST_SOCKET" not in os.environ

        def test_request():
            open_ones = {fd: os.path.realpath("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")}
            (fd,) = [fd for fd, target in open_ones.items() if "/socket:" in target]
            with socket.socket(fileno=os.dup(int(fd))) as ours:
                assert ours.recv(1, socket.MSG_PEEK) == b"", "the request is read to its end"
        """
    write(tmp_path, {"test_it.py": looking})
    assert _outcomes(measure(tmp_path)) == {"test_request": Ended.PASSED}


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
def test_a_run_leaves_nothing_in_the_view_but_what_the_tests_write(tmp_path: Path) -> None:
    write(tmp_path, {**CORE, "test_it.py": PASSES})
    before = files_of(tmp_path)
    measure(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(before)


@pytest.mark.broad
def test_a_selection_runs_only_its_tests_and_still_knows_all_ids(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": "def test_1(): pass\n\ndef test_2(): pass\n", "test_b.py": "def test_3(): pass\n"})
    chosen = measure(tmp_path, Selection(ids=frozenset({"test_a.py::test_2", "test_a.py::test_gone"})))
    assert _outcomes(chosen) == {"test_1": None, "test_2": Ended.PASSED, "test_3": None}
    assert _outcomes(measure(tmp_path, Selection(files=frozenset({"test_b.py"}))))["test_3"] is Ended.PASSED


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
def test_messages_hold_no_addresses_and_no_places_of_this_machine(tmp_path: Path) -> None:
    failing = "def test_it(tmp_path):\n    raise ValueError(f'{object()} {tmp_path} {__file__}')\n"
    write(tmp_path, {"test_it.py": failing})
    fault = measure(tmp_path).records["test_it.py::test_it"].fault
    assert fault is not None
    message = fault.raised.message
    assert message.startswith("<object object at 0x..> <scratch>/temproot/")
    assert message.endswith(" ./test_it.py")


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
