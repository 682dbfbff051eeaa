"""Cases from production code: dropping one is seen, one more has to pass, others under the same id are told."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.red import judge_red

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.compare import GreenFacts
    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_tests import RedTests

pytestmark = pytest.mark.slow

SHOP = "CASES = [('a', 1), ('b', 2)]\nPAIRS = [(0, 1), (1, 2)]\n\ndef f(key):\n    return 0\n"
DONE = SHOP.replace("return 0", "return {'a': 1, 'b': 2}.get(key, key + 1 if isinstance(key, int) else 0)")
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
    start = write(folder / "start", {"shop.py": SHOP})
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
    green = judged(red, tmp_path, DONE.replace(old, new) if old else DONE)
    found = [[entry.partition("::")[2] for entry in ids] for ids in (green.missing, green.not_green, green.new_ids)]
    assert found == [missing, not_green, added]
    assert green.own_green is not bool(missing or not_green)


def test_no_case_at_all_is_none_of_red(red: Red, tmp_path: Path) -> None:
    green = judged(red, tmp_path, DONE.replace("[('a', 1), ('b', 2)]", "[]"))
    assert [entry.partition("::")[2] for entry in green.missing] == BY_VALUE
    assert not green.own_green


def judged(red: Red, tmp_path: Path, shop: str) -> GreenFacts:
    done = write(shutil.copytree(red.root, tmp_path / "done"), {"shop.py": shop})
    return judge_green(red.ledger, measure(done), expectations(red.before))


@pytest.mark.broad
def test_other_values_under_the_same_ids_are_told_before_and_after(red: Red, tmp_path: Path) -> None:
    cheat = SHOP.replace("[(0, 1), (1, 2)]", "[('x', 0), ('y', 0)]").replace(
        "return 0", "return {'a': 1, 'b': 2}.get(key, 0)"
    )
    green = judged(red, tmp_path, cheat)
    assert green.own_green, "production gives them: that they change may be what the task is for"
    assert [entry.partition("::")[2] for entry in green.other_cases] == BY_NAME
