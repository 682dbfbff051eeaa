"""A file is replaced, and nothing is ever written through a link, wherever somebody put one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeline.agents.backends.desk import Desk
from pipeline.run.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_of_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("role.md", "handed-in.json"):
        (folder / f".{name}.{os.getpid()}.tmp").symlink_to(victim)
    write_atomic(folder / "role.md", "ours")
    Desk(folder).put(Desk(folder).report, "ours")
    assert victim.read_text() == "precious"
    assert sorted(path.name for path in folder.iterdir()) == ["handed-in.json", "role.md"]
    assert (folder / "role.md").read_text() == (folder / "handed-in.json").read_text() == "ours"
