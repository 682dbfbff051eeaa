"""A stub pass answers for what compiled when it began, not for what tests could load when the run began."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from steps.probed import PYPROJECT, repository, tree_of, without_run

from pipeline.steps.stub import new_errors

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BROKEN = "import nowhere\n\n\ndef test_a():\n    pass\n"


@pytest.mark.broad
def test_only_what_the_pass_broke_is_its_fault(tmp_path: Path) -> None:
    fine = BROKEN.replace("nowhere", "shop")
    before = {"pyproject.toml": PYPROJECT, "shop.py": "A = 1\n", "tests/test_a.py": fine, "tests/test_b.py": BROKEN}
    project = repository(tmp_path, before, {"shop.py": "import nowhere\n"})
    with without_run(project) as lab:
        start, tree = tree_of(lab, "HEAD~1"), tree_of(lab, "HEAD")
        (error,) = anyio.run(partial(new_errors, lab, start, tree))
        assert error.path == "tests/test_a.py"
        assert error.fault.raised.message.startswith("No module named 'nowhere'")
        assert anyio.run(partial(new_errors, lab, tree, tree)) == ()
