"""The mutation probe on real projects: which faults in changed lines real tests notice, and in what time."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.crates import MANIFEST, needs_cargo
from steps.probed import PYPROJECT, repository, seen, tree_of, without_run

from pipeline.config.tables import Probes
from pipeline.repo import Entry, TreeChange
from pipeline.testing.measure.mutation import Judges, added_lines, changed_lines, mutation_probe
from pipeline.testing.measure.outcome_words import in_short, probes_md
from pipeline.testing.measure.task_evidence import ProbeEvidence

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

    from pipeline.testing.measure.task_evidence import MutationEvidence

pytestmark = pytest.mark.slow


BEFORE = {"pyproject.toml": PYPROJECT, "shop.py": '"""Shop."""\n\n\ndef old(n):\n    return n + 1\n'}
SHOP = '''"""Shop."""


def old(n):
    return n + 1


def price(total, member):
    if member and total >= 100:
        return total - 10
    return total
'''
BLIND = """from shop import price


def test_price():
    assert price(200, True) is not None
"""
GOOD = """import pytest

from shop import price


@pytest.mark.parametrize(
    ("total", "member", "expected"),
    [(99, True, 99), (100, True, 90), (101, True, 91), (100, False, 100), (5, True, 5)],
)
def test_price(total, member, expected):
    assert price(total, member) == expected
"""


def probed(
    project: Project,
    mutants: int = 8,
    seconds: float = 300,
    toolchain: str = "pytest",
    own: str = "",
    jobs: int = 2,
) -> MutationEvidence:
    """Return what the probe says of the last commit; *own* begins the ids of the task's own tests."""
    with without_run(project, toolchain) as lab:
        green = seen(lab)
        ids = frozenset(green.records)
        mine = frozenset(entry for entry in ids if entry.startswith(own))
        judges = Judges(mine, ids - mine)
        allowance = Probes(mutants=mutants, jobs=jobs).model_copy(update={"seconds": seconds})
        base, tree = tree_of(lab, "main"), tree_of(lab, "HEAD")
        return anyio.run(mutation_probe, lab, allowance, base, tree, judges, green.layout)


def test_what_a_blind_suite_does_not_notice_is_named_with_its_line(tmp_path: Path) -> None:
    found = probed(repository(tmp_path, BEFORE, {"shop.py": SHOP, "tests/test_shop.py": BLIND}))
    lines = {(survivor.path, survivor.line, survivor.source) for survivor in found.survivors}
    assert ("shop.py", 9, "if member and total >= 100:") in lines
    assert ("shop.py", 10, "return total - 10") in lines
    assert all(path == "shop.py" and line > 7 for path, line, _ in lines)  # the old function was not touched
    assert found.killed > 0  # `return None` is noticed even so
    assert (found.trouble, found.asked) == ("", 1)
    document = probes_md("1", ProbeEvidence(mutation=found))
    assert "shop.py:9: `>=` becomes `>`" in document
    assert "```\nif member and total >= 100:\n```" in document


@pytest.mark.broad
def test_a_suite_that_looks_at_every_edge_leaves_none(tmp_path: Path) -> None:
    found = probed(repository(tmp_path, BEFORE, {"shop.py": SHOP, "tests/test_shop.py": GOOD}))
    assert [survivor.what for survivor in found.survivors] == []
    assert found.killed == 8
    assert (found.not_tried, found.unfit) == (0, 0)


def test_of_how_many_faults_those_are_chosen_is_told(tmp_path: Path) -> None:
    project = repository(tmp_path, BEFORE, {"shop.py": SHOP, "tests/test_shop.py": GOOD})
    few = probed(project, mutants=2)
    assert (few.tried, few.not_tried) == (2, 0)
    assert few.not_chosen > 3
    assert f"{few.not_chosen} more are possible" in in_short(ProbeEvidence(mutation=few))


@pytest.mark.broad
def test_what_the_own_tests_miss_the_others_may_notice(tmp_path: Path) -> None:
    tests = {"tests/test_blind.py": BLIND, "tests/test_shop.py": GOOD}
    project = repository(tmp_path, BEFORE, {"shop.py": SHOP, **tests})
    found = probed(project, mutants=5, own="tests/test_blind.py")
    assert (found.killed, found.survivors) == (5, ())


@pytest.mark.broad
def test_what_not_all_could_be_asked_about_is_not_called_unnoticed(tmp_path: Path) -> None:
    """Among the others is one that notices; before it comes one for which the time is not enough."""
    slow = "def test_long():\n    sum(range(10**9))\n"
    tests = {"tests/test_a_slow.py": slow, "tests/test_blind.py": BLIND, "tests/test_shop.py": GOOD}
    project = repository(tmp_path, BEFORE, {"shop.py": SHOP, **tests})
    found = probed(project, mutants=3, seconds=14, own="tests/test_blind.py")
    assert found.survivors == ()
    assert found.not_tried


HANGS = '''"""Shop."""


def countdown(n):
    steps = 0
    while n > 0:
        n -= 1
        steps += 1
    return steps
'''
TEST_HANGS = """from shop import countdown


def test_counts():
    assert countdown(3) == 3
"""


@pytest.mark.broad
def test_a_fault_that_hangs_is_noticed_and_the_time_is_kept(tmp_path: Path) -> None:
    project = repository(tmp_path, BEFORE, {"shop.py": HANGS, "tests/test_shop.py": TEST_HANGS})
    found = probed(project, mutants=6)
    assert (found.killed, found.survivors, found.not_tried) == (6, (), 0)
    # again, with no time for all of them: what was not tried is counted, and the bound holds
    short = probed(project, mutants=6, seconds=found.seconds / 3)
    assert short.not_tried is not None
    assert short.not_tried > 0
    assert short.tried + short.unfit + short.not_tried == 6
    assert short.seconds < found.seconds / 3 + 15  # a box needs a moment to end what hangs


@pytest.mark.broad
def test_too_little_time_for_one_run_is_said(tmp_path: Path) -> None:
    slow = TEST_HANGS.replace("    assert", "    sum(range(10**9))\n    assert")
    project = repository(tmp_path, BEFORE, {"shop.py": HANGS, "tests/test_shop.py": slow})
    with without_run(project) as lab:
        ids = frozenset({"tests/test_shop.py::test_counts"})
        base, tree = tree_of(lab, "main"), tree_of(lab, "HEAD")
        layout = seen(lab, "main").layout
        found = anyio.run(mutation_probe, lab, Probes(mutants=5, seconds=1, jobs=2), base, tree, Judges(ids), layout)
    assert "time is not enough" in found.trouble
    assert (found.killed, found.not_tried) == (0, 5)


@pytest.mark.broad
def test_a_change_of_tests_or_comments_alone_has_no_faults(tmp_path: Path) -> None:
    before = {**BEFORE, "shop.py": SHOP}
    found = probed(repository(tmp_path, before, {"shop.py": "# new\n" + SHOP, "tests/test_shop.py": GOOD}))
    assert (found.tried, found.not_tried, found.trouble) == (0, 0, "")


@pytest.mark.broad
def test_what_breaks_the_import_says_nothing(tmp_path: Path) -> None:
    text = '"""Shop."""\n\nSIZES = [1, 2]\nLARGEST = SIZES[1]\n\n\ndef largest():\n    return LARGEST\n'
    test = "from shop import largest\n\n\ndef test_largest():\n    assert largest() == 2\n"
    found = probed(repository(tmp_path, BEFORE, {"shop.py": text, "tests/test_shop.py": test}))
    assert found.unfit >= 1  # an empty list has no second element
    assert all("is empty" not in survivor.what for survivor in found.survivors)


RUST = """pub fn price(total: u32, member: bool) -> u32 {
    if member && total >= 100 {
        return total - 10;
    }
    total
}
"""
RUST_TEST = """use greet::price;

#[test]
fn pays_less() {
    assert_eq!(price(200, true), 190);
    assert_eq!(price(50, true), 50);
}
"""


@needs_cargo
@pytest.mark.broad
def test_rust_is_compiled_with_each_fault(tmp_path: Path) -> None:
    before = {"Cargo.toml": MANIFEST, "src/lib.rs": "pub fn old() -> u32 {\n    1\n}\n"}
    project = repository(tmp_path, before, {"src/lib.rs": RUST, "tests/price.rs": RUST_TEST})
    found = probed(project, mutants=12, toolchain="cargo", seconds=300)
    assert found.killed >= 3
    assert ("src/lib.rs", 2) in {(survivor.path, survivor.line) for survivor in found.survivors}
    assert any(survivor.what == "`>=` becomes `>`" for survivor in found.survivors)


FEATURES = """#[cfg(feature = "more")]
pub fn more(total: u32) -> u32 {
    if total > 2 {
        return total - 10;
    }
    total + 1
}

#[cfg(windows)]
mod imp;

pub fn price(total: u32, member: bool) -> u32 {
    if member && total >= 100 {
        return total - 10;
    }
    total
}
"""
IMP = "pub fn handle(total: u32) -> u32 {\n    if total > 2 {\n        return total - 10;\n    }\n    total + 1\n}\n"


@pytest.mark.broad
@needs_cargo
def test_what_the_build_leaves_out_is_not_called_unnoticed(tmp_path: Path) -> None:
    """A feature that is off, and a module of another platform: neither is seen in the file that the fault is in."""
    manifest = MANIFEST + "\n[features]\nmore = []\n"
    before = {"Cargo.toml": manifest, "src/lib.rs": "pub fn old() -> u32 {\n    1\n}\n"}
    after = {"src/lib.rs": FEATURES, "src/imp.rs": IMP, "tests/price.rs": RUST_TEST}
    found = probed(repository(tmp_path, before, after), mutants=9, toolchain="cargo", seconds=300)
    assert found.uncompiled == 6
    assert found.unnoticed == ()
    assert {(survivor.path, survivor.line > 10) for survivor in found.survivors} <= {("src/lib.rs", True)}
    assert "6 in code that this build does not compile" in probes_md("1", ProbeEvidence(mutation=found))


# --- the lines that a change adds, read from git's patches ------------------------------------------------------------

lines = st.lists(st.sampled_from(["a", "b", "-- c", "++ d", "@@ -1 +1 @@", "\\ x", "", "form\x0cfeed"]), max_size=12)


@given(lines, lines, st.integers(0, 4))
def test_a_unified_patch_says_which_lines_are_new(old: list[str], new: list[str], context: int) -> None:
    patch = "\n".join(difflib.unified_diff(old, new, "a/x", "b/x", lineterm="", n=context))
    opcodes = difflib.SequenceMatcher(None, old, new).get_opcodes()
    expected = {n + 1 for tag, _, _, j1, j2 in opcodes if tag != "equal" for n in range(j1, j2)}
    assert added_lines(patch) == expected


def test_nothing_is_added_by_what_is_no_patch() -> None:
    assert added_lines("") == frozenset()
    assert added_lines("Binary files a/x and b/x differ\n") == frozenset()


def test_lines_of_a_real_change(tmp_path: Path) -> None:
    before = {"a.py": "one\ntwo\nthree\n", "b.py": "same\n", "c.py": "gone\n", "d.txt": "x\n", "ü b.py": "1\n"}
    after = {"a.py": "one\n2\n2b\nthree\nfour", "n.py": "new\nnew", "d.txt": "y\n", "ü b.py": "1\n2\n"}
    project = repository(tmp_path, before, after)
    (project.root / "c.py").unlink()
    project.commit("without c")
    with without_run(project) as lab:
        found = changed_lines(lab, tree_of(lab, "main"), tree_of(lab, "HEAD"), lambda path: path.endswith(".py"))
    assert found == {"a.py": {2, 3, 5}, "n.py": {1, 2}, "ü b.py": {2}}


def test_so_many_at_a_time_as_there_are_cores_for_this_process() -> None:
    said = "from pipeline.testing.measure.mutation import usable_cores; print(usable_cores())"
    alone = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); {said}"
    told = [subprocess.check_output([sys.executable, "-c", code], text=True).strip() for code in (said, alone)]
    assert told == [str(min(len(os.sched_getaffinity(0)), 8)), "1"]


def test_two_copies_of_trees_that_the_repository_does_not_have(tmp_path: Path) -> None:
    project = repository(tmp_path, {"pyproject.toml": PYPROJECT}, {"shop.py": "A = 1\n"})
    with without_run(project) as lab:
        blob = lab.repository.write_blob(b"A = 2\n")
        entry = Entry("shop.py", "100644", blob)
        tree = lab.repository.build_tree(tree_of(lab, "HEAD"), [TreeChange("shop.py", entry)])
        with lab.copies.lent(tree) as one, lab.copies.lent(tree) as other:
            assert one != other
            assert (one / "shop.py").read_text() == (other / "shop.py").read_text() == "A = 2\n"
    assert project.git("status", "--porcelain") == ""
