"""What lets copies of trees be used again: stamps, permissions, measurements, the checkouts below overlays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from dispatch.pooled import Place, check, sh, state, use
from runs.real import alone, git

from pipeline.errors import UserError
from pipeline.judge.policy.rights import ChangeKind
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.copies import Copies
from pipeline.sandbox.views.shadow import stamps_hold
from pipeline.sandbox.views.views import Views

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- stamps ----------------------------------------------------------------------------------------------------------


def test_a_file_is_not_read_again_while_its_stamp_is_the_same(place: Place) -> None:
    use(place.open(place.trees[0]), ":")
    view = place.open(place.trees[0])
    sh(view, "touch src/a.py; echo more >> src/b.py")
    survey = view.survey()
    assert [change.path for change in survey.changes] == ["src/b.py"]
    assert {path for path, entry in survey.after.items() if entry is not survey.base[path]} == {"src/a.py", "src/b.py"}


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "script",
    [
        "printf 'b\\n' > src/n; touch -r src/a.py src/n; mv src/n src/a.py",
        "cp -p src/a.py t; printf 'b\\n' > src/a.py; touch -r t src/a.py; rm t",
        "cp -p src/a.py t; printf b | dd of=src/a.py conv=notrunc; touch -r t src/a.py; rm t",
    ],
)
def test_a_change_that_hides_behind_old_times_is_seen(place: Place, script: str) -> None:
    use(place.open(place.trees[0]), ":")
    view = place.open(place.trees[0])
    sh(view, script)
    assert [(change.path, change.kind) for change in view.survey().changes] == [("src/a.py", ChangeKind.MODIFIED)]


def test_a_file_that_was_written_when_the_agent_began_is_read_again(place: Place) -> None:
    shadow = place.open(place.trees[0]).shadow
    entry = shadow.base["src/a.py"]
    assert entry.stamp is not None
    later = entry.stamp._replace(changed_ns=time.time_ns() + 10**12)
    shadow._unsettled["src/a.py"] = type(entry)(entry.kind, sha256=entry.sha256, stamp=later)  # noqa: SLF001  (nobody can set it)
    shadow.hand_over()
    assert shadow.base["src/a.py"].stamp not in {later, entry.stamp}


@pytest.mark.broad
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can set the clock")
def test_an_agent_that_could_set_the_clock_has_all_files_read(place: Place) -> None:
    place.views = Views(place.checkout, NoBox())
    use(place.open(place.trees[0]), "echo x >> app.py")
    view = place.open(place.trees[0])
    survey = view.survey()
    assert survey.changes == ()
    assert all(entry is not survey.base[path] for path, entry in survey.after.items())
    use(view, "rm -r src; chmod 600 app.py")
    check(place.open(place.trees[1]), place, place.trees[1], 0)
    assert len(place.copies()) == 1


def test_the_time_of_a_change_is_tried(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    assert stamps_hold(folder)
    assert list(folder.iterdir()) == []


AS_ORDINARY_USER = """
import os, subprocess, sys
from pathlib import Path
import pipeline.repo.gitpython  # this Python may be closed to the other user
from pipeline.sandbox.views.manifest import Limits, scan
from pipeline.sandbox.views.shadow import Shadow

top = Path(sys.argv[1])
if os.geteuid() == 0:
    os.chown(top, 65534, 65534)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
def fill(folder):
    for name in ("src/a.py", "src/deep/b.py", "app.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
files, beside = top / "tree", top / "beside"
files.mkdir(); beside.mkdir()
shadow = Shadow.make(files, beside, fill, trusting=True)
for script in sys.argv[2:]:
    shadow.hand_over()
    subprocess.run(["sh", "-c", script], cwd=files)
    try:
        shadow.clean(shadow.scan(Limits()))
        print(scan(files) == shadow.base, oct((files / "src").stat().st_mode), end=" ")
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.broad
def test_permissions_that_an_ordinary_user_took_away_are_given_back() -> None:
    scripts = (
        "rm src/a.py; echo x >> src/deep/b.py; chmod 555 src src/deep .",
        "mkdir -p new/in; echo x > new/in/x; chmod 555 new/in new; chmod 0 .git/objects",
        "chmod 000 src",
    )
    with tempfile.TemporaryDirectory() as top:  # the tests' own folder may be closed to that user
        argv = [sys.executable, "-c", AS_ORDINARY_USER, top, *scripts]
        done = subprocess.run(argv, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    assert done.stdout == "True 0o40755 True 0o40755 BoxError\n", done.stderr


# --- copies for measurements -----------------------------------------------------------------------------------------


@pytest.mark.broad
def test_what_tests_left_behind_is_not_there_the_next_time(place: Place) -> None:
    copies = Copies(place.checkout, "measured", place.views.box)
    mess = "rm -r src; git init -q; echo x > app.py; mkdir -p .git/hooks build; echo y > build/z.log; chmod 0 tests"
    for tree in (place.trees[0], place.trees[0], place.trees[3], place.trees[1]):
        with copies.lent(tree) as folder:
            fresh = place.checkout.new_folder("fresh")
            place.checkout.fill(tree, fresh)
            assert state(folder, 0) == state(fresh, 0)
            assert not (folder / ".git").exists()
            subprocess.run(["bash", "-c", mess], cwd=folder, check=False, capture_output=True)
    # a copy of which something cannot be looked into is thrown away; root looks into everything
    assert [path.name for path in place.checkout.pool("measured").iterdir()] == ([] if os.getuid() else ["1"])
    assert not place.checkout.pool("shadows").joinpath("1").exists()


def test_a_measurement_that_broke_off_leaves_nothing_to_the_next(place: Place) -> None:
    copies = Copies(place.checkout, "measured", place.views.box)
    with pytest.raises(FileNotFoundError), copies.lent(place.trees[0]) as folder:
        (folder / "app.py").rename(folder / "nowhere" / "app.py")
    with copies.lent(place.trees[0]) as folder:
        assert (folder / "app.py").read_text() == "one\n"
    assert (place.checkout.pool("measured") / "2").is_dir()
    assert not (place.checkout.pool("measured") / "1").exists()


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("fault", ["no decoy", "no space"])
def test_a_copy_that_cannot_be_made_leaves_nothing(place: Place, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies(place.checkout, "measured", place.views.box)
    if fault == "no decoy":
        monkeypatch.setenv("PATH", "/nowhere")
    else:
        place.checkout.root.mkdir()
        (place.checkout.root / "pool").write_text("in the way")
    with pytest.raises((UserError, OSError)), copies.lent(place.trees[0]):
        pass
    assert not list(place.checkout.root.rglob("tree/app.py"))


# --- the checkouts below overlays ------------------------------------------------------------------------------------


@pytest.fixture
def over(place: Place) -> Place:
    place.views = Views(place.checkout, Bubblewrap("bwrap"))
    if place.views.fault is not None:
        pytest.skip(place.views.fault)
    return place


@pytest.mark.broad
def test_a_checkout_below_is_moved_from_tree_to_tree(over: Place) -> None:
    for tree in (*over.trees, over.trees[1], over.trees[0]):
        view = over.views.open(tree, writable=True)
        fresh = over.checkout.new_folder("fresh")
        over.checkout.fill(tree, fresh)
        below = over.copies()[0] / "tree"
        assert state(below, 0) == state(fresh, 0)
        assert view.survey().changes == ()
        decoy_of = ("--no-optional-locks", "--git-dir", "../decoy/.git", "--work-tree", ".")
        assert git(below, *decoy_of, "fsck", "--strict") == git(below, *decoy_of, "status", "--porcelain") == ""
        (view.mount.reach / "mess").write_text("x")
        view.close()
    assert len(over.copies()) == 1


@pytest.mark.broad
def test_a_checkout_below_stays_while_a_view_lies_on_it(over: Place) -> None:
    first, same = (over.views.open(over.trees[0], writable=True) for _ in range(2))
    other = over.views.open(over.trees[1], writable=True)
    assert len(over.copies()) == 2
    assert (first.mount.reach / "app.py").read_text() == (same.mount.reach / "app.py").read_text() == "one\n"
    assert (other.mount.reach / "app.py").read_text() == "two\n"
    for view in (first, same, other):
        view.close()
