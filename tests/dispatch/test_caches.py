"""Caches of the tools that agents run: kept for a role, out of the view, bounded."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import anyio
import pytest

from pipeline.agents.dispatch.caches import Cache
from pipeline.process import Command, Completed, Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox

BWRAP = shutil.which("bwrap")


@pytest.fixture(params=["bubblewrap", "none"])
def box(request: pytest.FixtureRequest) -> Bubblewrap | NoBox:
    if request.param == "none":
        return NoBox()
    assert BWRAP is not None, "bubblewrap is not installed"
    return Bubblewrap(BWRAP)


def run(box: Bubblewrap | NoBox, cache: Cache, view: Path, script: str) -> Completed:
    shown = Mount(view, box.inside(view, Path("/work")), writable=True)
    command = Command(("/bin/sh", "-c", script), shown.target, (shown, cache.mount(box)), env=cache.env(box))
    return anyio.run(partial(box.run, command))


def test_what_a_tool_caches_is_there_in_the_next_dispatch_and_not_in_the_view(
    box: Bubblewrap | NoBox, tmp_path: Path
) -> None:
    view = tmp_path / "view"
    view.mkdir()
    cache = Cache(tmp_path / "cache" / "make")
    made = run(box, cache, view, 'mkdir -p "$CARGO_TARGET_DIR" && echo built > "$CARGO_TARGET_DIR/it"')
    again = run(box, cache, view, 'cat "$CARGO_TARGET_DIR/it"')
    assert (made.exit_code, again.stdout) == (0, b"built\n"), made.stderr
    assert list(view.iterdir()) == []


def test_python_compiles_into_the_cache(box: Bubblewrap | NoBox, tmp_path: Path) -> None:
    view = tmp_path / "view"
    view.mkdir()
    (view / "module.py").write_text("x = 1\n")
    cache = Cache(tmp_path / "cache")
    done = run(box, cache, view, "/usr/bin/python3 -c 'import module'")
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in view.iterdir()] == ["module.py"]
    assert list((cache.folder / "pycache").rglob("module.*.pyc"))


def test_a_cache_that_grew_too_large_is_emptied(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    (cache.mount(NoBox()).source / "deep").mkdir()
    (cache.folder / "deep" / "file").write_bytes(b"x" * 100_000)
    assert not cache.trim(1_000_000)
    assert (cache.folder / "deep" / "file").exists()
    assert cache.trim(10_000)
    assert not cache.folder.exists()


def test_one_role_does_not_see_the_cache_of_another(tmp_path: Path) -> None:
    first, second = Cache(tmp_path / "test"), Cache(tmp_path / "make")
    (first.mount(NoBox()).source / "planted").write_text("x")
    assert list(second.mount(NoBox()).source.iterdir()) == []
