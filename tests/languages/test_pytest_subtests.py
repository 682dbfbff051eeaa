"""Sub-tests: a test that passes is passed, whatever some of its sub-tests skip; one that skips itself is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import measure, write

from pipeline.judge.evidence.observation import Ended

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SUITE = """
    import unittest

    class TestAll(unittest.TestCase):
        def test_one_skips(self):
            for number in range(3):
                with self.subTest(number=number):
                    if number == 1:
                        self.skipTest("not here")
                    self.assertLess(number, 3)

        def test_one_skips_and_one_fails(self):
            for number in range(3):
                with self.subTest(number=number):
                    if number == 0:
                        self.skipTest("not here")
                    self.assertLess(number, 2)

        def test_skips_itself(self):
            with self.subTest(number=1):
                self.assertTrue(True)
            self.skipTest("not today")

        def test_fails_after_a_skip(self):
            with self.subTest(number=1):
                self.skipTest("not here")
            self.fail("no")


    def test_fixture(subtests):
        import pytest

        for number in range(3):
            with subtests.test(number=number):
                if number == 1:
                    pytest.skip("not here")


    def test_fixture_expected(subtests):
        import pytest

        with subtests.test("one"):
            pytest.xfail("not yet")
        with subtests.test("two"):
            pass
"""


def test_a_skipped_sub_test_does_not_speak_for_its_test(tmp_path: Path) -> None:
    write(tmp_path, {"test_it.py": SUITE})
    found = measure(tmp_path)
    assert {entry.rpartition("::")[2]: record.outcome for entry, record in found.records.items()} == {
        "test_one_skips": Ended.PASSED,
        "test_one_skips_and_one_fails": Ended.FAILED,
        "test_skips_itself": Ended.SKIPPED,
        "test_fails_after_a_skip": Ended.FAILED,
        "test_fixture": Ended.PASSED,
        "test_fixture_expected": Ended.PASSED,
    }
    assert found.records["test_it.py::TestAll::test_one_skips"].reason == ""


LONG = """
import sys
import time
import unittest

class Slow:
    def __repr__(self):
        noted.append(sys.getprofile() is not None)
        time.sleep(0.4)
        return "slow"

noted = []

class TestAll(unittest.TestCase):
    def test_fails_often(self):
        for number in range(4):
            with self.subTest(number=number):
                value = Slow()
                self.fail('no')

    def test_z_nothing_of_it_was_traced(self):
        self.assertEqual(set(noted), {False})
"""


@pytest.mark.broad
def test_the_time_that_pytest_takes_to_show_a_failure_is_not_the_test_s(tmp_path: Path) -> None:
    write(tmp_path, {"pytest.ini": "[pytest]\naddopts = --showlocals\n", "test_it.py": LONG})
    found = measure(tmp_path, trace=True, per_test_timeout_s=1.2).records
    record = found["test_it.py::TestAll::test_fails_often"]
    assert record.outcome is Ended.FAILED, record
    assert record.reach is not None
    assert "test_it.py::Slow.__repr__" not in record.reach.functions
    assert found["test_it.py::TestAll::test_z_nothing_of_it_was_traced"].outcome is Ended.PASSED


@pytest.mark.broad
def test_a_failure_that_cannot_be_shown_still_ends(tmp_path: Path) -> None:
    hangs = LONG.replace("time.sleep(0.4)", "time.sleep(600)")
    write(tmp_path, {"pytest.ini": "[pytest]\naddopts = --showlocals\n", "test_it.py": hangs})
    found = measure(tmp_path, per_test_timeout_s=1.0, timeout_s=20.0)
    assert found.records["test_it.py::TestAll::test_fails_often"].outcome is Ended.TIMED_OUT
