"""What is not asked of git again, and what is not asked of it at all, against what git itself says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from runs.real import alone, git, make_repository, tree_with
from waiting import alive, own_nap, wait_until

from pipeline.repo import Entry, Repository, TreeChange, UntouchedRepository
from pipeline.repo.process import run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


CLAIM = "refs/redfirst/claims/GAL-1"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "project", {"app.py": "one\n", "pkg/mod.py": "x = 1\n", "pkg.txt": "n\n"})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.mktemp("shared")
        alone(patch, base / "home")
        yield make_repository(base / "project")


# --- trees ---------------------------------------------------------------------------------------------------------

_NAMES = st.lists(st.sampled_from(["a", "b", "a.b", "a-b", "é"]), min_size=1, max_size=3).map("/".join)
_CHANGES = st.lists(st.tuples(_NAMES, st.sampled_from(["100644", "100755", "120000", "160000", None])), max_size=6)


def by_update_index(repository: Repository, base: str, changes: list[TreeChange]) -> str:
    """Return what git makes of the same changes by way of an index."""
    env = {**os.environ, "GIT_INDEX_FILE": str(repository.git_dir / "oracle-index")}
    lines = b""
    for change in sorted(changes, key=lambda each: each.entry is not None):
        mode, oid = (change.entry.mode, change.entry.oid) if change.entry else ("0", "0" * 40)
        lines += f"{mode} {oid}\t{change.path}\0".encode()

    def asked(*argv: str, stdin: bytes = b"") -> str:
        argv = ("git", "-C", str(repository.worktree), *argv)
        return subprocess.run(argv, env=env, input=stdin, capture_output=True, check=True).stdout.decode().strip()

    asked("read-tree", base)
    asked("update-index", "-z", "--index-info", stdin=lines)
    return asked("write-tree")


@settings(max_examples=60, deadline=None)
@given(before=_CHANGES, after=_CHANGES)
@example(before=[("a/b/a", "100644")], after=[("a/b/a", None)])
@example(before=[("a/b/a", "100644")], after=[("a/b", "120000"), ("a/b/b", "100644")])
@example(before=[("a", "100644")], after=[("a/b/a", "160000"), ("a.b", None)])
def test_a_tree_with_changes_is_the_one_that_an_index_gives(
    shared: Repository, before: list[tuple[str, str | None]], after: list[tuple[str, str | None]]
) -> None:
    blob, commit = shared.write_blob(b"x"), shared.resolve("HEAD") or ""

    def changes(wanted: list[tuple[str, str | None]]) -> list[TreeChange]:
        oids = {"160000": commit}
        return [TreeChange(path, Entry(path, mode, oids.get(mode, blob)) if mode else None) for path, mode in wanted]

    tree = shared.tree_of("HEAD")
    for wanted in (before, after):
        made = shared.build_tree(tree, changes(wanted))
        assert made == by_update_index(shared, tree, changes(wanted))
        tree = made


@pytest.mark.parametrize(
    "path", ["../out", "a/../b", "a//b", "/a", ".git/hooks/x", "pkg/.GIT/config", "", "a/", "git~1/x", ".git /x"]
)
def test_a_path_that_no_checkout_may_have_is_left_out(repository: Repository, path: str) -> None:
    start, change = repository.tree_of("HEAD"), TreeChange(path, Entry(path, "100644", repository.write_blob(b"x")))
    assert repository.build_tree(start, [change]) == start == by_update_index(repository, start, [change])


@pytest.mark.parametrize("paths", [("pkg",), ("pkg/",), ("app.py",), ("app.py/",), ("pkg/mod.py", "pkg"), ("p",), ()])
def test_some_paths_of_a_listing_are_those_that_git_lists(repository: Repository, paths: tuple[str, ...]) -> None:
    tree = tree_with(repository, repository.tree_of("HEAD"), {"pkg/deep/er.py": "1\n", "pkg.d/x": "1\n"})
    asked = repository.entries(tree, *paths)
    repository.entries(tree)  # from now on nothing is asked about it
    assert sorted(asked, key=str) == sorted(repository.entries(tree, *paths), key=str)


def test_what_is_too_large_to_read_is_refused_and_the_next_answer_is_its_own(repository: Repository) -> None:
    blob = repository.write_blob(b"x" * 100)
    assert repository.blob(blob) == b"x" * 100
    with pytest.raises(ValueError, match="99 bytes"):
        repository.blob(blob, limit=99)
    assert repository.blob("0" * 39 + "1") is None


# --- refs ----------------------------------------------------------------------------------------------------------


def refs_of_git(repository: Repository, *prefixes: str) -> dict[str, str]:
    out = git(repository.worktree, "for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
    return dict(line.split(" ", 1) for line in out.splitlines())


def test_refs_are_those_of_git_loose_packed_moved_and_gone(repository: Repository) -> None:
    one, two = repository.write_blob(b"1"), repository.write_blob(b"2")
    wanted = ("refs/redfirst/claims/", "refs/redfirst/runs/p/run-GAL-1", "refs/replace/")

    def agrees() -> dict[str, str]:
        assert repository.refs(*wanted) == refs_of_git(repository, *wanted)
        return repository.refs(*wanted)

    assert agrees() == {}
    git(repository.worktree, "update-ref", CLAIM, one)
    git(repository.worktree, "update-ref", f"{CLAIM}0", two)
    git(repository.worktree, "update-ref", "refs/redfirst/runs/p/run-GAL-10", two)
    assert agrees() == {CLAIM: one, f"{CLAIM}0": two}
    git(repository.worktree, "pack-refs", "--all", "--prune")
    assert agrees() == {CLAIM: one, f"{CLAIM}0": two}
    git(repository.worktree, "update-ref", CLAIM, two)
    assert agrees()[CLAIM] == two
    git(repository.worktree, "update-ref", "-d", CLAIM)
    assert agrees() == {f"{CLAIM}0": two}
    git(repository.worktree, "replace", one, two)
    assert agrees() == {f"{CLAIM}0": two, f"refs/replace/{one}": two}


def test_a_ref_that_stands_for_another_is_gits_to_follow(repository: Repository) -> None:
    git(repository.worktree, "symbolic-ref", CLAIM, "refs/heads/main")
    assert repository.refs(CLAIM) == {CLAIM: repository.resolve("main")}


# --- settings ------------------------------------------------------------------------------------------------------


def test_settings_are_asked_again_when_a_file_changes_that_they_could_come_from(
    repository: Repository, tmp_path: Path
) -> None:
    own = tmp_path / "project" / ".git" / "own.inc"
    git(repository.worktree, "config", "include.path", "own.inc")
    git(repository.worktree, "config", "includeIf.onbranch:other.path", "../branch.inc")
    (tmp_path / "project" / "branch.inc").write_text("[x]\n\tbranch = 1\n")

    def value(key: str) -> str | None:
        first = repository.config(key)
        assert repository.config(key) == first
        return first

    assert value("x.y") is None
    own.write_text("[x]\n\ty = 1\n")
    assert value("x.y") == "1"
    own.write_text("[x]\n\ty = 2\n")
    assert value("x.y") == "2"
    own.unlink()
    assert value("x.y") is None
    git(repository.worktree, "config", "--global", "x.y", "3")
    assert value("x.y") == "3"
    git(repository.worktree, "config", "x.y", "4")
    assert value("x.y") == "4"
    git(repository.worktree, "config", "--unset", "x.y")
    assert value("x.branch") is None
    git(repository.worktree, "switch", "--quiet", "--create", "other")
    assert value("x.branch") == "1"


def test_settings_that_are_known_cost_no_process(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    assert repository.settings() == repository.settings()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert repository.settings()


# --- processes of git with a limit of time: they end with what they had started ---------------------------------------

ROOT = Path(__file__).parents[2]
WAITING = """
import sys
from pathlib import Path
from pipeline.repo.process import run
run(Path.cwd(), ["-c", f"alias.wait=!echo $$ > {sys.argv[1]}; exec sleep 300", "wait"], limit_s=200)
"""
STARTING = """
import sys
from pathlib import Path
from pipeline.repo.process import run
run(Path.cwd(), ["version"])
for _ in range(30):
    try:
        print("now", flush=True)
        run(Path.cwd(), ["-c", f"alias.wait=!exec sleep {sys.argv[1]}", "wait"], limit_s=200)
    except KeyboardInterrupt:
        pass
"""


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def waits(mark: Path) -> list[str]:
    return ["-c", f"alias.wait=!echo $$ > {mark}; exec sleep 300", "wait"]


def test_what_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(subprocess.TimeoutExpired):
        run(tmp_path, waits(mark), limit_s=3)
    wait_until(lambda: not is_there(int(mark.read_text())))
    assert run(tmp_path, ["version"], limit_s=60).stdout.startswith(b"git version")
    assert run(tmp_path, ["no-such-command"], limit_s=60).returncode == 1


@pytest.mark.parametrize("foreground", [True, False])
def test_who_is_interrupted_meanwhile_ends_at_once(tmp_path: Path, *, foreground: bool) -> None:
    mark = tmp_path / "pid"
    code = WAITING.replace("limit_s=200", f"limit_s=200, foreground={foreground}")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(mark)], cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    ) as waiting:
        wait_until(lambda: mark.exists() and mark.read_text().strip() != "")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) != 0
    wait_until(lambda: not is_there(int(mark.read_text())))


def test_who_is_interrupted_while_git_is_started_leaves_none(tmp_path: Path) -> None:
    nap = own_nap()
    with subprocess.Popen(
        [sys.executable, "-c", STARTING, nap],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
    ) as starting:
        assert starting.stdout is not None
        for _ in starting.stdout:
            starting.send_signal(signal.SIGINT)
    assert starting.returncode == 0
    wait_until(lambda: not alive(f"sleep {nap}"))


# --- a repository that is only looked at ------------------------------------------------------------------------------


def test_a_change_in_the_second_of_the_last_commit_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """git tells such files by the time of its index; a copy of the index that is younger would hide them."""
    alone(monkeypatch, tmp_path / "home")
    repository = make_repository(tmp_path / "project")
    app, index = repository.worktree / "app.py", repository.git_dir / "index"
    git(repository.worktree, "config", "core.trustctime", "false")
    os.utime(app, (10**9, 10**9))
    git(repository.worktree, "add", "--refresh", "app.py")
    os.utime(index, (10**9, 10**9))
    app.write_text("two\n")
    os.utime(app, (10**9, 10**9))
    untouched = UntouchedRepository.of(repository, tmp_path / "objects")
    assert untouched.blob(f"{untouched.worktree_tree()}:app.py") == b"two\n"
