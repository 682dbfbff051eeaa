"""All probes of a task over real evidence: what the probes say of tests that were not what they were taken for."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from evidence.observed import observed
from kit import make_project
from steps.probed import PYPROJECT, repository, seen, tree_of, without_run

from pipeline.config.tables import Probes
from pipeline.judge.evidence.observation import Ended, Reach, RunState
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_classes import Context
from pipeline.judge.reports.tasks import Task
from pipeline.sandbox.boxes.box import open_box
from pipeline.steps.stub import new_errors
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs
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


# --- a stub pass answers for what compiled when it began --------------------------------------------------------------

BROKEN = "import nowhere\n\n\ndef test_a():\n    pass\n"


@pytest.mark.broad
def test_only_what_the_pass_broke_is_its_fault(tmp_path: Path) -> None:
    fine = BROKEN.replace("nowhere", "shop")
    before = {"pyproject.toml": PYPROJECT, "shop.py": "A = 1\n", "tests/test_a.py": fine, "tests/test_b.py": BROKEN}
    project = repository(tmp_path, before, {"shop.py": "import nowhere\n"})
    with without_run(project) as lab:
        start, tree = tree_of(lab, "HEAD~1"), tree_of(lab, "HEAD")
        (error,) = anyio.run(partial(new_errors, lab, start, tree))
        assert error.path == "tests/test_a.py"
        assert error.fault.raised.message.startswith("No module named 'nowhere'")
        assert anyio.run(partial(new_errors, lab, tree, tree)) == ()


# --- what a run keeps of its measurements -----------------------------------------------------------------------------

FILES = {
    "pyproject.toml": PYPROJECT,
    "core.py": "def answer():\n    return 42\n",
    "tests/test_core.py": "import core\n\ndef test_a(): assert core.answer() == 42\n\ndef test_b(): pass\n",
}


def test_a_run_that_did_not_go_through_is_not_kept(tmp_path: Path) -> None:
    seen = observed({"a.py::one": Ended.PASSED})
    kept_runs.keep(tmp_path, "abc", seen.model_copy(update={"state": RunState.CRASHED}), whole=True)
    assert kept_runs.whole_run(tmp_path, "abc") is None
    kept_runs.keep(tmp_path, "abc", seen, whole=True)
    assert kept_runs.whole_run(tmp_path, "abc") == seen
    assert kept_runs.whole_run(tmp_path, "abd") is None


def test_what_failed_once_over_a_tree_is_known_of_that_tree_until_it_is_forgotten(tmp_path: Path) -> None:
    one, two, three = (f"a.py::{name}" for name in ("one", "two", "three"))
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.PASSED, two: Ended.FAILED, three: Ended.SKIPPED}), whole=True)
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.TIMED_OUT}), whole=False)
    kept_runs.keep(tmp_path, "abc", observed({one: Ended.FAILED, two: Ended.PASSED}), whole=False)
    seen = {entry: record.outcome for entry, record in kept_runs.seen_failing(tmp_path, "abc").items()}
    assert seen == {one: Ended.TIMED_OUT, two: Ended.FAILED}, "each as it failed first"
    assert kept_runs.seen_failing(tmp_path, "abd") == {}
    kept_runs.forget(tmp_path, "abc")
    assert (kept_runs.seen_failing(tmp_path, "abc"), kept_runs.whole_run(tmp_path, "abc")) == ({}, None)


def test_what_was_traced_last_counts_and_what_was_not_traced_takes_nothing_away(tmp_path: Path) -> None:
    def traced(**entered: str | None) -> None:
        seen = observed({f"{name}.py::it": Ended.PASSED for name in entered})
        reach = {f"{name}.py::it": function and Reach(functions=(function,)) for name, function in entered.items()}
        records = {entry: record.model_copy(update={"reach": reach[entry]}) for entry, record in seen.records.items()}
        kept_runs.keep_reach(tmp_path, seen.model_copy(update={"records": records}))

    assert kept_runs.reach(tmp_path) == {}
    traced(a="core.py::f", b="core.py::g")
    traced(a=None, b="core.py::h")
    traced(c=None)
    assert {entry: found.functions for entry, found in kept_runs.reach(tmp_path).items()} == {
        "a.py::it": ("core.py::f",), "b.py::it": ("core.py::h",),
    }  # fmt: skip


def test_a_measurement_keeps_what_it_traced(tmp_path: Path) -> None:
    project = repository(tmp_path, FILES, {"notes.txt": ""})
    with without_run(project) as lab:
        ids = frozenset({"tests/test_core.py::test_a"})
        anyio.run(measure, lab, tree_of(lab, "HEAD"), Selection(ids=ids))
        assert kept_runs.reach(lab.checkout.root) == {}
        anyio.run(partial(measure, trace=True), lab, tree_of(lab, "HEAD"), Selection(ids=ids))
        known = kept_runs.reach(lab.checkout.root)
    assert known.keys() == ids
    assert "core.py::answer" in known["tests/test_core.py::test_a"].functions
