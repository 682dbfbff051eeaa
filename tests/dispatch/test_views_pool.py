"""A shadow copy that an agent had is put back and moved on: it must be what a fresh one would be, byte by byte."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import pytest
from dispatch.pooled import TREES, Place, check, sh, use
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs.real import alone, git, make_repository

from pipeline.sandbox.views.views import Views

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.views.view import ShadowView


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


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
@pytest.mark.broad
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


@pytest.mark.broad(but_first=1)
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


def test_what_a_killed_driver_left_is_not_trusted(place: Place) -> None:
    sh(place.open(place.trees[0]), "echo evil > src/a.py")
    place.views = Views(place.checkout, place.views.box, overlay=False)
    view = place.open(place.trees[0])
    check(view, place, place.trees[0], 0)
    assert len(place.copies()) == 1


@pytest.mark.broad
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


@pytest.mark.broad
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


@pytest.mark.broad
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
