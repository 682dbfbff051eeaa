"""`tdd` and `verify` tell of means of forging test results in production, and refuse nothing for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import GREET_DONE, HONEST, MAKE, TEST_GREET_NEW, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CODE = f"import ast\n\nast.parse = ast.parse\n{GREET_DONE}"
TOLD = "greet.py:3 changes `ast.parse` (what the tests use, too); test results can be forged so"


@pytest.mark.broad
def test_tdd_tells_of_them(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": TEST_GREET_NEW, "greet.py": CODE})
    for which in ("check-red", "check-green"):
        document = project.document("tdd", which)
        assert (document["_code"], TOLD in document["notes"]) == (0, True), document
    said = project.redfirst("tdd", "check-green")
    assert (said.returncode, f"note: {TOLD}" in said.stdout) == (0, True), said


@pytest.mark.broad
def test_verify_tells_of_them(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    made = {**MAKE, "files": {"greet.py": CODE}}
    project.use_script([made if entry is MAKE else entry for entry in HONEST])
    assert project.run()["_code"] == 0
    document = project.document("verify", "run-GAL-1")
    assert (document["_code"], TOLD in document["commits"][0]["notes"]) == (0, True), document
    said = project.redfirst("verify", "run-GAL-1")
    assert (said.returncode, f"note: {TOLD}" in said.stdout) == (0, True), said
