"""A project of whose tests none can be loaded is refused before anybody is paid, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import FILES, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]


@pytest.mark.broad
def test_a_module_that_git_ignores_is_named(tmp_path: Path) -> None:
    files = {
        **FILES,
        ".gitignore": "_version.py\n.worktreeinclude\n",
        "greet.py": "import _version\n" + FILES["greet.py"],
    }
    project = make_project(tmp_path, files)
    (project.root / "_version.py").write_text("VERSION = '1'\n")
    project.use_script([])
    document = project.run()
    assert (document["outcome"], document["reason"]) == ("rejected", "baseline_impossible")
    assert "tests/test_greet.py: builtins.ModuleNotFoundError: No module named '_version'" in document["note"]
    assert "_version.py is there and git ignores it: write that path into .worktreeinclude" in document["note"]
    (project.root / ".worktreeinclude").write_text("_version.py\n")
    again = project.run()
    assert again["error"]["kind"] == "config", "the script is empty: nobody is there to plan"
    assert "sanity/OK" in project.rows("run-GAL-1@2")


def test_a_module_that_is_nowhere_is_asked_for(tmp_path: Path) -> None:
    files = {**FILES, "greet.py": "import shop_settings\n" + FILES["greet.py"]}
    project = make_project(tmp_path, files)
    project.use_script([])
    document = project.run()
    assert document["reason"] == "baseline_impossible"
    assert "If shop_settings is the project's own, install the project where its tests run" in document["note"]
