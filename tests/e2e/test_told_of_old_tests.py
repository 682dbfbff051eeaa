"""A whole run: an old doctest that the implementer empties is told to @check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import AFTER_MAKE, FILES, MAKE, TESTS, UNTIL_TESTS, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

SHOWN = '"""Greetings."""\n\n\ndef greet(name):\n    """Greet.\n\n    >>> greet("Ada")\n    \'Hello, Ada!\'\n    """\n'
RETURNS = '    return f"Hello, {name}!"\n'
REFUSES = '    if not name:\n        raise ValueError("a name is needed")\n'
DOCTESTS = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload --doctest-modules"\npythonpath = ["."]\n'


@pytest.mark.broad
def test_an_old_doctest_that_the_implementer_empties_is_told_in_the_final_review(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "greet.py": SHOWN + RETURNS, "pyproject.toml": DOCTESTS})
    emptied = SHOWN.replace(">>> greet", ">>> _ = greet").replace("    'Hello, Ada!'\n", "")
    made = {**MAKE, "files": {"greet.py": emptied + REFUSES + RETURNS}}
    project.use_script([*UNTIL_TESTS, TESTS, made, *AFTER_MAKE])
    document = project.run()
    assert document["outcome"] == "completed"
    told = (project.run_folder() / "reviews/suspicions-1.md").read_text()
    assert "greet.py: an example in its documentation is gone, or is another now: `>>> greet" in told
