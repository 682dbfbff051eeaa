"""A project of whose tests none can be loaded is refused before anybody is paid, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import FILES, PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, make_project

from pipeline.judge.evidence.observation import CollectionError, Fault, Observation, Raised, RunState
from pipeline.testing.measure.baseline import why_unloadable

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]


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


def test_a_module_that_is_nowhere_is_asked_for(tmp_path: Path) -> None:
    files = {**FILES, "greet.py": "import shop_settings\n" + FILES["greet.py"]}
    project = make_project(tmp_path, files)
    project.use_script([])
    document = project.run()
    assert document["reason"] == "baseline_impossible"
    assert "If shop_settings is the project's own, install the project where its tests run" in document["note"]


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
