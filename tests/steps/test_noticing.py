"""Tests that pass over the code as it is, on a real project: which notice faults in it by a judgement of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from steps.probed import PYPROJECT, repository, seen, tree_of, without_run

from pipeline.config.model import Config
from pipeline.config.tables import Probes
from pipeline.judge.reports.proofs import Edit, Proof, ProvingTest
from pipeline.repo import GITLINK, Entry, TreeChange
from pipeline.steps.asking.grants import scope_without_task
from pipeline.testing.measure.noticing import Passing, faults_noticed, noticing_probe
from pipeline.testing.measure.outcome_words import noticed_lines
from pipeline.testing.measure.proofs import MOST_CHARACTERS, Work, measure_proof
from pipeline.testing.measure.task_evidence import NoticingEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.judge.reports.proofs import MeasuredProof
    from pipeline.testing.verification.context import VerificationContext

pytestmark = pytest.mark.slow

SHOP = '''"""Shop."""

RATES = {"low": 5, "high": 20}


def rate(kind):
    if kind not in RATES:
        raise ValueError(kind)
    return RATES.get(kind, 0)


def price(total, kind):
    return total + rate(kind)


def label(kind):
    return "rate: " + kind
'''
HEAD = "import pytest\n\nfrom shop import RATES, label, price, rate\n\n\n"
LOOKS = "def test_price():\n    assert price(1, 'low') == 6\n"
CASES = """@pytest.mark.parametrize("kind", ["none", ""])
def test_unknown(kind):
    with pytest.raises(ValueError):
        rate(kind)
"""
ASSERTS_NOTHING = "def test_rate_runs():\n    rate('low')\n    rate('high')\n"
TRUE_ANYWAY = "def test_label():\n    assert label('low') is not None or True\n"


def noticed(tmp_path: Path, *tests: str, box: bool = True, seconds: int = 300) -> NoticingEvidence:
    """Return what these tests notice in the shop, which they are written for."""
    written = HEAD + "\n\n".join(tests)
    project = repository(tmp_path, {"pyproject.toml": PYPROJECT, "shop.py": SHOP}, {"tests/test_shop.py": written})
    with without_run(project) as lab:
        found = seen(lab)
        ids = {entry: record.function for entry, record in found.records.items()}
        probe = faults_noticed if box else noticing_probe
        return anyio.run(probe, lab, Probes(seconds=seconds), Passing(tree_of(lab, "HEAD"), ids, (), found.layout))


def test_each_test_is_held_to_faults_in_what_it_enters(tmp_path: Path) -> None:
    found = noticed(tmp_path, LOOKS, CASES, ASSERTS_NOTHING, TRUE_ANYWAY)
    names = {test.rpartition("::")[2]: count for test, count in found.tests.items()}
    assert names["test_price"] > 0
    assert names["test_unknown"] > 0, "its cases count together, and an exception that does not come is its judgement"
    assert names["test_label"] == 0
    assert {test.rpartition("::")[2] for test in found.blind} == {"test_rate_runs", "test_label"}
    assert found.notices
    assert all(survivor.path == "shop.py" for survivor in found.survivors)


def test_faults_go_first_into_the_subject_where_a_test_enters_much_else(tmp_path: Path) -> None:
    door = "import shop\n\n\ndef ask(total):\n    total = max(total, 0)\n    return shop.price(total + 1, 'low')\n"
    written = "from door import ask\n\n\ndef test_ask():\n    assert ask(1)\n"
    files = {"pyproject.toml": PYPROJECT, "shop.py": SHOP, "door.py": door}
    project = repository(tmp_path, files, {"tests/test_door.py": written})
    with without_run(project) as lab:
        found = seen(lab)
        ids = {entry: record.function for entry, record in found.records.items()}
        passing = Passing(tree_of(lab, "HEAD"), ids, {"shop.py"}, found.layout)
        tried = anyio.run(faults_noticed, lab, Probes(mutants=1, seconds=300), passing)
    assert {survivor.path for survivor in tried.survivors} == {"shop.py"}


def test_faults_lie_in_the_method_that_a_test_enters_and_not_in_one_of_that_name_elsewhere(tmp_path: Path) -> None:
    body = "    def of(self, n):\n        return n * 2 if n > 3 else n + 1\n"
    code = f"class Other:\n{body}\n\nclass Used:\n{body}"
    written = "from code_ import Used\n\n\ndef test_used():\n    assert Used().of(1) or True\n"
    files = {"pyproject.toml": PYPROJECT, "code_.py": code}
    project = repository(tmp_path, files, {"tests/test_used.py": written})
    with without_run(project) as lab:
        found = seen(lab)
        ids = {entry: record.function for entry, record in found.records.items()}
        passing = Passing(tree_of(lab, "HEAD"), ids, (), found.layout)
        tried = anyio.run(faults_noticed, lab, Probes(mutants=4, seconds=300), passing)
    assert {survivor.line for survivor in tried.survivors} == {8}


def test_the_edit_that_proved_the_finding_is_tried_first_and_by_whoever_reads_the_evidence(tmp_path: Path) -> None:
    code = 'def label(kind):\n    return "rate: " + kind\n\n\ndef shout(kind):\n    return kind.upper() + "!"\n'
    written = "from label_ import label, shout\n\n\ndef test_label():\n    assert label('a').startswith('rate')\n\n\n"
    written += "def test_shout():\n    assert shout('a')\n    shout('b')\n"
    files = {"pyproject.toml": PYPROJECT, "label_.py": code}
    project = repository(tmp_path, files, {"tests/test_label.py": written})
    edits = {
        "final-1-01": Edit(path="label_.py", old='"rate: " + kind', new='"price: " + kind'),
        "final-1-02": Edit(path="label_.py", old="kind.upper()", new="kind.shout()"),
        "final-1-03": Edit(path="label_.py", old="is there no more", new=""),
        "final-1-04": Edit(path="tests/test_label.py", old="'rate'", new="''"),
    }
    with without_run(project) as lab:
        found = seen(lab)
        ids = {entry: record.function for entry, record in found.records.items()}
        passing = Passing(tree_of(lab, "HEAD"), ids, (), found.layout, edits=edits)
        tried = anyio.run(faults_noticed, lab, Probes(mutants=1, seconds=300), passing)
    assert tried.edits == edits
    assert tried.tests["tests/test_label.py::test_label"] > 0, tried
    (thrown,) = (one for one in tried.thrown if "final-1" in one.what)
    assert (thrown.path, thrown.line, thrown.what) == ("label_.py", 6, "the edit that proves final-1-02")
    lines = list(noticed_lines(NoticingEvidence.model_validate_json(tried.model_dump_json())))
    assert any("only made the code throw" in line and "final-1-02" in line for line in lines[1:]), lines


@pytest.mark.broad
def test_where_a_test_starts_a_process_faults_go_into_its_subject_though_it_enters_a_helper_of_the_tests(
    tmp_path: Path,
) -> None:
    program = "import sys\n\n\ndef main():\n    print(len(sys.argv) + 1)\n\n\nif __name__ == '__main__':\n    main()\n"
    starts = "import subprocess, sys\n\n\ndef said():\n    argv = [sys.executable, '-m', 'program']\n"
    starts += "    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout\n\n\n"
    written = f"{starts}def test_it_says_two():\n    assert said() == '2\\n'\n"
    files = {"pyproject.toml": PYPROJECT, "program.py": program}
    project = repository(tmp_path, files, {"tests/test_program.py": written})
    with without_run(project) as lab:
        found = seen(lab)
        ids = {entry: record.function for entry, record in found.records.items()}
        passing = Passing(tree_of(lab, "HEAD"), ids, {"program.py"}, found.layout)
        evidence = anyio.run(faults_noticed, lab, Probes(), passing)
    assert evidence.killed > 0, evidence


def test_what_asserts_nothing_notices_nothing_though_a_fault_makes_the_code_throw(tmp_path: Path) -> None:
    found = noticed(tmp_path, ASSERTS_NOTHING)
    assert found.unfit > 0, "a fault that makes rate() throw was tried"
    assert (found.killed, found.notices, found.trouble) == (0, False, "")


def test_where_the_time_is_over_first_nothing_is_known(tmp_path: Path) -> None:
    found = noticed(
        tmp_path, "import time\n\n\ndef test_slow():\n    time.sleep(1.1)\n    assert label('low')\n", seconds=1
    )
    assert (found.tried, found.notices) == (0, False)
    assert found.not_tried > 0
    assert "the time" in found.trouble


def test_without_a_box_nothing_is_tried_and_that_is_said(tmp_path: Path) -> None:
    found = noticed(tmp_path, LOOKS, box=False)
    assert (found.tried, found.notices) == (0, False)
    assert "there is no box here" in found.trouble
    assert [test.rpartition("::")[2] for test in found.blind] == ["test_price"]


# --- proofs of findings: what proves, what refutes, and what is refused or shows neither ------------------------------

SELLS = '''"""Shop."""

RATES = {"low": 5, "high": 20}


def rate(kind):
    return RATES[kind]
'''
PRICED = (
    SELLS
    + """

def price(total, kind):
    if total < 0:
        raise ValueError("no price")
    return total + rate(kind)
"""
)
TESTS = "from shop import price\n\n\ndef test_price():\n    assert price(1, 'low') == 6\n"
IMPORTS = "from shop import price\n\n\n"
NOTICED = "def test_high():\n    assert price(1, 'high') == 22\n"


WRITES = """from pathlib import Path

import shop


def test_x():
    source = Path(shop.__file__)
    source.write_text(source.read_text().replace("total +", "total -"))
    assert shop.price(1, "low") == 7
"""
QUICK = Config.model_validate({"toolchains": {"pytest": {"test_timeout_s": 3}}})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VerificationContext, Work]]:
    """Yield a project whose last commit brought `price`, and that commit as work."""
    files = {"pyproject.toml": PYPROJECT, "shop.py": SELLS, "tests/conftest.py": "", "tests/test_old.py": ""}
    project = repository(tmp_path_factory.mktemp("proofs"), files, {"shop.py": PRICED, "tests/test_shop.py": TESTS})
    with without_run(project, config=QUICK) as context:
        found = seen(context)
        scope = scope_without_task(found, [*files], context.toolchain.sources)
        start, tree = tree_of(context, "HEAD~1"), tree_of(context, "HEAD")
        yield context, Work(tree, found.layout, scope, start, frozenset({"tests/test_shop.py::test_price"}))


Lab = tuple["VerificationContext", Work]


def shown(lab: Lab, path: str, content: str) -> MeasuredProof:
    """Return what a new test shows."""
    context, work = lab
    proof = Proof(test=ProvingTest(path=path, content=content))
    return anyio.run(measure_proof, context, proof, work, "a finding")


def changed(lab: Lab, old: str, new: str, path: str = "shop.py") -> MeasuredProof:
    """Return what an edit shows."""
    context, work = lab
    return anyio.run(measure_proof, context, Proof(edit=Edit(path=path, old=old, new=new)), work, "a finding")


def test_a_test_that_fails_over_the_work_proves_and_one_that_passes_refutes(lab: Lab) -> None:
    both = shown(lab, "tests/test_high.py", f"{IMPORTS}{NOTICED}\n\ndef test_low():\n    assert price(0, 'low') == 5\n")
    assert (both.found, both.tests) == ("proved", ("tests/test_high.py::test_high",)), both.why
    assert both.guards == ("tests/test_high.py::test_low",)
    assert both.files == ("shop.py",)
    passes = shown(lab, "tests/test_high.py", IMPORTS + NOTICED.replace("22", "21"))
    assert (passes.found, passes.tests) == ("refuted", ()), passes.why


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"{IMPORTS}def test_x():\n    price(1, 'low').nothing\n", "a reason that shows nothing"),
        ("def test_x():\n    assert 1 == 2\n", "a reason that shows nothing: tests/test_x.py::test_x fails without"),
        ("from shop import nothing\n\n\ndef test_x():\n    assert nothing()\n", "cannot be collected"),
        ("import requests_of_tomorrow\n\n\ndef test_x():\n    assert 0\n", "not installed"),
        ("def helper():\n    return 1\n", "collected no test"),
        (f"{IMPORTS}import pytest\n\n\n@pytest.mark.skip\ndef test_x():\n    assert price(1, 'low') == 7\n", "skip"),
        (
            f"{IMPORTS}import os\n\n\ndef test_x():\n    price(1, 'low')\n    os._exit(3)\n",
            "ends the whole test process",
        ),
        (f"{IMPORTS}x = {'1' * MOST_CHARACTERS}\n", "more than"),
        (WRITES, "writes files of the project while it runs: shop.py"),
        (f"{IMPORTS}def test_x():\n    while price(1, 'low'):\n        pass\n", "does not end in time"),
    ],
    ids=["broken", "no code", "unknown name", "no module", "no test", "skipped", "crash", "long", "writes", "hangs"],
)
def test_a_test_that_shows_neither_is_unproved_and_it_is_said_why(lab: Lab, content: str, why: str) -> None:
    found = shown(lab, "tests/test_x.py", content)
    assert found.found == "unproved"
    assert why in found.why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tests/conftest.py", "is there already"),
        ("tests/sub/conftest.py", "controls tests"),
        ("conftest.py", "controls tests"),
        ("tests/test_shop.py", "is there already"),
        ("tests/TEST_shop.py", "where case or Unicode form is ignored"),
        ("shop/test_backdoor.py", "no place of a test file"),
        ("test_top.py", "named as they are; the runner looks only at tests"),
        ("tests/helper.py", "no place of a test file"),
        ("tests/sitecustomize.py", "controls tests"),
        ("TODO/test_x.py", "the tracker is written by the program only"),
    ],
)
def test_a_test_is_refused_where_a_writer_of_tests_is(lab: Lab, path: str, why: str) -> None:
    found = shown(lab, path, IMPORTS + NOTICED)
    assert found.found == "unproved"
    assert why in found.why


def test_a_test_in_a_submodule_is_refused(lab: Lab) -> None:
    context, work = lab
    link = Entry("tests/vendor", GITLINK, context.repository.resolve("HEAD") or "")
    there = replace(work, tree=context.repository.build_tree(work.tree, [TreeChange(link.path, link)]))
    found = shown((context, there), "tests/vendor/test_x.py", IMPORTS + NOTICED)
    assert (found.found, "'tests/vendor' is a submodule" in found.why) == ("unproved", True), found.why


def test_two_runs_that_disagree_prove_nothing(lab: Lab, tmp_path: Path) -> None:
    once = f"{IMPORTS}from pathlib import Path\n\n\ndef test_x():\n    mark = Path({str(tmp_path / 'mark')!r})\n"
    content = once + "    wanted = 6 if mark.exists() else 7\n    mark.touch()\n    assert price(1, 'low') == wanted\n"
    found = shown(lab, "tests/test_x.py", content)
    assert (found.found, found.why) == ("unproved", "its two runs disagree: tests/test_x.py::test_x")


def test_an_edit_that_all_tests_accept_proves_and_one_that_a_test_notices_refutes(lab: Lab) -> None:
    accepted = changed(lab, "total < 0", "total < -5")
    assert (accepted.found, accepted.files) == ("proved", ("shop.py",)), accepted.why
    noticed = changed(lab, "return total + rate(kind)", "return total - rate(kind)")
    assert (noticed.found, noticed.tests) == ("refuted", ("tests/test_shop.py::test_price",)), noticed.why


@pytest.mark.parametrize(
    ("old", "new", "path", "why"),
    [
        ("kind", "sort", "shop.py", "times in shop.py"),
        ("nowhere", "here", "shop.py", "0 times"),
        ("    if total < 0:", "    if total < 0:  # never", "shop.py", "changes nothing"),
        ("return RATES[kind]", "return 5", "shop.py", "not of lines"),
        ("== 6", "== 6 or True", "tests/test_shop.py", "no production file"),
        ("addopts", "nothing", "pyproject.toml", "no production file"),
        ("x", "y", "missing.py", "no file of the result"),
    ],
)
def test_an_edit_that_can_prove_nothing_is_not_run(lab: Lab, old: str, new: str, path: str, why: str) -> None:
    found = changed(lab, old, new, path)
    assert found.found == "unproved"
    assert why in found.why
