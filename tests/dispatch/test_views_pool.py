"""A shadow copy that an agent had is put back and moved on: it must be what a fresh one would be, byte by byte."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs.real import alone, git, make_repository

from pipeline.dispatch.bubblewrap import Bubblewrap
from pipeline.dispatch.manifest import scan
from pipeline.dispatch.nobox import NoBox
from pipeline.dispatch.shadow import stamps_hold
from pipeline.dispatch.view import ShadowView
from pipeline.dispatch.views import Views
from pipeline.policy.scope import ChangeKind
from pipeline.runs.checkout import PrivateCheckout

Facts = tuple[object, ...]

FILES = {
    "app.py": "one\n",
    "empty": "",
    "src/a.py": "a\n",
    "src/b.py": "b\n",
    "src/deep/er/c.py": "c\n",
    "tests/test_a.py": "t\n",
    "kept.log": "tracked although ignored\n",
    "line\nbreak": "x\n",
}
TREES = (
    ":",
    "echo two > app.py; echo a2 > src/a.py; echo n > src/new.py",
    "rm -r src/deep; rm empty; chmod +x src/b.py; echo x > one; mkdir -p lib; echo l > lib/l.py",
    "rm -r src; echo now a file > src; rm app.py; mkdir app.py; echo now a folder > app.py/inner; ln -s src link",
    "rm kept.log; ln -s /etc/passwd kept.log; echo longer >> 'line\nbreak'; ln -s src deep; ln -s ../app.py src/up",
)
"""What makes each tree out of the first."""


class Place:
    """A repository with some trees, and the views of a run in it."""

    def __init__(self, folder: Path) -> None:
        self.repository = make_repository(folder / "project", FILES)
        (self.repository.worktree / ".gitignore").write_text("*.log\nbuild/\n")
        git(self.repository.worktree, "add", ".gitignore")
        git(self.repository.worktree, "commit", "--quiet", "--message", "ignore")
        self.trees = tuple(self.commit(script) for script in TREES)
        self.checkout = PrivateCheckout(self.repository, folder / "state")
        self.views = Views(self.checkout, Bubblewrap("bwrap"), overlay=False)

    def commit(self, script: str) -> str:
        top = self.repository.worktree
        subprocess.run(["sh", "-e", "-c", script], cwd=top, check=True)
        git(top, "add", "--all", "--force")
        tree = git(top, "write-tree")
        git(top, "reset", "--quiet", "--hard", "HEAD")
        git(top, "clean", "-ffdxq")
        return tree

    def open(self, tree: str) -> ShadowView:
        view = self.views.open(tree, writable=True)
        assert isinstance(view, ShadowView)
        return view

    def copies(self) -> list[Path]:
        return sorted(self.checkout.pool("shadows" if self.views.fault else "lowers").iterdir())


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def sh(view: ShadowView, script: str) -> None:
    subprocess.run(["bash", "-c", script], cwd=view.host, check=False, capture_output=True)


def use(view: ShadowView, script: str) -> None:
    """Do what a dispatch does."""
    sh(view, script)
    view.survey()
    view.close()


def facts(path: Path, began_ns: int) -> Facts:
    status = path.lstat()
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    attributes = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
    is_of_now = status.st_mtime_ns >= began_ns
    if kind == stat.S_IFDIR:
        return kind, mode, attributes, is_of_now
    content = os.fsencode(path.readlink()) if kind == stat.S_IFLNK else path.read_bytes()
    return kind, mode, attributes, is_of_now, status.st_nlink, content


def state(top: Path, began_ns: int) -> dict[str, Facts]:
    """Return everything that is below a folder, as the system tells it; of the decoy only what git makes of it."""
    found = {".": facts(top, began_ns)}
    for at, folders, names in os.walk(top):
        if Path(at) == top and ".git" in folders:
            folders.remove(".git")
        for path in (Path(at, name) for name in (*folders, *names)):
            found[str(path.relative_to(top))] = facts(path, began_ns)
    return found


def decoy(top: Path) -> dict[str, bytes]:
    asked = ("rev-parse HEAD", "status --porcelain --ignored", "fsck --strict", "config --list --local", "diff --stat")
    said = {words: git(top, *words.split()).encode() for words in asked}
    return said | {str(path.name): path.read_bytes() for path in (top / ".git").iterdir() if path.name == "HEAD"}


def check(view: ShadowView, place: Place, tree: str, began_ns: int) -> None:
    """Compare a view that is open with a fresh copy of the same tree."""
    fresh_folder = place.checkout.new_folder("fresh")
    fresh = ShadowView.open(
        lambda folder: place.checkout.fill(tree, folder), fresh_folder, workspace=Path("/view"), writable=True
    )
    assert view.survey().changes == ()
    assert state(view.host, began_ns) == state(fresh.host, began_ns)
    assert decoy(view.host) == decoy(fresh.host)
    assert view.shadow.base == scan(view.host) == fresh.shadow.base
    fresh.close()


ATTRIBUTE = "/usr/bin/python3 -c \"import os, sys; os.setxattr(sys.argv[1], '{}', {})\""
ACCESS = struct.pack("<I" + 5 * "HHI", 2, 1, 7, 0, 2, 7, 1, 4, 5, 0, 16, 7, 0, 32, 5, 0)
"""An access list that what is made in a folder inherits: user 1 may write."""


# --- whatever was done -----------------------------------------------------------------------------------------------

PLACES = (
    *("app.py", "src", "src/a.py", "src/deep", "src/deep/er/c.py", "tests", "link", "empty", "kept.log", "lib/l.py"),
    *("new", "new/x", "src/new.py", "build/x.log", ".git", ".git/index", ".git/config", "src/.git", "."),
)


def _steps() -> st.SearchStrategy[str]:
    place = st.sampled_from(PLACES)
    mode = st.sampled_from(("+x", "-x", "600", "000", "555", "u+s", "1777"))
    return st.one_of(
        st.builds("rm -rf {0}".format, place),
        st.builds("mkdir -p {0}".format, place),
        st.builds("echo x >> {0}".format, place),
        st.builds("cat {0} > t; cat t > {0}; rm t".format, place),
        st.builds("mv -T {0} {1}".format, place, place),
        st.builds("cp -a {0} {1}".format, place, place),
        st.builds("ln -s {0} {1}".format, place, place),
        st.builds("ln {0} {1}; echo more >> {1}".format, place, place),
        st.builds("chmod {0} {1}".format, mode, place),
        st.builds("touch -d 2001-01-01 {0}".format, place),
        st.builds("truncate -s 1 {0}; touch -r tests {0}".format, place),
        st.builds(f"{ATTRIBUTE.format('user.x', b'y')} {{0}}".format, place),
        st.builds(f"{ATTRIBUTE.format('system.posix_acl_default', ACCESS)} {{0}}".format, place),
        st.builds("mkfifo {0}".format, place),
        st.sampled_from(("git add -A; git commit -qm x", "git checkout -q -b y; git clean -fdx", "rm -rf * .git*")),
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("pool")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder / "home")
        return Place(folder)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(TREES) - 1), st.lists(_steps(), max_size=6)), min_size=2, max_size=4))
def test_whatever_an_agent_did_the_next_one_finds_a_fresh_copy(
    shared: Place, dispatches: list[tuple[int, list[str]]]
) -> None:
    began_ns = time.time_ns() - 3600 * 10**9
    for number, steps in dispatches:
        view = shared.open(shared.trees[number])
        try:
            check(view, shared, shared.trees[number], began_ns)
            sh(view, "; ".join(steps))
            view.survey()
        finally:
            view.close()


# --- one thing at a time ---------------------------------------------------------------------------------------------


def test_one_copy_serves_one_dispatch_after_the_other(place: Place) -> None:
    kept = None
    for tree in (*place.trees[:3], place.trees[2], place.trees[0]):
        view = place.open(tree)
        use(view, "echo more >> src/a.py; rm tests/test_a.py; mkdir -p new/deep; git add -A; git commit -qm mine")
        kept = kept or (view.host / "kept.log").stat().st_ino
        assert kept == (view.host / "kept.log").stat().st_ino
        assert len(place.copies()) == 1


def test_two_views_at_a_time_are_two_folders(place: Place) -> None:
    first, second = place.open(place.trees[0]), place.open(place.trees[0])
    sh(first, "echo mine >> app.py")
    assert first.host != second.host
    assert second.survey().changes == ()
    use(second, "echo other > app.py")
    use(first, ":")
    third, fourth = place.open(place.trees[0]), place.open(place.trees[1])
    assert {third.host, fourth.host} == {first.host, second.host}
    assert third.survey().changes == fourth.survey().changes == ()


@pytest.mark.parametrize(
    "script",
    [
        "truncate -s 1T src/a.py",
        "p=src; for i in $(seq 200); do p=$p/d; mkdir $p; done",
        "cd ..; mv tree other; mkdir tree",
        "cd ..; mv tree other; ln -s other tree",
        "rm -r ../decoy; rm src/a.py",
        "rm ../decoy/objects/pack/*.pack; rm src/a.py",
    ],
)
def test_a_copy_that_cannot_be_put_back_is_thrown_away(place: Place, script: str) -> None:
    use(place.open(place.trees[0]), script)
    assert place.copies() == []
    view = place.open(place.trees[0])
    check(view, place, place.trees[0], 0)
    assert [path.name for path in place.copies()] == [view.host.parent.name]


def test_a_copy_that_nobody_looked_at_afterwards_is_thrown_away(place: Place) -> None:
    view = place.open(place.trees[0])
    sh(view, "echo x > app.py")
    view.close()
    view.close()
    assert place.copies() == []


def test_what_a_killed_driver_left_is_not_trusted(place: Place) -> None:
    sh(place.open(place.trees[0]), "echo evil > src/a.py")
    place.views = Views(place.checkout, place.views.box, overlay=False)
    view = place.open(place.trees[0])
    check(view, place, place.trees[0], 0)
    assert len(place.copies()) == 1


def test_a_file_that_an_agent_keeps_a_second_name_of_is_another_one_afterwards(place: Place, tmp_path: Path) -> None:
    use(place.open(place.trees[0]), f"ln src/a.py {tmp_path}/kept; ln app.py twin; rm tests/test_a.py; ln app.py tests")
    (tmp_path / "kept").write_text("from outside\n")
    view = place.open(place.trees[0])
    check(view, place, place.trees[0], 0)
    assert (view.host / "src/a.py").read_text() == "a\n"


def test_what_the_attributes_make_of_a_file_follows_the_tree(place: Place) -> None:
    crlf = place.commit("echo '*.py text eol=crlf' > .gitattributes")
    crlf_too = place.commit("echo '*.py text eol=crlf' > .gitattributes; echo two > src/a.py; rm app.py; echo n > n.py")
    for tree, content in ((place.trees[0], b"a\n"), (crlf, b"a\r\n"), (crlf_too, b"two\r\n"), (place.trees[0], b"a\n")):
        view = place.open(tree)
        assert (view.host / "src/a.py").read_bytes() == view.pristine("src/a.py") == content
        check(view, place, tree, 0)
        use(view, "rm -r src; echo x >> app.py")


def test_submodules_are_put_back_and_followed(place: Place, tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"lib.c": "1\n"}).worktree
    top = place.repository.worktree
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "vendor/lib")
    git(top, "commit", "--quiet", "--message", "submodule")
    first = git(top, "rev-parse", "HEAD^{tree}")
    other = place.commit("echo two > app.py")
    (top / "vendor/lib/lib.c").write_text("2\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(top / "vendor/lib", *who, "commit", "--quiet", "--all", "--message", "2")
    later = place.commit(":")
    for tree, content in ((first, "1\n"), (first, "1\n"), (other, "1\n"), (later, "2\n"), (place.trees[0], None)):
        view = place.open(tree)
        inside = view.host / "vendor/lib/lib.c"
        assert (inside.read_text() if inside.exists() else None) == content
        use(view, "echo x >> vendor/lib/lib.c; echo y > vendor/lib/new; rm app.py")


def test_a_pack_that_nobody_touched_is_not_copied_again(place: Place) -> None:
    def packs(view: ShadowView) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in (view.host / ".git/objects/pack").iterdir()}

    view = place.open(place.trees[0])
    before = packs(view)
    use(view, "rm .git/objects/pack/*.idx; git status; echo x >> .git/config; touch .git/objects/pack/evil.pack")
    view = place.open(place.trees[0])
    assert {name for name, inode in packs(view).items() if before.get(name) == inode} == {
        name for name in before if name.endswith(".pack")
    }
    assert packs(view).keys() == before.keys()
    assert git(view.host, "status", "--porcelain") == ""


# --- stamps ----------------------------------------------------------------------------------------------------------


def test_a_file_is_not_read_again_while_its_stamp_is_the_same(place: Place) -> None:
    use(place.open(place.trees[0]), ":")
    view = place.open(place.trees[0])
    sh(view, "touch src/a.py; echo more >> src/b.py")
    survey = view.survey()
    assert [change.path for change in survey.changes] == ["src/b.py"]
    assert {path for path, entry in survey.after.items() if entry is not survey.base[path]} == {"src/a.py", "src/b.py"}


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
from pipeline.dispatch.manifest import Limits, scan
from pipeline.dispatch.shadow import Shadow
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


def test_permissions_that_an_ordinary_user_took_away_are_given_back() -> None:
    scripts = (
        "rm src/a.py; echo x >> src/deep/b.py; chmod 555 src src/deep .",
        "mkdir -p new/in; echo x > new/in/x; chmod 555 new/in new; chmod 0 .git/objects",
        "chmod 000 src",
    )
    with tempfile.TemporaryDirectory() as top:  # the tests' own folder may be closed to that user
        argv = [sys.executable, "-c", AS_ORDINARY_USER, top, *scripts]
        done = subprocess.run(argv, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    assert done.stdout == "True 0o40755 True 0o40755 SandboxError\n", done.stderr


# --- the checkouts below overlays ------------------------------------------------------------------------------------


@pytest.fixture
def over(place: Place) -> Place:
    place.views = Views(place.checkout, Bubblewrap("bwrap"))
    if place.views.fault is not None:
        pytest.skip(place.views.fault)
    return place


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


def test_a_checkout_below_stays_while_a_view_lies_on_it(over: Place) -> None:
    first, same = (over.views.open(over.trees[0], writable=True) for _ in range(2))
    other = over.views.open(over.trees[1], writable=True)
    assert len(over.copies()) == 2
    assert (first.mount.reach / "app.py").read_text() == (same.mount.reach / "app.py").read_text() == "one\n"
    assert (other.mount.reach / "app.py").read_text() == "two\n"
    for view in (first, same, other):
        view.close()
