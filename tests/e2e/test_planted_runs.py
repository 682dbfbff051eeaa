"""A repository that brings a `.workflow` of its own: the driver would write through its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kit import HONEST, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("name", [".workflow", ".workflow/.gitignore", ".workflow/run-GAL-1/journal.jsonl"])
def test_nothing_is_written_through_a_link_of_the_repository(name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    if name == ".workflow":
        victim.mkdir()
    else:
        victim.write_text("precious\n")
    project = make_project(tmp_path)
    link = project.root / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    project.git("add", "--force", name)
    project.git("commit", "--quiet", "--message", "planted")
    project.use_script(HONEST)
    document = project.run()
    assert (document["_code"], document["error"]["kind"]) == (2, "usage"), document
    assert name in document["error"]["message"]
    assert victim.read_text() == "precious\n" if victim.is_file() else list(victim.iterdir()) == []


def test_a_run_that_the_repository_brings_is_not_gone_on_with(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(HONEST)
    assert project.run("--approve", "plan")["reason"] == "approval"
    project.git("add", "--force", ".workflow/run-GAL-1/run.json")
    project.git("commit", "--quiet", "--message", "planted", "--", ".workflow/run-GAL-1/run.json")
    document = project.document("approve", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "usage"), document
