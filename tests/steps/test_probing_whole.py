"""All probes of a task over real evidence: what the probes say of tests that were not what they were taken for."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from kit import make_project
from steps.probed import PYPROJECT, seen, tree_of, without_run

from pipeline.config.tables import Probes
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_classes import Context
from pipeline.judge.reports.tasks import Task
from pipeline.sandbox.boxes.box import open_box
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure.composed_trees import compose
from pipeline.testing.measure.measuring import changed_paths, measure
from pipeline.testing.measure.outcome_words import probes_md
from pipeline.testing.measure.probes import Candidate, probes_of
from pipeline.testing.measure.task_evidence import TaskEvidence

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kit import Project

    from pipeline.process import Box
    from pipeline.testing.measure.task_evidence import ProbeEvidence
    from pipeline.testing.verification.context import VerificationContext

pytestmark = pytest.mark.slow

OLD = 'def price(n):\n    """Return the price."""\n    return n\n'
NEW = 'def price(n):\n    """Return the price."""\n    if n > 10:\n        return n - 1\n    return n\n'
TEST = "from shop import price\n\n\ndef test_price():\n    assert price(20) == 19\n    assert price(10) == 10\n"
TEST_ID = "tests/test_shop.py::test_price"
BEFORE = {"pyproject.toml": PYPROJECT, "shop.py": OLD, "tests/test_old.py": "def test_old():\n    pass\n"}
TASK = Task.model_validate_json(
    json.dumps(
        {
            "id": "1",
            "title": "Discount",
            "files": [{"path": "shop.py", "action": "modify"}],
            "test_files": [{"path": "tests/test_shop.py", "action": "create"}],
        }
    )
)


def history(tmp_path: Path, tests: Mapping[str, str], code: Mapping[str, str]) -> Project:
    """Return a project with three commits: as it was, with what @test added, with what came after."""
    project = make_project(tmp_path, BEFORE)
    project.write(dict(tests))
    project.commit("tests")
    project.git("branch", "red")
    project.write(dict(code))
    project.commit("code")
    return project


def evidence(lab: VerificationContext) -> TaskEvidence:
    """Return the evidence as WRITE_TESTS measures it."""
    start, tests = tree_of(lab, "main"), tree_of(lab, "red")
    paths = changed_paths(lab, start, tests)
    before = anyio.run(measure, lab, start)
    tree = compose(lab, tests, start, paths, before.layout).tree
    after = anyio.run(partial(measure, trace=True), lab, tree, Selection(files=frozenset(paths)))
    context = Context(
        symbols=(),
        existing=frozenset({"shop.py"}),
        layout=after.layout,
        names=names,
        task_files=frozenset({"shop.py"}),
        expected={},
    )
    verdict = judge_red(before, after, None, context, task="1", tree=tests)
    assert verdict.legal, verdict
    return TaskEvidence(
        task="1", tests_tree=tests, production=start, test_paths=paths, command=(), ledger=verdict.ledger
    )


def probed(
    project: Project,
    wanted: Probes | None = None,
    new_ids: tuple[str, ...] = (),
    box: Box | None = None,
    old: tuple[str, ...] = (),
) -> ProbeEvidence:
    with without_run(project, box=box) as lab:
        found = evidence(lab)
        green = seen(lab)
        candidate = Candidate(tree_of(lab, "HEAD"), green, new_ids, old=old, start=tree_of(lab, "main"))
        return anyio.run(
            probes_of, lab, wanted or Probes(mutants=3, seconds=300), [TASK], found, candidate, green.layout
        )


@pytest.mark.broad
def test_honest_work_holds(tmp_path: Path) -> None:
    box = anyio.run(open_box, "auto")
    found = probed(history(tmp_path, {"tests/test_shop.py": TEST}, {"shop.py": NEW}), box=box)
    assert found.repeated is not None
    assert (found.repeated.runs, found.repeated.unstable) == (2, {})
    assert found.revert is not None
    assert (found.revert.held, found.revert.problems, found.revert.passing) == ((TEST_ID,), {}, ())
    assert found.mutation is not None
    assert (found.mutation.killed, found.mutation.survivors) == (3, ())


@pytest.mark.broad
def test_what_only_came_with_the_tests_own_helper_is_not_red(tmp_path: Path) -> None:
    helped = "from tests.prices import price\n\n\ndef test_price():\n    assert price(20) == 19\n"
    tests = {
        "tests/test_shop.py": helped,
        "tests/__init__.py": "",
        "tests/prices.py": "from shop import price\n",
    }
    # the helper, which serves tests, was given the behaviour as well: the test no longer looks at production
    cheat = {"shop.py": NEW, "tests/prices.py": "def price(n):\n    return n - 1\n"}
    found = probed(history(tmp_path, tests, cheat))
    assert found.revert is not None
    assert "was ASSERTION_MISMATCH over the code before, and now" in found.revert.problems[TEST_ID]
    assert found.revert.held == ()
    assert found.mutation is None
    assert f"`{TEST_ID}`: was ASSERTION_MISMATCH" in probes_md("1", found)


@pytest.mark.broad
def test_an_id_that_came_with_the_candidate_and_passes_before_is_told(tmp_path: Path) -> None:
    cases = (
        "import json, pathlib, pytest\n\nfrom shop import price\n\n"
        "CASES = json.loads(pathlib.Path(__file__).with_name('cases.json').read_text())\n\n\n"
        "@pytest.mark.parametrize(('n', 'expected'), CASES)\ndef test_price(n, expected):\n"
        "    assert price(n) == expected\n"
    )
    tests = {"tests/test_shop.py": cases, "tests/cases.json": "[[20, 19]]"}
    project = history(tmp_path, tests, {"shop.py": NEW, "tests/cases.json": "[[20, 19], [3, 3]]"})
    new = "tests/test_shop.py::test_price[3-3]"
    found = probed(project, Probes(repeat=1, mutants=0), (new,))
    assert (found.repeated, found.mutation) == (None, None)
    assert found.revert is not None
    assert (found.revert.passing, found.revert.problems) == ((new,), {})


@pytest.mark.broad
def test_a_test_that_is_not_always_green(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    flaky = (
        f"import pathlib\n\nfrom shop import price\n\nMARKS = pathlib.Path({str(marks)!r})\n\n\n"
        "def test_price():\n    assert price(20) == 19\n    MARKS.mkdir(exist_ok=True)\n"
        "    seen = len(list(MARKS.iterdir()))\n    (MARKS / str(seen)).touch()\n    assert seen % 2 == 0\n"
    )
    found = probed(history(tmp_path, {"tests/test_shop.py": flaky}, {"shop.py": NEW}))
    assert found.repeated is not None
    # traced it fails twice, else not always
    assert found.repeated.unstable == {TEST_ID: ("passed", "failed", "passed", "failed", "passed", "failed")}
    assert (found.revert, found.mutation) == (None, None)
    assert "passed, then failed, then passed" in probes_md("1", found)


@pytest.mark.broad
def test_what_fails_wherever_it_is_traced_and_nowhere_else_is_our_doing(tmp_path: Path) -> None:
    """A test with a limit of time is such a one; this looks for who makes it slow."""
    traced = "    import sys\n    assert sys.getprofile() is None\n    assert not hasattr(sys, 'monitoring') or "
    slowed = f"{TEST}{traced}sys.monitoring.get_tool(sys.monitoring.PROFILER_ID) is None\n"
    box = anyio.run(open_box, "auto")
    found = probed(history(tmp_path, {"tests/test_shop.py": slowed}, {"shop.py": NEW}), box=box)
    assert found.repeated is not None
    assert (found.repeated.runs, found.repeated.unstable) == (6, {})
    assert found.mutation is not None
    assert (found.mutation.killed, found.mutation.survivors) == (3, ())


def test_what_was_measured_of_a_task_is_not_measured_again(tmp_path: Path) -> None:
    """RED over the same bytes, the tests by themselves, their time, what they reach: one run, beside the faults."""
    project = history(tmp_path, {"tests/test_shop.py": TEST}, {"shop.py": NEW})
    with without_run(project) as lab:
        red, green = evidence(lab), seen(lab)
        red = red.model_copy(update={"red_tree": red.tests_tree})
        candidate = Candidate(tree_of(lab, "HEAD"), green, start=tree_of(lab, "main"))
        told: list[str] = []
        lab.say = told.append
        found = anyio.run(probes_of, lab, Probes(mutants=0), [TASK], red, candidate, green.layout)
    said = [line.strip().rpartition(":")[0] for line in told if not line.endswith("...")]
    assert said == ["the new tests over the new code again, must pass"]
    assert found.revert is not None
    assert (found.revert.held, found.revert.problems, found.revert.measured) == ((TEST_ID,), {}, red.tests_tree)
    assert found.reach is not None
    assert (found.reach.changed, found.reach.entering) == (("shop.py",), 1)
    assert f"as they were when RED was measured, over tree {red.tests_tree[:12]}" in probes_md("1", found)


@pytest.mark.broad
def test_a_test_that_needs_another_one_before_it(tmp_path: Path) -> None:
    needy = TEST.replace(
        "def test_price():\n", "def test_price():\n    import shop\n    assert hasattr(shop, 'ready')\n"
    )
    old = "import shop\n\n\ndef test_old():\n    shop.ready = True\n"
    code = {"shop.py": NEW, "tests/test_old.py": old}
    found = probed(history(tmp_path, {"tests/test_shop.py": needy}, code), Probes(repeat=3))
    assert found.repeated is not None
    assert found.repeated.unstable == {TEST_ID: ("passed", "failed", "failed", "failed")}


def turning(marks: Path) -> str:
    """Return a function that gives 1, then 0, then 1 again, as time or chance would."""
    return (
        f"\n\ndef turn():\n    import pathlib\n    marks = pathlib.Path({str(marks)!r})\n"
        "    marks.mkdir(exist_ok=True)\n    seen = len(list(marks.iterdir()))\n"
        "    (marks / str(seen)).touch()\n    return 1 - seen % 2\n"
    )


STEADY = "\n\ndef turn():\n    return 1\n"
TURNS = """import shop


def test_turns():
    assert shop.turn() == 1


def test_price():
    assert shop.price(1) == 1
"""
TURNS_ID, CALM_ID = "tests/test_turn.py::test_turns", "tests/test_turn.py::test_price"


def with_turns(tmp_path: Path, before: str, after: str) -> Project:
    """Return a history in which an old test asks `turn`, which was *before* and is *after*."""
    project = make_project(tmp_path, {**BEFORE, "shop.py": OLD + before, "tests/test_turn.py": TURNS})
    project.write({"tests/test_shop.py": TEST})
    project.commit("tests")
    project.git("branch", "red")
    project.write({"shop.py": NEW + after})
    project.commit("code")
    return project


@pytest.mark.broad
def test_an_old_test_that_the_change_makes_unsteady_is_named(tmp_path: Path) -> None:
    found = probed(with_turns(tmp_path, STEADY, turning(tmp_path / "marks")), old=(TURNS_ID, CALM_ID))
    assert found.repeated is not None
    assert found.repeated.unstable == {}
    assert found.old is not None
    assert (found.old.asked, found.old.doubtful) == (2, ())
    assert found.old.unstable == {TURNS_ID: ("passed", "failed", "passed", "failed", "passed")}
    assert (found.revert, found.mutation) == (None, None), "nothing else is asked of what does not hold still"
    assert f"`{TURNS_ID}`: passed, then failed" in probes_md("1", found)


@pytest.mark.broad
def test_an_old_test_that_was_unsteady_before_is_told_and_not_held_against_the_change(tmp_path: Path) -> None:
    flaky = turning(tmp_path / "marks")
    found = probed(with_turns(tmp_path, flaky, flaky), Probes(mutants=0), old=(TURNS_ID, CALM_ID))
    assert found.old is not None
    assert (found.old.unstable, found.old.doubtful) == ({}, (TURNS_ID,))
    assert found.revert is not None
    assert f"`{TURNS_ID}` fails sometimes over the code before as well" in probes_md("1", found)


def test_a_task_without_tests_has_nothing_to_try(tmp_path: Path) -> None:
    project = history(tmp_path, {"notes.txt": "x"}, {"shop.py": NEW})
    with without_run(project) as lab:
        tree = tree_of(lab, "HEAD")
        bare = TaskEvidence(task="1", tests_tree=tree, production=tree, test_paths=(), command=())
        green = seen(lab)
        found = anyio.run(probes_of, lab, Probes(), [TASK], bare, Candidate(tree, green), green.layout)
    assert (found.repeated, found.revert, found.mutation) == (None, None, None)
