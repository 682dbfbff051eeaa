"""An overlay view and a shadow copy must see the same changes, and mean the same by them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.sandbox.views.overlay import OverlayView, overlay_works

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.sandbox.views.view import ShadowView, View

FILES = {"app.py": "one\n", "src/a.py": "a\n", "src/b.py": "b\n", "src/deep/c.py": "c\n", "tests/test_a.py": "t\n"}


def fill(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link").symlink_to("app.py")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)


def overlay(tmp_path: Path, name: str = "overlay") -> OverlayView:
    lower, at = tmp_path / f"{name}.lower", tmp_path / name
    lower.mkdir()
    at.mkdir()
    fill(lower)
    return OverlayView.open((lower,), at, workspace=Path("/view"), writable=True)


def shadow(tmp_path: Path, name: str = "shadow") -> ShadowView:
    return open_view(fill, tmp_path / name, workspace=Path("/view"), writable=True)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[View, View]]:
    views = overlay(tmp_path), shadow(tmp_path)
    yield views
    for view in views:
        view.close()


def sh(view: View, script: str) -> None:
    top = view.mount.within.top if view.mount.within else None
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=view.mount.reach,
        check=False,
        capture_output=True,
        pass_fds=() if top is None else (top,),
    )
    assert done.returncode == 0, done.stderr


SCRIPTS = {
    "nothing": ":",
    "an edit": "echo more >> src/a.py",
    "the same bytes again": "cp src/a.py x; cat x > src/a.py; rm x",
    "only looked at": "touch src/a.py",
    "a new file": "echo x > src/new.py",
    "a new file that is gone again": "echo x > new; rm new",
    "a new folder": "mkdir -p one/two; echo x > one/two/three",
    "an empty folder": "mkdir -p one/two",
    "a deletion": "rm src/a.py",
    "a folder gone": "rm -r src",
    "a folder gone and back": "rm -r src; mkdir src; echo a > src/a.py",
    "a folder that is a file now": "rm -r src; echo x > src",
    "a file that is a folder now": "rm app.py; mkdir app.py; echo x > app.py/inner",
    "a renamed file": "mv src/a.py src/z.py",
    "a renamed folder": "mv src lib",
    "a folder moved over another": "rm -r tests; mv src tests",
    "an execute bit": "chmod +x src/a.py",
    "an execute bit less": "chmod -x run.sh",
    "a set-user bit": "chmod u+s run.sh",
    "a folder's mode": "chmod 700 src",
    "a link": "ln -s /etc/passwd src/link",
    "a link in the place of a file": "rm app.py; ln -s src/a.py app.py",
    "a link in the place of a folder": "rm -r src; ln -s tests src",
    "another target": "rm link; ln -s src/a.py link",
    "a link that is a file now": "rm link; echo x > link",
    "a hard link": "ln src/a.py src/hard.py",
    "a hard link across folders": "ln src/a.py tests/hard.py; echo x >> tests/hard.py",
    "a FIFO": "mkfifo src/pipe",
    "a socket's place": "mkdir s; mkfifo s/p; rm s/p",
    "case": "echo x > SRC; echo x > App.py",
    "case in a folder": "mkdir Src; echo x > Src/q.py",
    "a bare repository": "mkdir -p r/objects r/refs; echo ref: x > r/HEAD",
    "half of one in an old folder": "mkdir src/objects src/refs; echo x > src/HEAD",
    "a nested repository": "mkdir -p src/sub/.git; echo x > src/sub/.git/config",
    "the top's own repository": "mkdir -p .git; echo x > .git/evil",
    "many": "for i in $(seq 300); do echo $i > src/f$i; done",
    "deep": "p=src; for i in $(seq 200); do p=$p/d; mkdir $p; done",
    "a name that is no text": "echo x > $'src/\\xff'",
    "swapped": "mv src t; mv tests src; mv t tests",
    "deleted below, new above": "rm -r src/deep; mkdir src/deep; echo new > src/deep/d.py",
    "truncated": ": > app.py",
    "sparse": "truncate -s 40M src/big",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.broad(but_first=2)
def test_both_views_see_the_same(both: tuple[View, View], script: str) -> None:
    for view in both:
        sh(view, script)
    over, copy = (view.survey() for view in both)
    assert over.changes == copy.changes
    for change in copy.changes:
        assert (change.path in over.base) is (change.path in copy.base), change
        assert over.after.get(change.path) == copy.after.get(change.path), change
        assert both[0].pristine(change.path) == both[1].pristine(change.path), change
    for path in ("app.py", "src/deep/c.py", "run.sh", "never/there"):
        assert (path in over.after) is (path in copy.after), path
        assert (path in over.base) is (path in copy.base), path


PLACES = ("app.py", "src", "src/a.py", "src/deep", "src/deep/c.py", "tests", "link", "new", "new/x", "src/new")


def _steps() -> st.SearchStrategy[str]:
    place = st.sampled_from(PLACES)
    return st.one_of(
        st.builds("rm -rf {0}".format, place),
        st.builds("mkdir -p {0}".format, place),
        st.builds("echo x >> {0}".format, place),
        st.builds("mv -T {0} {1}".format, place, place),
        st.builds("cp -p {0} {1}".format, place, place),
        st.builds("ln -s {0} {1}".format, place, place),
        st.builds("ln {0} {1}".format, place, place),
        st.builds("chmod {0} {1}".format, st.sampled_from(("+x", "-x", "600")), place),
        st.builds("touch {0}".format, place),
    )


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[View, View]]:
    def make() -> tuple[View, View]:
        folder = tmp_path_factory.mktemp("views")
        return overlay(folder), shadow(folder)

    return make


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_steps(), max_size=8))
@pytest.mark.broad
def test_whatever_is_done_both_views_see_the_same(fresh: Callable[[], tuple[View, View]], steps: list[str]) -> None:
    views = fresh()
    try:
        for view in views:
            sh(view, "{ " + "; ".join([*steps, ":"]) + "; } 2>/dev/null; true")
        over, copy = (view.survey() for view in views)
        assert over.changes == copy.changes
    finally:
        for view in views:
            view.close()


def test_the_checkout_below_is_not_touched(tmp_path: Path) -> None:
    view = overlay(tmp_path)
    sh(view, "rm -r src; echo x > app.py; mkdir src; echo y > src/a.py")
    view.close()
    assert {name: (tmp_path / "overlay.lower" / name).read_text() for name in FILES} == FILES


def test_closing_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    view = overlay(tmp_path)
    released: list[int] = []
    view.release = lambda: released.append(1)
    sh(view, "echo x > new")
    view.close()
    view.close()
    assert set(Path("/proc/self/fd").iterdir()) == before
    assert not (tmp_path / "overlay").exists()
    assert released == [1]
    assert not [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(tmp_path) in line]


def test_an_agent_cannot_mark_a_folder_as_opaque_or_make_a_whiteout(tmp_path: Path) -> None:
    view = overlay(tmp_path)
    try:
        sh(
            view,
            "/usr/bin/python3 -c \"import os; os.setxattr('src', 'user.overlay.opaque', b'y')\" 2>/dev/null;"
            "mknod src/a 2>/dev/null c 0 0; true",
        )
        assert view.survey().changes == ()
        assert sorted(path.name for path in (view.mount.reach / "src").iterdir()) == ["a.py", "b.py", "deep"]
    finally:
        view.close()


@pytest.mark.broad
def test_too_many_bytes_do_not_fit(tmp_path: Path) -> None:
    view = overlay(tmp_path)
    try:
        sh(view, "! head -c 1200M /dev/zero > big 2>/dev/null")
        (change,) = view.survey().changes
        assert (change.path, change.kind) == ("big", "unreadable")
    finally:
        view.close()


def test_this_machine_offers_overlay_views(tmp_path: Path) -> None:
    assert overlay_works(tmp_path, None) is None
    assert not any(tmp_path.iterdir())
