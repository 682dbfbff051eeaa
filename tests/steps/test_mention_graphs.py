"""What the code of a tree mentions, read from git objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps.ground import ground

from pipeline.steps.evidence.impact import graph_of

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "core.py": "VALUE = 1\n",
    "tests/test_core.py": "import core\n",
    "tests/test_odd.py": "import core # \x80\n",
    "broken.py": "def (\n",
    "notes.txt": "import core\n",
}


def test_a_tree_has_the_mentions_of_its_code(tmp_path: Path) -> None:
    place = ground(tmp_path, FILES)
    graph = graph_of(place.repository, place.start)
    assert {path: set(used) for path, used in graph.items()} == {
        "broken.py": set(), "core.py": set(), "tests/test_core.py": {"core.py"}, "tests/test_odd.py": {"core.py"},
    }  # fmt: skip
    other = place.tree({"broken.py": None, "tests/test_core.py": "import json\n"})
    assert graph_of(place.repository, other)["tests/test_core.py"] == frozenset()


def test_a_link_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link.py").symlink_to("core.py")
    place = ground(tmp_path, FILES)
    assert "link.py" not in graph_of(place.repository, place.start)


@pytest.mark.slow
def test_too_much_code_is_not_read(tmp_path: Path) -> None:
    place = ground(tmp_path, {"core.py": "x = 1\n" * 1_500_000, "tests/test_core.py": "import core\n"})
    assert graph_of(place.repository, place.start) == {}
