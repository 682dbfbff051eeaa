"""A whole run: a module whose examples were to be the tests of a task comes back from the split, with what to do."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import NOBODY, TRACKER, answers, changed
from kit import GREET, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CONFIG = '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "--disable-plugin-autoload --doctest-modules"\n'
SHOWN = GREET.replace(
    "    return", '    """Return a greeting.\n\n    >>> greet(\'Ada\')\n    \'Hello, Ada!\'\n    """\n    return'
)
FILES = {"pyproject.toml": CONFIG, "greet.py": SHOWN, **TRACKER}
TEST = {"tests/test_greet.py": f"from greet import greet\n{NOBODY}"}


@pytest.mark.broad
def test_the_refusal_says_where_its_tests_belong(tmp_path: Path) -> None:
    assert SHOWN != GREET
    done = SHOWN.replace("    return f", '    if not name:\n        raise ValueError("a name is needed")\n    return f')
    assert done != SHOWN
    entries = answers(FILES, TEST, {"greet.py": done})
    at = next(number for number, entry in enumerate(entries) if entry["when"] == {"kind": "split"})
    first = deepcopy(entries[at])
    first["report"]["tasks"][0]["test_files"] = [{"path": "greet.py", "action": "modify"}]
    project = make_project(tmp_path, FILES)
    project.use_script([*entries[:at], first, *entries[at:]], '[agents.simplify]\nbackend = "off"\n')

    document = project.run()

    assert document.get("outcome") == "completed", (project.rows(), document["_stderr"])
    assert "split/HYGIENE" in project.rows()
    told = [path.read_text(encoding="utf-8") for path in project.run_folder().rglob("*.md")]
    assert any("put its tests into a test file" in text for text in told)
    assert changed(project, "HEAD~1") == ["greet.py", "tests/test_greet.py"]
