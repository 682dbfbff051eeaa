from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from todo import FolderSource, Tracker

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path


def folder_of(tmp_path: Path, count: int, labels: str) -> Path:
    for number in range(1, count + 1):
        (tmp_path / f"GAL-{number}.md").write_text(
            f"---\nid: GAL-{number}\ntitle: Issue number {number}\nstatus: {'Done' if number % 2 else 'Todo'}  # now\n"
            f"parent: null\nlabels: {labels}\ndepends-on: [GAL-{max(1, number - 1)}]\n---\n" + "text \n" * 200
        )
    return tmp_path


def test_the_ready_queue_of_a_thousand_plain_issues_takes_well_below_a_second(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 1000, "[bug]")
    begin = time.process_time()
    ready = Tracker(FolderSource(folder)).ready()
    assert time.process_time() - begin < 0.5
    assert len(ready) == 500


def test_a_thousand_issues_that_need_the_yaml_parser_take_below_a_second(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 1000, '["bug"]')
    begin = time.process_time()
    ready = Tracker(FolderSource(folder)).ready()
    assert time.process_time() - begin < 1.0
    assert len(ready) == 500


def test_plain_issues_are_read_without_importing_a_yaml_library(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 3, "[bug]")
    program = (
        "import sys; from pathlib import Path; from todo import FolderSource, Tracker;"
        f"Tracker(FolderSource(Path({str(folder)!r}))).ready();"
        "print(sorted({'yaml', 'ruamel.yaml', 'pydantic', 'pipeline'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
