"""Claims about tests that the measurement does not bear out: RED that is none, GREEN that is none, tests outwitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.misbehaviour import entry, last_rows, scene
from kit import AFTER_MAKE, GREET, GREET_DONE, MAKE, TEST_GREET, TEST_GREET_NEW, TESTS, UNTIL_TESTS, judge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kit import Entry

pytestmark = pytest.mark.slow

PASSES = TEST_GREET + "\n\ndef test_greets_by_another_name():\n    assert greet('Bob') == 'Hello, Bob!'\n"
SKIPS = TEST_GREET_NEW.replace("def test_an_empty", '@pytest.mark.skip(reason="later")\ndef test_an_empty')
IS_NO_PYTHON = TEST_GREET + "\n\ndef test_an_empty_name_is_refused(:\n    pass\n"


def suite_with(content: str) -> Entry:
    """Return an answer of @test that claims RED for a test file."""
    return {**TESTS, "files": {"tests/test_greet.py": content}}


def module_with(content: str) -> Entry:
    """Return an answer of @make that claims GREEN for a module."""
    return {**MAKE, "files": {"greet.py": content}}


@pytest.mark.broad
def test_red_is_measured_whatever_the_agent_claims(tmp_path: Path) -> None:
    it = scene(tmp_path)
    redesign = judge("diagnose", diagnosis="test_design", notes="test the empty name")
    it.project.use_script(
        [
            *UNTIL_TESTS,
            entry("write-tests", report={"verdict": "TESTS_READY"}),  # no change at all
            suite_with(SKIPS),
            suite_with(IS_NO_PYTHON),
            redesign,
            suite_with(PASSES),
            redesign,
            TESTS,
            MAKE,
            *AFTER_MAKE,
        ]
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert last_rows(it.project, "review-split/ACCEPTABLE") == [
        "write-tests/ILLEGAL_RED",
        "write-tests/ILLEGAL_RED",
        "write-tests/ILLEGAL_RED",
        "diagnose/TEST_DESIGN",
        "write-tests/PASSES_ALREADY",
        "diagnose/TEST_DESIGN",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    shown = it.project.git("show", "HEAD:tests/test_greet.py")
    assert shown == TEST_GREET_NEW.strip()
    assert "Bob" not in it.project.git("log", "--all", "--patch")
    it.assert_nothing_arrived()
    it.assert_explained("write-tests/ILLEGAL_RED", "no test was", "skipped", "SyntaxError")


SKIPS_FROM_PRODUCTION = GREET.replace("    return", "    import pytest\n    pytest.skip('not today')\n    return")
ENDS_THE_PROCESS = GREET.replace("    return", "    import os\n    if not name:\n        os._exit(0)\n    return")
REWRITES_THE_TEST = (
    "import pathlib\n\nTESTS = pathlib.Path(__file__).parent / 'tests'\n"
    "(TESTS / 'test_greet.py').write_text('def test_an_empty_name_is_refused():\\n    pass  # POISON\\n')\n"
    "(TESTS / 'test_other.py').write_text('def test_is_kept():\\n    pass  # POISON\\n')\n" + GREET
)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("kept", [(0, 4), range(5)], ids=["two", "each"])
def test_green_is_measured_whatever_the_agent_claims(kept: Sequence[int], tmp_path: Path) -> None:
    it = scene(tmp_path)
    wrong = judge("diagnose", diagnosis="production_logic", notes="raise ValueError")
    claims = (
        entry("implement", report=MAKE["report"]),  # no change at all
        module_with(GREET + "\n\nBETTER = True\n"),
        module_with(SKIPS_FROM_PRODUCTION),
        module_with(ENDS_THE_PROCESS),
        module_with(REWRITES_THE_TEST),
    )
    told = ["NO_CHANGE", "NOT_GREEN", "REGRESSION", "NOT_GREEN", "NOT_GREEN"]
    it.project.use_script(
        [
            *UNTIL_TESTS,
            TESTS,
            *(each for number in kept for each in (claims[number], wrong)),
            module_with(GREET_DONE),
            *AFTER_MAKE,
        ],
        "[limits]\nmake_retry = 5",
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    rows = last_rows(it.project, "write-tests/RED")
    assert rows[: 2 * len(kept) : 2] == [f"implement/{told[number]}" for number in kept]
    assert rows[2 * len(kept) :] == ["implement/GREEN", "final-review/ACCEPTABLE", "publish/PUBLISHED"]
    assert it.project.git("show", "HEAD:greet.py") == GREET_DONE.strip()
    it.assert_nothing_arrived()
    it.assert_explained("implement/NO_CHANGE", "implement/NOT_GREEN")
