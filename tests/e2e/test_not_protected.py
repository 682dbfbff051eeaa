"""Tests that were red before a run, or did not end in time, are named: nothing can be lost of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RED = "".join(f"\n\ndef test_red_{number}():\n    assert {number} < 0\n" for number in range(5))
HANGS = "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n"


@pytest.mark.broad
def test_the_summary_and_the_console_name_them_with_the_limit(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_red.py": RED.lstrip(), "tests/test_hangs.py": HANGS})
    project.commit("red tests")
    project.use_script(HONEST, "[toolchains.pytest]\ntest_timeout_s = 2\n")
    document = project.run()
    assert document["outcome"] == "completed", document["_stderr"]
    red = (
        "5 tests failed before already and are not counted: tests/test_red.py::test_red_0, "
        "tests/test_red.py::test_red_1, tests/test_red.py::test_red_2 and 2 more"
    )
    late = "1 test did not end within 2 s before already and is not counted: tests/test_hangs.py::test_hangs"
    summary = (project.run_folder() / "summary.md").read_text(encoding="utf-8")
    (line,) = [line for line in document["_stderr"].splitlines() if "sanity" in line]
    for sentence in (red, late):
        assert f"* {sentence}" in summary or f"- {sentence}" in summary
        assert sentence in line
    assert "7 tests: 5 failed, " in line
    assert "7 tests: 5 failed, " in (project.run_folder() / "evidence/baseline.md").read_text(encoding="utf-8")
