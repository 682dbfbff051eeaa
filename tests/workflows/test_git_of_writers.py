"""How many processes of git a step that writes takes: what it saw, its change, and the ref of the run."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from workflows.test_writers import LOOSE, made, reads, writes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]


def asked(tmp_path: Path, count: int) -> list[str]:
    """Return what git is asked by a run of so many writers side by side and a reader behind them."""
    folder = tmp_path / f"of-{count}"
    folder.mkdir()
    steps = [{"id": f"w{at}", "agent": "make", "write_set": [f"docs/{at}.md"]} for at in range(count)]
    last = {"id": "last", "agent": "check", "depends_on": [one["id"] for one in steps]}
    project = made(folder, *steps, last, max_concurrency=count)
    entries = [writes(f"w{at}", {f"docs/{at}.md": "x\n"}) for at in range(count)]
    project.use_script([*entries, reads("last", **{f"{at}": "x" for at in range(count)})], LOOSE)
    told, counting = folder / "asked", folder / "bin"
    counting.mkdir()
    real = shutil.which("git", path=project.environment()["PATH"])
    script = counting / "git"
    script.write_text(f'#!/bin/sh\necho "$*" >> {told}\nexec {real} "$@"\n')
    script.chmod(0o755)
    project.env["PATH"] = f"{counting}:{project.environment()['PATH']}"
    done = project.redfirst("run", "r")
    assert done.returncode == 0, done.stderr
    return told.read_text().splitlines()


def test_a_writer_is_merged_with_three_processes_of_git_and_takes_twelve_in_all(tmp_path: Path) -> None:
    few, many = asked(tmp_path, 2), asked(tmp_path, 6)
    assert len(many) - len(few) <= 4 * 12, "\n".join(many)
    merging = re.compile(r"diff-tree -r|mktree -z|update-ref")
    more = [sum(bool(merging.search(line)) for line in lines) for lines in (few, many)]
    assert more[1] - more[0] <= 4 * 3, "\n".join(many)
