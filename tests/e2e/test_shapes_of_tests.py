"""Whole runs over tests of many shapes: examples, moved files, new names, slow, failing and unloadable ones."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import FAST, TRACKER, answers, changed, done, evidence, red_of
from kit import (
    AFTER_MAKE,
    FILES,
    GREET,
    GREET_DONE,
    HONEST,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TASK,
    TEST_GREET_NEW,
    Project,
    judge,
    make_project,
)

from pipeline.judge.evidence.observation import CollectionError, Fault, Observation, Raised, RunState
from pipeline.testing.measure.baseline import why_unloadable

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

# --- examples in texts and in modules, which pytest runs as doctests --------------------------------------------------

USAGE, MORE = "docs/usage.txt", "docs/more.txt"
TEXT = "Usage\n=====\n\n>>> from greet import greet\n>>> greet('Ada')\n'Hello, Ada!'\n"
REFUSED = """
A name is needed:

>>> greet('')
Traceback (most recent call last):
ValueError: a name is needed
"""
FAREWELL = '\n\ndef farewell(name):\n    return f"Bye, {name}!"\n'
SHOWN = '    """Greet.\n\n    >>> greet(\'Ada\')\n    \'Hello, Ada!\'\n    """\n'
EXAMPLES = """[tool.pytest.ini_options]
pythonpath = ["."]
addopts = "--disable-plugin-autoload --doctest-glob=*.txt --doctest-modules"
"""


@pytest.mark.broad
def test_examples_in_texts_may_be_the_tests_of_a_task_and_those_in_its_module_come_back_from_the_split(
    tmp_path: Path,
) -> None:
    before, after = (text.replace("(name):\n", f"(name):\n{SHOWN}") for text in (GREET, GREET_DONE))
    files = {"pyproject.toml": EXAMPLES, "greet.py": before, USAGE: TEXT, **TRACKER}
    bye = ">>> from greet import farewell\n>>> farewell('Ada')\n'Bye, Ada!'\n"
    symbol = {"path": "greet.py", "name": "farewell", "signature": "(name)", "new": True}
    entries = answers(files, {USAGE: TEXT + REFUSED, MORE: bye}, {"greet.py": after + FAREWELL}, symbols=[symbol])
    entries[3]["report"]["tasks"][0]["tests_to_change"] = [{"id": USAGE, "reason": "it says more"}]
    beside = deepcopy(entries[3])
    beside["report"]["tasks"][0]["test_files"] = [{"path": "greet.py", "action": "modify"}]
    project = make_project(tmp_path, files)
    project.use_script([*entries[:3], beside, *entries[3:]], f"{FAST}[limits]\ntest_rewrite = 0\n")
    done(project)
    assert "split/HYGIENE" in project.rows()
    told = [path.read_text(encoding="utf-8") for path in project.run_folder().rglob("*.md")]
    assert any("put its tests into a test file" in text for text in told)
    assert red_of(project) == {f"{USAGE}::usage.txt": "ASSERTION_MISMATCH", f"{MORE}::more.txt": "MISSING_BEHAVIOR"}
    red = evidence(project, "task-1.json")["ledger"]["red"]
    assert "got \"'Hello, !'\\n\"" in red[f"{USAGE}::usage.txt"]["message"]
    assert changed(project, "HEAD~1") == [MORE, USAGE, "greet.py"]
    checked = project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.broad
def test_an_old_file_of_tests_may_import_what_is_new_at_its_top_and_its_old_tests_are_run_all_the_same(
    tmp_path: Path,
) -> None:
    there, old = "tests/test_shop.py", "from shop.greet import greet\n\n\ndef test_greets():\n    assert greet('a')\n"
    test = '\n\ndef test_a_farewell():\n    assert farewell("Ada") == "Bye, Ada!"\n'
    config = {"pyproject.toml": FILES["pyproject.toml"]}
    files = {**config, "shop/__init__.py": "", "shop/greet.py": GREET, there: old, **TRACKER}
    symbol = {"path": "shop/greet.py", "name": "farewell", "signature": "(name)", "new": True}
    tests = {there: f"from shop.greet import farewell\n{old}{test}"}
    project = make_project(tmp_path, files)
    script = answers(files, tests, {"shop/greet.py": GREET + FAREWELL}, symbols=[symbol])
    project.use_script(script, f"{FAST}[limits]\ntest_rewrite = 0\n")
    done(project)
    assert "write-tests/RED" in project.rows(), project.rows()
    found = evidence(project, "task-1.json")
    assert list(found["ledger"]["red"]) == [f"{there}::test_a_farewell"]
    assert found["green"]["kept"] == 1, "the old test of the file is among what was kept"
    checked = project.redfirst("verify", "HEAD~1")
    assert checked.returncode == 0, checked.stdout + checked.stderr


# --- a test file gets another name: its tests are kept under the new one, neither new nor removed ---------------------

HERE, MOVED = "tests/test_greet.py", "tests/test_greeting.py"
MOVE = {"path": MOVED, "action": "rename", "from": HERE}
BEFORE = FILES[HERE]


def moving(tmp_path: Path, text: str, *answers: Entry, **task: Any) -> tuple[Project, dict[str, Any]]:
    """Return the run of one task in which @test moves the file of tests and leaves this text in it."""
    project = make_project(tmp_path)
    split = {"when": {"kind": "split"}, "report": {"tasks": [{**TASK, "test_files": [MOVE], **task}]}}
    moved = {"when": {"kind": "write-tests"}, "files": {HERE: None, MOVED: text}, "report": {"verdict": "TESTS_READY"}}
    entries = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED, moved, *answers, *AFTER_MAKE]
    project.use_script(entries, FAST)
    return project, project.run()


@pytest.mark.broad
def test_a_task_may_move_a_test_file_and_nothing_else(tmp_path: Path) -> None:
    project, document = moving(tmp_path, BEFORE, evidence="regression", files=[], symbols=[])
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "write-tests/RED" in project.rows()
    assert project.git("diff", "--name-status", "HEAD~2", "HEAD~1") == f"R100\t{HERE}\t{MOVED}"
    (old,) = evidence(project, "baseline.json")["outcomes"]
    ledger = evidence(project, "task-1.json")["ledger"]
    assert (ledger["red"], list(ledger["guards"])) == ({}, [old.replace(HERE, MOVED)])
    found = project.redfirst("verify", "HEAD~1")
    assert "moved" in found.stdout, found.stdout
    assert "refuted" not in found.stdout, found.stdout


@pytest.mark.broad
def test_a_test_file_that_moves_with_its_module_is_none_that_was_changed_to_fit(tmp_path: Path) -> None:
    files = [{"path": "greeting.py", "action": "create"}, {"path": "greet.py", "action": "delete"}]
    moved = {**MAKE, "files": {"greeting.py": FILES["greet.py"], "greet.py": None}}
    text = BEFORE.replace("from greet ", "from greeting ")
    symbols = [{"path": "greeting.py", "name": "greet", "new": True}]
    agrees = judge("tests", verdict="ACCEPTABLE")
    project, document = moving(tmp_path, text, agrees, moved, files=files, symbols=symbols)
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "implement/HIDDEN_REGRESSION" not in project.rows()
    found = project.redfirst("verify", "HEAD~1")
    assert "refuted" not in found.stdout, found.stdout


# --- tests that take more time while they are traced ------------------------------------------------------------------

LIMIT_S = 4
# a stand-in for many calls: each costs more where it is traced, whatever the machine
SLOW = f"""
import sys
import time


def traced():
    monitoring = getattr(sys, "monitoring", None)
    return sys.getprofile() is not None or (monitoring is not None and monitoring.get_tool(2) is not None)


def take_time():
    end = time.monotonic() + ({LIMIT_S} + 1 if traced() else 0)
    while time.monotonic() < end:
        pass
"""
SLOW_TEST = """import pytest

import slow
from greet import greet


def test_nobody():
    slow.take_time()
    with pytest.raises(ValueError, match="needed"):
        greet("")
"""
LIMIT = f"{FAST}[toolchains.pytest]\ntest_timeout_s = {LIMIT_S}\n"
SLOW_FILES = {
    "pyproject.toml": FILES["pyproject.toml"],
    "greet.py": GREET,
    "slow.py": SLOW,
    "tests/test_old.py": "def test_old():\n    pass\n",
    **TRACKER,
}


@pytest.mark.broad
def test_a_test_that_is_too_slow_only_while_it_is_traced_is_red(tmp_path: Path) -> None:
    project = make_project(tmp_path, SLOW_FILES)
    project.use_script(answers(SLOW_FILES, {"tests/test_new.py": SLOW_TEST}, {"greet.py": GREET_DONE}), LIMIT)
    document = project.run()
    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    (red,) = evidence(project, "task-1.json")["ledger"]["red"].values()
    assert red["cls"] == "ASSERTION_MISMATCH"


# --- tests that were red before a run, or did not end in time, are named ----------------------------------------------

RED = "".join(f"\n\ndef test_red_{number}():\n    assert {number} < 0\n" for number in range(5))
HANGS = "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n"


@pytest.mark.broad
def test_the_summary_and_the_console_name_them_with_the_limit(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_red.py": RED.lstrip(), "tests/test_hangs.py": HANGS})
    project.commit("red tests")
    project.use_script(HONEST, "[toolchains.pytest]\ntest_timeout_s = 2\n")
    document = project.run()
    assert document["outcome"] == "completed", document["_stderr"]
    red = (
        "5 tests failed before already and are not counted: tests/test_red.py::test_red_0, "
        "tests/test_red.py::test_red_1, tests/test_red.py::test_red_2 and 2 more"
    )
    late = "1 test did not end within 2 s before already and is not counted: tests/test_hangs.py::test_hangs"
    summary = (project.run_folder() / "summary.md").read_text(encoding="utf-8")
    (line,) = [line for line in document["_stderr"].splitlines() if "sanity" in line]
    for sentence in (red, late):
        assert f"* {sentence}" in summary or f"- {sentence}" in summary
        assert sentence in line
    assert "7 tests: 5 failed, " in line
    assert "7 tests: 5 failed, " in (project.run_folder() / "evidence/baseline.md").read_text(encoding="utf-8")


# --- tests that cannot be loaded: refused before anybody is paid, with what to do about it ----------------------------


@pytest.mark.broad
def test_a_module_that_git_ignores_is_named(tmp_path: Path) -> None:
    files = {
        **FILES,
        ".gitignore": "_version.py\n.worktreeinclude\n",
        "greet.py": "import _version\n" + FILES["greet.py"],
    }
    project = make_project(tmp_path, files)
    (project.root / "_version.py").write_text("VERSION = '1'\n")
    project.use_script([])
    document = project.run()
    assert (document["outcome"], document["reason"]) == ("rejected", "baseline_impossible")
    assert "tests/test_greet.py: builtins.ModuleNotFoundError: No module named '_version'" in document["note"]
    assert "_version.py is there and git ignores it: write that path into .worktreeinclude" in document["note"]
    (project.root / ".worktreeinclude").write_text("_version.py\n")
    again = project.run()
    assert again["error"]["kind"] == "config", "the script is empty: nobody is there to plan"
    assert "sanity/OK" in project.rows("run-GAL-1@2")


@pytest.mark.broad
def test_a_module_that_is_nowhere_is_asked_for(tmp_path: Path) -> None:
    files = {**FILES, "greet.py": "import shop_settings\n" + FILES["greet.py"]}
    project = make_project(tmp_path, files)
    project.use_script([])
    document = project.run()
    assert document["reason"] == "baseline_impossible"
    assert "If shop_settings is the project's own, install the project where its tests run" in document["note"]


@pytest.mark.broad
def test_a_task_in_a_test_file_that_cannot_be_loaded_ends_the_run_before_it_is_reviewed(tmp_path: Path) -> None:
    files = {
        **FILES,
        "tests/test_greet.py": "import shop_settings\n" + FILES["tests/test_greet.py"],
        "tests/test_other.py": "def test_other():\n    pass\n",
    }
    project = make_project(tmp_path, files)
    project.use_script([PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT])
    document = project.run()
    assert (document["outcome"], document["reason"]) == ("failed", "baseline_impossible"), document
    assert "split/BASELINE_IMPOSSIBLE" in project.rows()
    assert "split/DRAFTED" not in project.rows()
    stopped = next(line["data"] for line in project.journal() if line["data"].get("row") == "split/BASELINE_IMPOSSIBLE")
    assert "tests/test_greet.py, which the draft names, cannot be loaded" in str(stopped)
    assert "No module named 'shop_settings'" in str(stopped)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("message", "made", "stops"),
    [
        ("No module named 'shop'", (), True),
        ("No module named 'shop.cart'", ("src/shop/cart.py",), False),  # the task makes it
        ("Cannot find package 'left-pad' imported from a.test.js", (), True),
        ("Cannot find module './cart.js'", (), False),
        ("import file mismatch:\nimported module 'test_a' has this __file__ attribute", (), True),
        ("cannot import name 'farewell' from 'greet'", (), False),
        ("invalid syntax", (), False),
    ],
)
def test_what_a_task_may_mend_itself_stops_nothing(message: str, made: tuple[str, ...], *, stops: bool) -> None:
    fault = Fault(chain=(Raised(kind="E", message=message),))
    seen = Observation(
        state=RunState.COMPLETE, collection_errors=(CollectionError(path="tests/test_a.py", fault=fault),)
    )
    assert (why_unloadable(seen, ["tests/test_a.py"], made) is not None) is stops
    assert why_unloadable(seen, ["tests/test_b.py"], made) is None


# --- cases whose ids are others in each run ---------------------------------------------------------------------------

UUIDS = """import uuid

import pytest
from greet import greet


@pytest.mark.parametrize("name", ["", str(uuid.uuid4())])
def test_a_name(name):
    if name:
        assert greet(name) == f"Hello, {name}!"
    else:
        with pytest.raises(ValueError):
            greet(name)
"""


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("whose", ["the project's", "the task's"])
def test_cases_with_other_ids_in_each_run_are_named_once_and_their_writer_is_told_what_to_do(
    tmp_path: Path, whose: str
) -> None:
    old = UUIDS.replace('["", ', '["Ada", ') if whose == "the project's" else ""
    project = make_project(tmp_path, {**FILES, **({"tests/test_ids.py": old} if old else {})})
    project.use_script(
        answers(FILES, {"tests/test_new.py": TEST_GREET_NEW if old else UUIDS}, {"greet.py": GREET_DONE}), FAST
    )
    ran = project.redfirst("run", "GAL-1")
    assert "Give each case the same id in every run" in ran.stdout + ran.stderr
    assert project.rows()[-1] == ("any/ENV_BROKEN" if old else "write-tests/ILLEGAL_RED")
