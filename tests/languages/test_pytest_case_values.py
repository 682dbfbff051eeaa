"""What counts as the source and the values of a test: cases under ids of their own, and inherited tests."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.compare import GreenFacts, expectations, judge_green
from pipeline.judge.evidence.red import judge_red
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.python.measuring import same_addresses

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.compare import GreenFacts
    from pipeline.judge.evidence.observation import Case, Observation
    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.sandbox.boxes.box import ProvableBox

pytestmark = pytest.mark.slow

SHOP = "RATE = 3\n\ndef f(key):\n    return 0\n\ndef keep(cases):\n    return cases\n"
HEAD = "import pytest\nimport shop\nfrom shop import RATE, f\n\n"


def cases_of(folder: Path, test: str, **more: str) -> dict[str, Case | None]:
    project = write(folder, {"shop.py": SHOP, "test_shop.py": HEAD + test, **more})
    seen = measure(project)
    assert not seen.collection_errors, seen.tail
    return {entry.partition("::")[2]: record.case for entry, record in seen.records.items()}


WRITTEN_DOWN = {
    "[(0, 1), (1, 2)]": True,
    "[pytest.param(0, 1), pytest.param(1, 2, marks=pytest.mark.filterwarnings('ignore'))]": True,
    "[(n, -n) for n in range(2)]": True,
    "list(zip('ab', 'c d'.split()))": True,
    "CASES": True,
    "MORE": True,
    "[(0, RATE), (1, 2)]": False,
    "[(0, shop.RATE), (1, 2)]": False,
    "[(0, f(0)), (1, 2)]": False,
    "[(0, abs(f(0))), (1, 2)]": False,
    "KEPT": False,
    "TOUCHED": False,
    "TWICE": False,
    "[(len(each), 1) for each in (open(__file__).name, 'x')]": False,
}


def test_cases_are_written_down_where_nothing_else_has_a_part_in_them(tmp_path: Path) -> None:
    test = (
        "CASES = [(0, 1), (1, 2)]\nMORE: list = [*CASES[:1], (2, 3)]\nKEPT = shop.keep([(0, 1), (1, 2)])\n"
        "TOUCHED = [(0, 1)]\nTOUCHED.append((1, shop.RATE))\nTWICE = [(0, 1), (1, 2)]\nTWICE = shop.keep(TWICE)\n"
    ) + "".join(
        f"@pytest.mark.parametrize('key,want', {cases}, ids=['first', 'second'])\ndef test_{number}(key, want): pass\n"
        for number, cases in enumerate(WRITTEN_DOWN)
    )
    found = cases_of(tmp_path, test)
    for number, (cases, is_written) in enumerate(WRITTEN_DOWN.items()):
        both = [found[f"test_{number}[{name}]"] for name in ("first", "second")]
        assert [case is not None and case.written for case in both] == [is_written, is_written], cases
        assert len({case.sha256 for case in both if case is not None}) == 2, cases


@pytest.mark.broad
def test_only_plain_data_of_a_bounded_size_has_a_digest(tmp_path: Path) -> None:
    plain = "None, True, 1, 1.5, float('nan'), 'a', b'a', (1, ('b',)), [1], {'a': [1]}, 10 ** 6000"
    others = "object(), len, {1}, [object()], 'x' * 200_000, list(range(20_000)), CYCLE"
    test = (
        "CYCLE = []\nCYCLE.append(CYCLE)\n"
        f"@pytest.mark.parametrize('a', [{plain}], ids=map(str, range(11)))\ndef test_plain(a): pass\n"
        f"@pytest.mark.parametrize('a', [{others}], ids=map(str, range(7)))\ndef test_other(a): pass\n"
        "def test_without(): pass\n"
    )
    found = cases_of(tmp_path, test)
    assert {name for name, case in found.items() if case is not None} == {f"test_plain[{n}]" for n in range(11)}
    assert len({case.sha256 for case in found.values() if case is not None}) == 11


def test_decorators_of_classes_count_and_what_fixtures_and_hooks_make_is_not_written(tmp_path: Path) -> None:
    test = (
        "@pytest.mark.parametrize('a', [1], ids=['x'])\nclass TestA:\n"
        "    @pytest.mark.parametrize('b', [2], ids=['y'])\n    def test_both(self, a, b): pass\n"
        "@pytest.fixture(params=[1], ids=['x'])\ndef made(request): return request.param\n"
        "def test_fixture(made): pass\ndef test_hook(hooked): pass\n"
    )
    hook = (
        "def pytest_generate_tests(metafunc):\n    if 'hooked' in metafunc.fixturenames:\n"
        "        metafunc.parametrize('hooked', [1])\n"
    )
    found = cases_of(tmp_path, test, **{"conftest.py": hook})
    assert {name.partition("[")[0]: case is not None and case.written for name, case in found.items()} == {
        "TestA::test_both": True,
        "test_fixture": False,
        "test_hook": False,
    }


@pytest.mark.broad
def test_the_place_of_the_project_is_no_part_of_a_value(tmp_path: Path) -> None:
    test = "@pytest.mark.parametrize('a', [__file__], ids=['here'])\ndef test_a(a): pass\n"
    assert cases_of(tmp_path / "one", test) == cases_of(tmp_path / "two", test)


def judged(folder: Path, test: str, start: str, done: str) -> GreenFacts:
    before = write(folder / "start", {"shop.py": start})
    tests = write(shutil.copytree(before, folder / "red"), {"test_shop.py": test})
    seen = measure(before)
    after = measure(tests)
    verdict = judge_red(seen, after, measure(tests), context_of(after, files_of(before)), task="1", tree="red")
    assert verdict.legal, verdict
    green = write(shutil.copytree(tests, folder / "green"), {"shop.py": done})
    return judge_green(verdict.ledger, measure(green), expectations(seen))


WRITTEN = (
    "import pytest\nimport shop\n\nCASES = [[0, 1], [1, 2]]\n\n"
    "@pytest.mark.parametrize('pair', CASES, ids=['first', 'second'])\n"
    "def test_by_name(pair): assert shop.f(pair[0]) == pair[1]\n"
)


@pytest.mark.broad
def test_production_that_changes_the_cases_of_its_tests_is_named(tmp_path: Path) -> None:
    """Values that only stand in the test file are meddled with while it is imported."""
    cheat = (
        "import pytest\n\n_real = pytest.mark.parametrize\n\ndef easier(names, cases, **more):\n"
        "    return _real(names, [[0, 0] for _ in cases], **more)\n\n"
        "type(pytest.mark).parametrize = staticmethod(easier)\n\ndef f(key):\n    return 0\n"
    )
    verdict = judged(tmp_path, WRITTEN, "def f(key):\n    return 0\n", cheat)
    assert verdict.changed_regions == ("test_shop.py::test_by_name[first]", "test_shop.py::test_by_name[second]")
    assert not verdict.own_green


@pytest.mark.broad
def test_cases_that_production_computes_may_change_and_are_told(tmp_path: Path) -> None:
    test = (
        "import pytest\nimport shop\n\n@pytest.mark.parametrize('rate', [shop.RATE], ids=['rate'])\n"
        "def test_rate(rate): assert rate == 4\n"
    )
    verdict = judged(tmp_path, test, "RATE = 3\n", "RATE = 4\n")
    assert verdict.green
    assert verdict.other_cases == ("test_shop.py::test_rate[rate]",)


TABLE = (
    "@pytest.mark.parametrize(('key', 'want'), [(0, 1), (1, 2)])\ndef test_a(key, want):\n    assert key + 1 == want\n"
)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("(1, 2)]", "(1, 2),\n    (2, 3),  # more\n]", True),
        ("(1, 2)]", "(1, 2), pytest.param(2, 3, id='third')]", True),
        ("(1, 2)])", "(1, 2), (2, 3)], ids=['0-1', '1-2', '2-3'])", True),
        ("assert key + 1 == want", "assert key + 1 >= want", False),
        ("(1, 2)]", "pytest.param(1, 2, marks=pytest.mark.skip)]", False),
        ("(1, 2)])", "(1, 2)], indirect=['key'])", False),
        ("@pytest", "@pytest.mark.skipif(f(0) == 1, reason='')\n@pytest", False),
        ("def test_a(key, want):", "def test_a(key, want, tmp_path):", False),
        ("[(0, 1), (1, 2)]", "CASES", False),
    ],
)
def test_what_is_around_the_table_of_a_test_is_known_by_its_bytes(
    tmp_path: Path, old: str, new: str, *, is_same: bool
) -> None:
    head = "CASES = [(0, 1), pytest.param(1, 2, marks=pytest.mark.skip)]\n"
    assert TABLE.count(old) == 1
    before, after = (
        cases_of(tmp_path / name, head + test) for name, test in [("before", TABLE), ("after", TABLE.replace(old, new))]
    )
    around = {case.around for case in before.values() if case is not None}
    assert len(around) == 1
    assert "" not in around
    assert all((case is not None and case.around in around) == is_same for case in after.values())


BWRAP = shutil.which("bwrap") or ""


@pytest.mark.skipif(not same_addresses(), reason="the kernel lets no program here fix its addresses")
@pytest.mark.parametrize(
    "box",
    [NoBox(), *([Bubblewrap(BWRAP, BOX_USER if os.geteuid() == 0 else None)] if BWRAP else [])],
    ids=lambda box: box.name,
)
def test_ids_that_follow_the_addresses_of_objects_are_the_same_in_each_run(tmp_path: Path, box: ProvableBox) -> None:
    cases = "{(n, int, datetime.date(2000, 1, n + 1)) for n in range(12)}"
    test = f"@pytest.mark.parametrize(('n', 'kind', 'day'), {cases})\ndef test_a(n, kind, day): pass\n"
    write(tmp_path, {"test_it.py": f"import datetime\n\nimport pytest\n\n\n{test}"})
    first, second = (measure(tmp_path, box=box) for _ in range(2))
    assert len(first.records) == 12
    assert set(first.records) == set(second.records)


# --- tests that a class inherits


COMMON = """
import pytest

class Shared:
    kind = None

    @pytest.mark.parametrize("n", [1, 2])
    def test_shared(self, n):
        assert self.kind

class TestWhole:
    def test_whole(self):
        assert True

def test_alone():
    assert True
"""
SUITE = """
import unittest
from common import Shared, TestWhole, test_alone

class Mixin:
    cls = None

    def test_same(self):
        assert self.cls

class TestA(Mixin):
    cls = 1

    def test_own(self):
        assert True

class TestB(Mixin, unittest.TestCase):
    cls = 2

class TestC(Shared):
    kind = 3

def make(value):
    class TestMade:
        def test_made(self):
            assert value
    return TestMade

TestMade = make(1)

def test_lent(self=None):
    assert True

class TestLent:
    pass

TestLent.test_of_another = test_lent
"""
INHERITED = {"TestA::test_same", "TestB::test_same"}
SHARED = {"TestC::test_shared[1]", "TestC::test_shared[2]"}
MADE = {"TestMade::test_made"}
LENT = {"TestLent::test_of_another"}
CHANGES: list[tuple[str, str, str, set[str]]] = [
    ("test_it.py", "TestMade = make(1)\n", "TestMade = make(1)\n\nclass TestNew:\n    pass\n", {*MADE, *LENT}),
    ("test_it.py", "    def test_own(self):\n", "    def test_own(self):\n        pass\n", {"TestA::test_own"}),
    ("test_it.py", "def test_own(self):", "def test_new(self): pass\n\n    def test_own(self):", set()),
    ("test_it.py", "test_lent(self=None)", "test_lent(self=1)", {"test_lent", *LENT}),
    ("test_it.py", "assert value", "assert value or True", {*MADE, *LENT}),
    ("test_it.py", "assert self.cls", "assert self.cls or True", INHERITED),
    ("test_it.py", "cls = 2", "cls = 4", {"TestB::test_same", *MADE, *LENT}),
    ("test_it.py", "TestC(Shared)", "TestC(Shared, object)", {*SHARED, *MADE, *LENT}),
    ("test_it.py", "make(1)", "make(2)", {*MADE, *LENT}),
    ("common.py", "assert self.kind", "assert self.kind or True", SHARED),
    ("common.py", "def test_whole(self):", "def test_whole(self, x=1):", {"TestWhole::test_whole"}),
    ("common.py", "def test_alone():", "def test_alone(x=1):", {"test_alone"}),
]


def regions(root: Path, files: dict[str, str]) -> dict[str, str]:
    found = measure(write(root, files)).records
    assert not [entry for entry, record in found.items() if not record.region_sha256]
    return {entry.partition("::")[2]: record.region_sha256 for entry, record in found.items()}


@pytest.mark.broad
def test_the_source_of_an_inherited_test_is_its_own_lines(tmp_path: Path) -> None:
    files = {"common.py": COMMON, "test_it.py": SUITE}
    before = regions(tmp_path / "before", files)
    assert len(before) == 10
    for number, (path, old, new, expected) in enumerate(CHANGES):
        assert old in files[path]
        after = regions(tmp_path / str(number), {**files, path: files[path].replace(old, new)})
        assert {entry for entry in before if before[entry] != after[entry]} == expected, (path, new)


def test_the_written_values_of_an_inherited_test_are_known(tmp_path: Path) -> None:
    records = measure(write(tmp_path, {"common.py": COMMON, "test_it.py": SUITE})).records
    case = records["test_it.py::TestC::test_shared[1]"].case
    assert case is not None
    assert case.written


# --- cases from production code


CODE = "CASES = [('a', 1), ('b', 2)]\nPAIRS = [(0, 1), (1, 2)]\n\ndef f(key):\n    return 0\n"
DONE = CODE.replace("return 0", "return {'a': 1, 'b': 2}.get(key, key + 1 if isinstance(key, int) else 0)")
TESTS = (
    "import pytest\nfrom shop import CASES, PAIRS, f\n\n"
    "@pytest.mark.parametrize('key,want', CASES)\ndef test_by_value(key, want): assert f(key) == want\n\n"
    "@pytest.mark.parametrize('key,want', PAIRS, ids=['first', 'second'])\n"
    "def test_by_name(key, want): assert f(key) == want\n"
)


@dataclass(frozen=True)
class Red:
    root: Path
    before: Observation
    ledger: RedTests


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Red:
    folder = tmp_path_factory.mktemp("cases")
    start = write(folder / "start", {"shop.py": CODE})
    tests = write(shutil.copytree(start, folder / "red"), {"test_shop.py": TESTS})
    before, after = measure(start), measure(tests)
    verdict = judge_red(before, after, None, context_of(after, files_of(start)), task="1", tree="red")
    assert set(verdict.ledger.red) == {f"test_shop.py::{test}" for test in BY_VALUE + BY_NAME}
    return Red(tests, before, verdict.ledger)


BY_VALUE = ["test_by_value[a-1]", "test_by_value[b-2]"]
BY_NAME = ["test_by_name[first]", "test_by_name[second]"]


@pytest.mark.parametrize(
    ("old", "new", "missing", "not_green", "added"),
    [
        ("", "", [], [], []),
        ("('a', 1), ('b', 2)", "('a', 1)", ["test_by_value[b-2]"], [], []),
        (
            "('a', 1), ('b', 2)",
            "('a', 0), ('b', 2)",
            ["test_by_value[a-1]"],
            ["test_by_value[a-0]"],
            ["test_by_value[a-0]"],
        ),
        ("('b', 2)]", "('b', 2), (4, 5)]", [], [], ["test_by_value[4-5]"]),
        ("('b', 2)]", "('b', 2), ('c', 3)]", [], ["test_by_value[c-3]"], ["test_by_value[c-3]"]),
    ],
    ids=["as-it-was", "dropped", "replaced", "one-more", "one-more-that-fails"],
)
@pytest.mark.broad(but_first=1)
def test_the_cases_of_red_are_those_of_green(
    red: Red, tmp_path: Path, old: str, new: str, missing: list[str], not_green: list[str], added: list[str]
) -> None:
    green = green_of(red, tmp_path, DONE.replace(old, new) if old else DONE)
    found = [[entry.partition("::")[2] for entry in ids] for ids in (green.missing, green.not_green, green.new_ids)]
    assert found == [missing, not_green, added]
    assert green.own_green is not bool(missing or not_green)


def test_no_case_at_all_is_none_of_red(red: Red, tmp_path: Path) -> None:
    green = green_of(red, tmp_path, DONE.replace("[('a', 1), ('b', 2)]", "[]"))
    assert [entry.partition("::")[2] for entry in green.missing] == BY_VALUE
    assert not green.own_green


def green_of(red: Red, tmp_path: Path, shop: str) -> GreenFacts:
    done = write(shutil.copytree(red.root, tmp_path / "done"), {"shop.py": shop})
    return judge_green(red.ledger, measure(done), expectations(red.before))


@pytest.mark.broad
def test_other_values_under_the_same_ids_are_told_before_and_after(red: Red, tmp_path: Path) -> None:
    cheat = CODE.replace("[(0, 1), (1, 2)]", "[('x', 0), ('y', 0)]").replace(
        "return 0", "return {'a': 1, 'b': 2}.get(key, 0)"
    )
    green = green_of(red, tmp_path, cheat)
    assert green.own_green, "production gives them: that they change may be what the task is for"
    assert [entry.partition("::")[2] for entry in green.other_cases] == BY_NAME
