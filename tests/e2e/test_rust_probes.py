"""What the probes say of an honest Rust task: nothing is traced there, so nothing is said of what its tests enter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.shapes import answers, done, evidence
from e2e.test_rust_issue import BASE, GREET, GREET_DONE, REFUSED, beside, make
from languages.crates import needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_cargo]

ONLY_REACH = "[probes]\nrepeat = 1\nrevert = false\nmutants = 0\n"


@pytest.mark.broad
def test_no_honest_test_is_said_to_look_elsewhere(tmp_path: Path) -> None:
    files = {**BASE, **beside(GREET)}
    project = make(tmp_path, files)
    project.probed = True
    project.use_script(answers(files, beside(GREET, REFUSED), beside(GREET_DONE, REFUSED)), ONLY_REACH)
    result = done(project)
    probes = evidence(project, "task-1.json")["probes"]
    assert probes["reach"] is None
    written = [path.read_text(encoding="utf-8") for path in project.run_folder().glob("evidence/*.md")]
    assert not any("never enter" in text for text in (*written, result["_stderr"]))
