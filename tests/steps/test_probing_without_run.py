"""What measures without a run lends several copies side by side, also of trees that only it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps.probed import PYPROJECT, repository, tree_of, without_run

from pipeline.repo import Entry, TreeChange

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_two_copies_of_trees_that_the_repository_does_not_have(tmp_path: Path) -> None:
    project = repository(tmp_path, {"pyproject.toml": PYPROJECT}, {"shop.py": "A = 1\n"})
    with without_run(project) as lab:
        blob = lab.repository.write_blob(b"A = 2\n")
        entry = Entry("shop.py", "100644", blob)
        tree = lab.repository.build_tree(tree_of(lab, "HEAD"), [TreeChange("shop.py", entry)])
        with lab.copies.lent(tree) as one, lab.copies.lent(tree) as other:
            assert one != other
            assert (one / "shop.py").read_text() == (other / "shop.py").read_text() == "A = 2\n"
    assert project.git("status", "--porcelain") == ""
