"""The type of a task's commit follows from what it changes and how it is proven."""

from __future__ import annotations

import pytest

from pipeline.evidence.observation import Layout
from pipeline.reports.fields import Evidence
from pipeline.steps.commits import commit_type

LAYOUT = Layout(python_files=("test_*.py",), testpaths=("tests",))


@pytest.mark.parametrize(
    ("paths", "evidence", "is_fix", "kind"),
    [
        (["shop/cart.py", "tests/test_cart.py"], "red", False, "feat"),
        (["shop/cart.py", "tests/test_cart.py"], "red", True, "fix"),
        (["shop/cart.py", "README.md"], "regression", False, "refactor"),
        (["pyproject.toml", "README.md"], "regression", False, "chore"),
        (["pyproject.toml"], "regression", True, "fix"),
        (["README.md", "docs/use.rst"], "regression", True, "docs"),
        (["tests/test_cart.py"], "red", True, "test"),
    ],
)
def test_the_type_says_what_the_commit_is(paths: list[str], evidence: str, is_fix: bool, kind: str) -> None:
    assert commit_type(paths, LAYOUT, Evidence(evidence), is_fix=is_fix, sources=(".py",)) == kind
