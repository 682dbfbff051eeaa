"""What processes in a kernel box tried against the driver: each was a way out, or a way to stop a run, once."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pipeline.agents.dispatch.caches import CACHE, Cache
from pipeline.process import WORKSPACE, BoxError, Command, Completed, Mount
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.overlay import OverlayView

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Iterator

BWRAP = shutil.which("bwrap")
OWNER = BOX_USER if os.getuid() == 0 else None
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")]


class Silent:
    """A gateway that answers nothing."""

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncGenerator[None]:
        with listener:
            yield


@pytest.fixture
def box() -> Bubblewrap:
    return Bubblewrap(str(BWRAP), OWNER)


@pytest.fixture(params=["overlay", "folder"])
def view(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mount]:
    files = tmp_path / "files"
    (files / "src").mkdir(parents=True)
    if request.param == "folder":
        yield Mount(files, WORKSPACE, writable=True)
        return
    (tmp_path / "at").mkdir()
    overlay = OverlayView.open((files,), tmp_path / "at", workspace=WORKSPACE, writable=True, owner=OWNER)
    yield overlay.mount
    overlay.close()


def sh(box: Bubblewrap, script: str, *mounts: Mount, cwd: Path = WORKSPACE, network: str = "none") -> Completed:
    gateway = Silent() if network == "model" else None
    command = Command(("/bin/sh", "-c", script), cwd, mounts, timeout_s=60, network=network, gateway=gateway)
    return anyio.run(partial(box.run, command))


def test_a_folder_that_became_a_link_is_not_shown_from_where_the_link_leads(
    box: Bubblewrap, view: Mount, tmp_path: Path
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "project/src"
    home.mkdir()
    assert sh(box, f"mv src away; ln -s {home} src", view).exit_code == 0
    with pytest.raises(BoxError, match="src"):
        sh(box, f"echo x > {elsewhere}/escaped", view, view.below("src", elsewhere))
    assert list(home.iterdir()) == []


def test_a_folder_of_the_view_is_shown_a_second_time(box: Bubblewrap, view: Mount, tmp_path: Path) -> None:
    elsewhere = tmp_path / "project/src"
    assert sh(box, f"echo x > {elsewhere}/new && cat src/new", view, view.below("src", elsewhere)).stdout == b"x\n"


def test_mount_points_are_taken_away_where_they_were_made(box: Bubblewrap, view: Mount, tmp_path: Path) -> None:
    """The folder on the way to them is moved and a link put there, which leads out of the view."""
    victim, extra, single = tmp_path / "victim", tmp_path / "extra", tmp_path / "single"
    (victim / "inner").mkdir(parents=True)
    (victim / "file").touch()
    extra.mkdir()
    single.write_text("x")
    mounts = view, Mount(extra, WORKSPACE / "deep/inner"), Mount(single, WORKSPACE / "deep/file")
    assert sh(box, f"mv deep moved; ln -s {victim} deep", *mounts).exit_code == 0
    assert sorted(path.name for path in victim.iterdir()) == ["file", "inner"]
    assert sh(box, "ls moved", view).stdout == b"", "what we made there is gone all the same"


def test_the_box_has_no_end_of_the_channel_that_its_listener_came_through(box: Bubblewrap) -> None:
    listed = sh(box, "ls -l /proc/self/fd", cwd=Path("/"), network="model").stdout.decode()
    assert "pipe:" in listed
    assert "socket:" not in listed


@pytest.mark.broad
def test_a_cache_of_any_depth_can_be_trimmed(box: Bubblewrap, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches" / "make")
    script = "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit; i=$((i+1)); done; head -c 100000 /dev/zero > f"
    assert sh(box, script, cache.mount(box), cwd=CACHE).exit_code == 0
    assert cache.trim(10_000)


def test_what_an_agent_hides_from_its_owner_counts(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches" / "make")
    hidden = cache.mount(NoBox()).source / "hidden"
    hidden.mkdir()
    (hidden / "file").write_bytes(b"x" * 100_000)
    hidden.chmod(0)
    cache.folder.chmod(0)
    assert not cache.trim(1_000_000)
    assert cache.mount(NoBox()).source.stat().st_mode & 0o700 == 0o700, "the next dispatch can use it"
    assert cache.trim(10_000)


def test_files_without_content_count_too(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches" / "make")
    top = cache.mount(NoBox()).source
    for number in range(100):
        (top / f"{number}").mkdir()
    assert cache.trim(10_000)


def test_what_is_in_a_cache_is_nobody_elses_to_run(box: Bubblewrap, tmp_path: Path) -> None:
    """A set-user program that the agent makes belongs to the driver's user on disk."""
    cache = Cache(tmp_path / "caches" / "make")
    assert sh(box, "cp /usr/bin/id own; chmod 6755 own; chmod 777 .", cache.mount(box), cwd=CACHE).exit_code == 0
    assert (cache.folder / "own").stat().st_mode & 0o6000 == 0o6000
    assert cache.folder.parent.stat().st_mode & 0o077 == 0
