"""The lines that a change adds, read from git's patches."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from steps.probed import repository, tree_of, without_run

from pipeline.testing.measure.mutation import added_lines, changed_lines

if TYPE_CHECKING:
    from pathlib import Path

lines = st.lists(st.sampled_from(["a", "b", "-- c", "++ d", "@@ -1 +1 @@", "\\ x", "", "form\x0cfeed"]), max_size=12)


@given(lines, lines, st.integers(0, 4))
def test_a_unified_patch_says_which_lines_are_new(old: list[str], new: list[str], context: int) -> None:
    patch = "\n".join(difflib.unified_diff(old, new, "a/x", "b/x", lineterm="", n=context))
    opcodes = difflib.SequenceMatcher(None, old, new).get_opcodes()
    expected = {n + 1 for tag, _, _, j1, j2 in opcodes if tag != "equal" for n in range(j1, j2)}
    assert added_lines(patch) == expected


def test_nothing_is_added_by_what_is_no_patch() -> None:
    assert added_lines("") == frozenset()
    assert added_lines("Binary files a/x and b/x differ\n") == frozenset()


def test_lines_of_a_real_change(tmp_path: Path) -> None:
    before = {"a.py": "one\ntwo\nthree\n", "b.py": "same\n", "c.py": "gone\n", "d.txt": "x\n", "ü b.py": "1\n"}
    after = {"a.py": "one\n2\n2b\nthree\nfour", "n.py": "new\nnew", "d.txt": "y\n", "ü b.py": "1\n2\n"}
    project = repository(tmp_path, before, after)
    (project.root / "c.py").unlink()
    project.commit("without c")
    with without_run(project) as lab:
        found = changed_lines(lab, tree_of(lab, "main"), tree_of(lab, "HEAD"), lambda path: path.endswith(".py"))
    assert found == {"a.py": {2, 3, 5}, "n.py": {1, 2}, "ü b.py": {2}}
