"""Claims about tests that the measurement does not bear out: RED that is none, GREEN that is none, tests outwitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.misbehaviour import entry, last_rows, scene
from kit import AFTER_MAKE, GREET, GREET_DONE, MAKE, TEST_GREET, TEST_GREET_NEW, TESTS, UNTIL_TESTS, judge

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow
SKIPS = TEST_GREET_NEW.replace("def test_an_empty", '@pytest.mark.skip(reason="later")\ndef test_an_empty')
IS_NO_PYTHON = TEST_GREET + "\n\ndef test_an_empty_name_is_refused(:\n    pass\n"
REWRITES_THE_TEST = (
    "import pathlib\n\nTESTS = pathlib.Path(__file__).parent / 'tests'\n"
    "(TESTS / 'test_greet.py').write_text('def test_an_empty_name_is_refused():\\n    pass  # POISON\\n')\n"
    "(TESTS / 'test_other.py').write_text('def test_is_kept():\\n    pass  # POISON\\n')\n" + GREET
)


def test_red_and_green_are_measured_whatever_the_agents_claim(tmp_path: Path) -> None:
    """What else @test and @make could claim is in `cheats`."""
    it = scene(tmp_path)
    wrong = judge("diagnose", diagnosis="production_logic", notes="raise ValueError")
    it.project.use_script(
        [
            *UNTIL_TESTS,
            {**TESTS, "files": {"tests/test_greet.py": SKIPS}},
            {**TESTS, "files": {"tests/test_greet.py": IS_NO_PYTHON}},
            TESTS,
            entry("implement", report=MAKE["report"]),  # no change at all
            wrong,
            {**MAKE, "files": {"greet.py": REWRITES_THE_TEST}},
            wrong,
            {**MAKE, "files": {"greet.py": GREET_DONE}},
            *AFTER_MAKE,
        ],
        '[limits]\nmake_retry = 5\n[agents.simplify]\nbackend = "off"\n',
    )

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert last_rows(it.project, "review-split/ACCEPTABLE") == [
        "write-tests/ILLEGAL_RED",
        "write-tests/ILLEGAL_RED",
        "write-tests/RED",
        "implement/NO_CHANGE",
        "diagnose/PRODUCTION_LOGIC",
        "implement/NOT_GREEN",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert it.project.git("show", "HEAD:tests/test_greet.py") == TEST_GREET_NEW.strip()
    assert it.project.git("show", "HEAD:greet.py") == GREET_DONE.strip()
    it.assert_nothing_arrived()
    it.assert_explained(
        "write-tests/ILLEGAL_RED", "skipped", "SyntaxError", "implement/NO_CHANGE", "implement/NOT_GREEN"
    )
