"""Folders that are renamed and renamed back: seen, whatever else is done to hide it; honest work is not."""

from __future__ import annotations

import os
import resource
import shutil
from typing import TYPE_CHECKING

import pytest

from pipeline.sandbox.views.renames import watched_folders

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = (".", "tests", "tests/data", "src")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for folder in FOLDERS:
        (tmp_path / "tree" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / folder / "file").write_text("x")
    return tmp_path / "tree"


def test_a_folder_that_is_renamed_back_is_told(top: Path) -> None:
    with watched_folders(top, FOLDERS) as seen:
        (top / "tests").rename(top / "away")
        (top / "tests").mkdir()
        (top / "tests").rmdir()
        (top / "away").rename(top / "tests")
        os.utime(top / "tests", (0, 0))
    assert (seen.moved, seen.unwatched) == ({"tests"}, "")


def test_what_honest_tests_do_is_not(top: Path) -> None:
    with watched_folders(top, FOLDERS) as seen:
        (top / "tests" / "tmp").mkdir()
        (top / "tests" / "tmp").rename(top / "tests" / "out")
        (top / "tests" / "file").rename(top / "src" / "other")
        (top / "tests" / "out").rename(top / "src" / "out")
        shutil.rmtree(top / "tests" / "data")
        (top / "src").chmod(0o755)
    assert (seen.moved, seen.unwatched) == (frozenset(), "")


@pytest.mark.slow
def test_more_events_than_the_kernel_keeps_hide_nothing(top: Path) -> None:
    with watched_folders(top, FOLDERS) as seen:
        for one, other in [("tests", "t"), ("src", "s"), ("t", "tests"), ("s", "src")] * 5000:
            (top / one).rename(top / other)
    assert seen.moved == set(FOLDERS)


def test_what_cannot_be_watched_is_said(top: Path) -> None:
    with watched_folders(top, (*FOLDERS, "zzz")) as seen:
        (top / "src").rename(top / "away")
    assert seen.moved == {"src"}
    assert seen.unwatched == "1 of 5 folders could not be watched: No such file or directory"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with watched_folders(top, FOLDERS) as seen:
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert seen.unwatched == "folders could not be watched: Too many open files"
