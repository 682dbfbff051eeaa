"""Folders that a box writes are handled in `pipeline/sandbox/boxes/box_folder.py` alone, by descriptors (ADR-R95).

What measures has no need of anything that opens, removes or walks by name. Each use that is left is named here with the
reason why no box has written there.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(__file__).parents[2] / "pipeline"
MEASURING: Final = ("testing", "steps")
PLUGIN: Final = "testing/languages/python/plugin/"
IN_THE_BOX: Final = {
    "testing/languages/python/start.py",
    "testing/languages/rust/runner.py",
    "testing/languages/go/runner.py",
    "testing/languages/javascript/runner.py",
}
BY_NAME: Final = {"rmtree", "copytree", "move", "walk", "rglob", "glob", "chmod", "lchmod", "rmdir", "chown", "scandir"}
TEMPORARY: Final = {"TemporaryDirectory", "mkdtemp", "NamedTemporaryFile", "mkstemp"}
FINE: Final = {
    ("testing/languages/python/environment_facts.py", "glob"): "folders of the host",
    ("testing/languages/go/records.py", "NamedTemporaryFile"): "the cache, which no box writes",
    ("testing/languages/environments/installed.py", "chmod"): "the view before anything runs in it",
    ("testing/languages/python/environment.py", "glob"): "folders of the host",
    ("testing/languages/projects/combined.py", "copytree"): "the view before anything runs in it",
    ("testing/languages/javascript/measuring.py", "copytree"): "our own scripts",
    ("testing/languages/python/measuring.py", "copytree"): "our own plugin",
    ("testing/languages/javascript/project.py", "scandir"): "the worktree, or a view before anything runs in it",
    ("steps/asking/reviews.py", "glob"): "what was handed to a reviewer, in the run's folder",
    ("testing/languages/python/toolchain.py", "glob"): "the worktree",
    ("testing/languages/python/bytecode.py", "walk"): "a copy without links, made by `BoxFolder.keep`",
    ("testing/languages/python/bytecode.py", "rmdir"): "the same",
    ("testing/languages/python/bytecode.py", "scandir"): "the same",
}


def uses() -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every call by name in what measures."""
    for folder in MEASURING:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            module = path.relative_to(PACKAGE).as_posix()
            if module in IN_THE_BOX or module.startswith(PLUGIN):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                    if node.func.attr in BY_NAME | TEMPORARY and owner not in {"ast", "files", "self"}:
                        yield module, node.func.attr


@pytest.mark.slow
def test_what_measures_opens_removes_and_walks_nothing_by_name() -> None:
    found = set(uses())
    assert found - FINE.keys() == set(), (
        "use pipeline/sandbox/boxes/box_folder.py, or say here why no box has written there"
    )
    assert FINE.keys() - found == set(), "these are gone; take them off the list"
