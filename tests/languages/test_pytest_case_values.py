"""Cases under ids of their own: what their values are is written down, and whether they stand beside the test."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.red import judge_red
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.python.measuring import same_addresses

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.compare import GreenFacts
    from pipeline.judge.evidence.observation import Case
    from pipeline.sandbox.boxes.box import ProvableBox

pytestmark = pytest.mark.slow

SHOP = "RATE = 3\n\ndef f(key):\n    return 0\n\ndef keep(cases):\n    return cases\n"


def cases_of(folder: Path, test: str, **more: str) -> dict[str, Case | None]:
    head = "import pytest\nimport shop\nfrom shop import RATE, f\n\n"
    project = write(folder, {"shop.py": SHOP, "test_shop.py": head + test, **more})
    seen = measure(project)
    assert not seen.collection_errors, seen.tail
    return {entry.partition("::")[2]: record.case for entry, record in seen.records.items()}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    ("cases", "is_written"),
    [
        ("[(0, 1), (1, 2)]", True),
        ("[pytest.param(0, 1), pytest.param(1, 2, marks=pytest.mark.filterwarnings('ignore'))]", True),
        ("[(n, -n) for n in range(2)]", True),
        ("list(zip('ab', 'c d'.split()))", True),
        ("CASES", True),
        ("MORE", True),
        ("[(0, RATE), (1, 2)]", False),
        ("[(0, shop.RATE), (1, 2)]", False),
        ("[(0, f(0)), (1, 2)]", False),
        ("[(0, abs(f(0))), (1, 2)]", False),
        ("KEPT", False),
        ("TOUCHED", False),
        ("TWICE", False),
        ("[(len(each), 1) for each in (open(__file__).name, 'x')]", False),
    ],
)
def test_cases_are_written_down_where_nothing_else_has_a_part_in_them(
    tmp_path: Path, cases: str, is_written: bool
) -> None:
    test = (
        "CASES = [(0, 1), (1, 2)]\nMORE: list = [*CASES[:1], (2, 3)]\nKEPT = shop.keep([(0, 1), (1, 2)])\n"
        "TOUCHED = [(0, 1)]\nTOUCHED.append((1, shop.RATE))\nTWICE = [(0, 1), (1, 2)]\nTWICE = shop.keep(TWICE)\n"
        f"@pytest.mark.parametrize('key,want', {cases}, ids=['first', 'second'])\ndef test_a(key, want): pass\n"
    )
    found = cases_of(tmp_path, test)
    assert [case is not None and case.written for case in found.values()] == [is_written, is_written]
    assert len({case.sha256 for case in found.values() if case is not None}) == 2


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
