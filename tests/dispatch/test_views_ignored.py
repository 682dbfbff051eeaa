"""Ignored files that measurements need are in the views of agents, too, and what becomes of them there is no change."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from dispatch.pooled import Place
from runs.real import git

from pipeline.run.ignored import include_ignored
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.copies import Copies
from pipeline.sandbox.views.views import Views

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.views.renames import Traces
    from pipeline.sandbox.views.view import View

MADE = "src/_version.py"
HARMS = {
    "nothing": ":",
    "an edit": f"echo 2 > {MADE}; echo x > deep/er/data.json",
    "a touch": f"touch {MADE}",
    "a deletion": f"rm {MADE}; rm -r deep",
    "a link": f"rm {MADE}; ln -s /etc/passwd {MADE}",
    "an execute bit": f"chmod 755 {MADE}",
    "a folder": f"rm {MADE}; mkdir {MADE}",
    "a large one": f"truncate -s 300M {MADE}",
}


@pytest.fixture(params=["overlay", "shadow"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    place = Place(tmp_path)
    top = place.repository.worktree
    (top / ".gitignore").write_text("_version.py\ndeep/\n")
    (top / ".worktreeinclude").write_text("_version.py\ndeep/\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "made files")
    (top / MADE).write_text("1\n")
    (top / "deep/er").mkdir(parents=True)
    (top / "deep/er/data.json").write_text("{}\n")
    place.checkout.root.mkdir(exist_ok=True)
    include_ignored(place.repository, place.checkout.root)
    if request.param == "shadow":
        place.views = Views(place.checkout, NoBox(), overlay=False)
    else:
        place.views = Views(place.checkout, place.views.box)
        if (why := place.views.fault) is not None:
            pytest.skip(why)
    return place


def sh(view: View, script: str) -> str:
    top = view.mount.within.top if view.mount.within else None
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=view.mount.reach,
        check=False,
        capture_output=True,
        text=True,
        pass_fds=() if top is None else (top,),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS.keys())
@pytest.mark.broad
def test_they_are_there_and_what_becomes_of_them_is_no_change(place: Place, harm: str) -> None:
    tree = place.repository.tree_of("HEAD")
    for _ in range(2):
        view = place.views.open(tree, writable=True)
        assert sh(view, f"cat {MADE} deep/er/data.json") == "1\n{}\n"
        sh(view, f"{harm}; echo mine >> app.py")
        assert [change.path for change in view.survey().changes] == ["app.py"]
        assert view.pristine("app.py") == b"one\n"
        view.close()


@pytest.mark.broad(but_first=1)
def test_what_is_put_beside_them_is_judged(place: Place) -> None:
    view = place.views.open(place.repository.tree_of("HEAD"), writable=True)
    sh(view, f"echo x > deep/er/other; ln {MADE} src/second.py; rm {MADE}; mkdir {MADE}; echo x > {MADE}/inner")
    assert {change.path for change in view.survey().changes} == {"deep/er/other", "src/second.py", f"{MADE}/inner"}
    view.close()


@pytest.mark.broad(but_first=1)
def test_another_tree_gets_them_as_well(place: Place) -> None:
    for tree in (place.repository.tree_of("HEAD"), *place.trees[:3]):
        view = place.views.open(tree, writable=False)
        assert sh(view, f"cat {MADE}") == "1\n"
        assert view.survey().changes == ()
        view.close()


@pytest.mark.broad(but_first=1)
def test_measured_copies_have_them_and_do_not_tell_of_them(place: Place) -> None:
    copies = Copies(place.checkout, "measured", NoBox())
    told: list[Traces] = []
    for _ in range(2):
        with copies.lent(place.repository.tree_of("HEAD"), told.append) as folder:
            assert (folder / MADE).read_text() == "1\n"
            (folder / MADE).write_text("2\n")
            (folder / "app.py").write_text("2\n")
    assert [traces.touched for traces in told] == [frozenset({"app.py"})] * 2
