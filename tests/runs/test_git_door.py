"""`pipeline.repo`: the only door to git, against real repositories with the habits that users have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs.real import alone, git, make_repository, tree_with

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import Entry, GitError, Repository, Signature, SigningError, TooLargeError, TreeChange
from pipeline.repo.settings import paths_git_uses
from pipeline.search_path import clear_git

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

WHO = Signature("Ada", "ada@example.org", "1763640000 +0000")
ODD = (
    'quo"te.txt',
    "new\nline.txt",
    "tab\there",
    "ümläut/naïve.py",
    "back\\slash",
    " lead and trail ",
    "*glob[1]?",
    "-dash",
)
BYTES = os.fsdecode(b"latin-\xe9.txt")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "project", {"app.py": "one\n", "pkg/mod.py": "x = 1\n", "notes.txt": "n\n"})


def start_of(repository: Repository) -> str:
    return repository.tree_of("HEAD")


def commit_of(repository: Repository, tree: str) -> str:
    return repository.commit_tree(tree, (repository.resolve("HEAD") or "",), "work\n", WHO)


# --- finding -------------------------------------------------------------------------------------------------------


def test_a_subfolder_finds_the_top_of_its_worktree(repository: Repository) -> None:
    found = Repository.find(repository.worktree / "pkg")
    assert found.worktree == repository.worktree
    assert found.git_dir == found.common_dir == repository.worktree / ".git"
    assert found.main_checkout == repository.worktree


def test_a_linked_worktree_shares_the_common_dir(repository: Repository, tmp_path: Path) -> None:
    repository.add_worktree(tmp_path / "linked", "other", "main")
    linked = Repository.find(tmp_path / "linked")
    assert linked.worktree == tmp_path / "linked"
    assert linked.common_dir == repository.common_dir
    assert linked.git_dir != linked.common_dir
    assert linked.main_checkout == repository.worktree
    assert linked.branch() == "other"


def test_a_worktree_of_a_bare_repository_is_no_bare_repository(repository: Repository, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository.worktree), "store.git")
    git(tmp_path / "store.git", "worktree", "add", "-q", "../linked", "work")
    linked = Repository.find(tmp_path / "linked")
    assert linked.worktree == tmp_path / "linked"
    assert linked.common_dir == tmp_path / "store.git"
    assert linked.branch() == "work"
    with pytest.raises(UserError) as refused:
        Repository.find(tmp_path / "store.git")
    assert refused.value.reason is Reason.BARE_REPOSITORY


def test_outside_of_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not inside a git repository"):
        Repository.find(tmp_path)


def test_a_repository_that_git_refuses_to_work_in_is_refused_with_its_words(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project").worktree
    (folder / ".git/config").write_text("[core\n")
    with pytest.raises(UserError) as refused:
        Repository.find(folder)
    assert refused.value.reason is Reason.USAGE


def test_without_git_on_path_the_user_is_told(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from pathlib import Path\nfrom pipeline.repo import Repository\nfrom pipeline.errors import UserError\n"
        f"try: Repository.find(Path({str(repository.worktree)!r}))\nexcept UserError as error: print(error.message)\n"
    )
    monkeypatch.setenv("PATH", "/nowhere")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd(), check=True)
    assert done.stdout == "git is not installed, or not on PATH.\n"


def a_git(folder: Path, script: str) -> None:
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)


@pytest.mark.parametrize("code", [0, 3])
def test_a_git_with_more_warnings_than_a_pipe_holds_is_read_to_its_end(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    a_git(tmp_path / "bin", f'yes "warning: too loud" | head -n 20000 >&2; printf "app.py\\0"; exit {code}')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    if code:
        with pytest.raises(GitError, match="warning: too loud"):
            repository.names("HEAD", "pkg")
    else:
        assert repository.names("HEAD", "pkg") == ("app.py",)


def test_a_git_that_says_too_much_is_ended(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_git(tmp_path / "bin", f"echo $$ > {tmp_path}/pid; exec cat /dev/zero")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with pytest.raises(TooLargeError, match=r"tree HEAD.*4 MiB"):
        repository._read("ls-tree", what="The tree HEAD", limit=1 << 22)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"]
)
def test_an_inherited_variable_of_a_hook_leads_nowhere_else(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    other = make_repository(tmp_path / "other", {"stranger.py": "?\n"})
    value = {"GIT_INDEX_FILE": ".git/index", "GIT_WORK_TREE": ".", "GIT_OBJECT_DIRECTORY": ".git/objects"}
    monkeypatch.setenv(name, str(other.worktree / value.get(name, ".git")))
    clear_git(os.environ)  # what the entry does
    assert name not in os.environ
    found = Repository.find(repository.worktree)
    assert (found.worktree, found.git_dir, found.common_dir) == (
        repository.worktree,
        repository.worktree / ".git",
        repository.worktree / ".git",
    )
    assert [entry.path for entry in found.entries(start_of(found))] == ["app.py", "notes.txt", "pkg/mod.py"]
    tree = tree_with(found, start_of(found), {"new.py": "2\n"})
    assert found.move_worktree(start_of(found), tree) is None
    assert (repository.worktree / "new.py").read_text() == "2\n"
    assert other.status() == ()
    assert other.resolve(f"{tree}^{{tree}}") is None


def test_who_commits_may_be_said_by_the_environment(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "grace@example.org")
    assert repository.identity() == ("Grace", "grace@example.org")


def test_nobody_to_commit_as_is_refused(repository: Repository) -> None:
    git(repository.worktree, "config", "--remove-section", "user")
    git(repository.worktree, "config", "user.useConfigOnly", "true")
    with pytest.raises(UserError, match="git does not know who commits") as refused:
        repository.identity()
    assert refused.value.actions[0].startswith("git config user.name")


# --- reading -------------------------------------------------------------------------------------------------------


def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    git(repository.worktree, "switch", "-q", "--detach")
    assert repository.branch() is None


def test_a_revision_that_looks_like_an_option_is_no_revision(repository: Repository) -> None:
    assert repository.resolve("--help") is None
    assert repository.resolve("no-such-branch") is None


def test_status_names_each_path_once_even_when_it_was_renamed(repository: Repository) -> None:
    git(repository.worktree, "mv", "app.py", "renamed.py")
    assert repository.status() == ("D  app.py", "A  renamed.py")


def test_status_leaves_out_what_is_exempt_and_nothing_that_looks_alike(repository: Repository) -> None:
    (repository.worktree / "notes.txt").write_text("changed\n")
    (repository.worktree / "n[o]tes.txt").write_text("new\n")
    assert repository.status("notes.txt") == ("?? n[o]tes.txt",)


def test_many_blobs_come_through_one_process(repository: Repository) -> None:
    contents = [b"", b"one\n", b"\0binary\n\n", b"no newline"]
    oids = [repository.write_blob(content) for content in contents]
    assert repository.blobs([*oids, oids[1]]) == dict(zip(oids, contents, strict=True))
    assert repository.blobs([]) == {}


def test_refs_are_found_below_a_prefix_only(repository: Repository) -> None:
    head = repository.resolve("HEAD") or ""
    assert repository.set_ref("refs/redfirst/claims/A", head)
    assert repository.set_ref("refs/redfirst/claims-of-others/B", head)
    assert repository.refs("refs/redfirst/claims/") == {"refs/redfirst/claims/A": head}


def test_a_patch_shows_no_colour_and_runs_no_program_of_the_configuration(repository: Repository) -> None:
    git(repository.worktree, "config", "color.ui", "always")
    git(repository.worktree, "config", "diff.external", "/bin/false")
    new = tree_with(repository, start_of(repository), {"app.py": "two\n"})
    patch = repository.patch(start_of(repository), new)
    assert "\x1b" not in patch
    assert "-one\n+two\n" in patch


def test_numstat_counts_lines_and_says_nothing_of_binary_files(repository: Repository) -> None:
    new = tree_with(repository, start_of(repository), {"app.py": "one\ntwo\n", "odd\tname": "1\n", "b.bin": "\0\1"})
    found = {stat.path: (stat.added, stat.deleted) for stat in repository.numstat(start_of(repository), new)}
    assert found == {"app.py": (1, 0), "odd\tname": (1, 0), "b.bin": (None, None)}


# --- objects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ODD, BYTES])
def test_an_odd_name_survives_the_way_through_tree_entries_and_files(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    tree = tree_with(repository, start_of(repository), {name: "odd\n"})
    assert name in {entry.path for entry in repository.entries(tree)}
    assert [entry.path for entry in repository.entries(tree, name)] == [name]
    (change,) = repository.diff(start_of(repository), tree)
    assert change.path == name
    assert change.entry is not None
    assert repository.build_tree(start_of(repository), [change]) == tree
    folder = tmp_path / "out"
    folder.mkdir()
    repository.materialise(tree, folder, tmp_path / "index")
    assert (folder / name).read_text() == "odd\n"


_PART = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda text: text not in {".", ".."} and ".git" not in text.casefold() and "git~" not in text.casefold()
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.mktemp("shared")
        alone(patch, base / "home")
        yield make_repository(base / "project")


@settings(max_examples=25, deadline=None)
@given(names=st.sets(_PART, min_size=1, max_size=4))
def test_whatever_git_takes_as_a_name_round_trips(shared: Repository, names: set[str]) -> None:
    start = start_of(shared)
    blob = shared.write_blob(b"x")
    changes = [TreeChange(f"d/{name}", Entry(f"d/{name}", "100644", blob)) for name in sorted(names)]
    try:
        tree = shared.build_tree(start, changes)
    except GitError:
        return  # git itself refuses some names that are .git elsewhere
    assert {change.path for change in shared.diff(start, tree)} == {change.path for change in changes}
    assert shared.build_tree(tree, [TreeChange(change.path, None) for change in changes]) == start


def test_a_file_gives_way_to_a_folder_and_a_folder_to_a_file(repository: Repository) -> None:
    start = start_of(repository)
    folder = tree_with(repository, start, {"app.py/inner.py": "1\n", "app.py": None})
    assert "app.py/inner.py" in {entry.path for entry in repository.entries(folder)}
    back = tree_with(repository, folder, {"app.py": "one\n", "app.py/inner.py": None})
    assert back == start


def test_no_change_is_the_same_tree(repository: Repository) -> None:
    start = start_of(repository)
    assert repository.build_tree(start, []) == start


def test_modes_and_gitlinks_are_kept(repository: Repository) -> None:
    head = repository.resolve("HEAD") or ""
    blob = repository.write_blob(b"#!/bin/sh\n")
    changes = [
        TreeChange("run.sh", Entry("run.sh", "100755", blob)),
        TreeChange("link", Entry("link", "120000", repository.write_blob(b"app.py"))),
        TreeChange("vendor/lib", Entry("vendor/lib", "160000", head)),
    ]
    tree = tree_with(repository, repository.build_tree(start_of(repository), changes), {"other.py": "1\n"})
    modes = {entry.path: entry.mode for entry in repository.entries(tree)}
    assert (modes["run.sh"], modes["link"], modes["vendor/lib"]) == ("100755", "120000", "160000")


def test_building_trees_leaves_the_users_index_and_files_alone(repository: Repository) -> None:
    (repository.worktree / "staged.py").write_text("s\n")
    git(repository.worktree, "add", "staged.py")
    tree_with(repository, start_of(repository), {"app.py": None})
    assert repository.status() == ("A  staged.py",)


def test_commits_are_reproducible(repository: Repository) -> None:
    tree = tree_with(repository, start_of(repository), {"app.py": "two\n"})
    first, second = commit_of(repository, tree), commit_of(repository, tree)
    assert first == second
    shown = git(repository.worktree, "show", "-s", "--format=%an <%ae> %at %cn %ct %P %B", first)
    head = repository.resolve("HEAD")
    assert shown == f"Ada <ada@example.org> 1763640000 Ada 1763640000 {head} work"


def test_a_commit_is_in_utf8_whatever_the_user_configured(repository: Repository) -> None:
    git(repository.worktree, "config", "i18n.commitEncoding", "latin1")
    commit = repository.commit_tree(start_of(repository), (), "fix: größer\n", WHO)
    assert "encoding" not in git(repository.worktree, "cat-file", "commit", commit)


def test_a_signature_that_fails_is_told_as_such(repository: Repository) -> None:
    git(repository.worktree, "config", "gpg.program", "/bin/false")
    git(repository.worktree, "config", "commit.gpgSign", "true")
    assert repository.signing_key() == ""
    with pytest.raises(SigningError):
        repository.commit_tree(start_of(repository), (), "x\n", WHO, sign=repository.signing_key())
    assert repository.commit_tree(start_of(repository), (), "x\n", WHO)  # asked for none, gets none


def test_a_broken_commit_is_no_signing_error(repository: Repository) -> None:
    with pytest.raises(GitError):
        repository.commit_tree("0" * 40, (), "x\n", WHO)


def test_a_ref_moves_only_from_where_it_is(repository: Repository) -> None:
    start, ref = repository.resolve("HEAD") or "", "refs/redfirst/runs/x"
    new = commit_of(repository, start_of(repository))
    assert repository.set_ref(ref, start, "0" * 40)
    assert not repository.set_ref(ref, new, "0" * 40)
    assert not repository.set_ref(ref, start, new)
    assert repository.set_ref(ref, new, start)
    assert repository.resolve(ref) == new
    repository.delete_ref(ref)
    repository.delete_ref(ref)
    assert repository.resolve(ref) is None


# --- checking out ----------------------------------------------------------------------------------------------------


def materialised(repository: Repository, tree: str, tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir(exist_ok=True)
    repository.materialise(tree, folder, tmp_path / "private-index")
    return folder


def test_line_endings_follow_the_attributes_of_the_tree(repository: Repository, tmp_path: Path) -> None:
    files: dict[str, str | None] = {".gitattributes": "*.bat text eol=crlf\n", "run.bat": "a\nb\n", "app.sh": "a\nb\n"}
    folder = materialised(repository, tree_with(repository, start_of(repository), files), tmp_path)
    assert (folder / "run.bat").read_bytes() == b"a\r\nb\r\n"
    assert (folder / "app.sh").read_bytes() == b"a\nb\n"
    oid = repository.write_blob(b"c\r\nd\r\n", "run.bat", folder)
    assert repository.blob(oid) == b"c\nd\n"
    assert repository.blob(repository.write_blob(b"c\r\nd\r\n")) == b"c\r\nd\r\n"


def test_a_filter_like_lfs_works_both_ways(repository: Repository, tmp_path: Path) -> None:
    git(repository.worktree, "config", "filter.shout.clean", "tr a-z A-Z")
    git(repository.worktree, "config", "filter.shout.smudge", "tr A-Z a-z")
    git(repository.worktree, "config", "filter.shout.required", "true")
    files: dict[str, str | None] = {".gitattributes": "*.big filter=shout\n", "data.big": "POINTER\n"}
    folder = materialised(repository, tree_with(repository, start_of(repository), files), tmp_path)
    assert (folder / "data.big").read_text() == "pointer\n"
    assert repository.blob(repository.write_blob(b"pointer\n", "data.big", folder)) == b"POINTER\n"
    assert repository.filters(folder, ["data.big", "app.py", "new\nline.big"]) == {
        "data.big": "shout",
        "new\nline.big": "shout",
    }


def test_a_checkout_is_updated_and_what_it_does_not_know_stays(repository: Repository, tmp_path: Path) -> None:
    start = start_of(repository)
    folder = materialised(repository, start, tmp_path)
    (folder / "unknown.txt").write_text("mine\n")
    (folder / "app.py").write_text("edited\n")
    materialised(repository, tree_with(repository, start, {"notes.txt": None, "b.py": "b\n"}), tmp_path)
    assert sorted(p.name for p in folder.iterdir()) == ["app.py", "b.py", "pkg", "unknown.txt"]
    assert (folder / "app.py").read_text() == "one\n"


def test_the_users_sparse_checkout_is_not_ours(repository: Repository, tmp_path: Path) -> None:
    git(repository.worktree, "sparse-checkout", "set", "--cone", "elsewhere")
    assert not (repository.worktree / "pkg").exists()
    folder = materialised(repository, start_of(repository), tmp_path)
    assert (folder / "pkg/mod.py").read_text() == "x = 1\n"
    tree = tree_with(repository, start_of(repository), {"pkg/mod.py": "x = 2\n", "app.py": "two\n"})
    assert {change.path for change in repository.diff(start_of(repository), tree)} == {"pkg/mod.py", "app.py"}
    assert repository.move_worktree(start_of(repository), tree) is None
    assert (repository.worktree / "app.py").read_text() == "two\n"
    assert not (repository.worktree / "pkg").exists()
    assert repository.set_ref("refs/heads/work", commit_of(repository, tree))
    assert repository.status() == ()


def test_a_split_index_of_the_user_leaves_nothing_behind(repository: Repository) -> None:
    git(repository.worktree, "config", "core.splitIndex", "true")
    tree_with(repository, start_of(repository), {"app.py": "two\n"})
    assert [path.name for path in repository.git_dir.glob("sharedindex.*")] == []


# --- the user's worktree ---------------------------------------------------------------------------------------------


def test_the_worktree_moves_and_unrelated_edits_stay(repository: Repository) -> None:
    start = start_of(repository)
    (repository.worktree / "notes.txt").write_text("my edit\n")
    (repository.worktree / "mine.txt").write_text("untracked\n")
    tree = tree_with(repository, start, {"app.py": "two\n", "pkg/mod.py": None, "new/file.py": "n\n"})
    repository.refresh_index()
    assert repository.move_worktree(start, tree) is None
    assert (repository.worktree / "app.py").read_text() == "two\n"
    assert (repository.worktree / "new/file.py").read_text() == "n\n"
    assert not (repository.worktree / "pkg").exists()
    assert (repository.worktree / "notes.txt").read_text() == "my edit\n"
    assert repository.move_worktree(tree, start) is None
    assert repository.status() == (" M notes.txt", "?? mine.txt")


def test_a_touched_file_that_the_user_edited_is_refused_and_nothing_changes(repository: Repository) -> None:
    start = start_of(repository)
    (repository.worktree / "app.py").write_text("my edit\n")
    tree = tree_with(repository, start, {"app.py": "two\n", "notes.txt": "other\n", "new.py": "n\n"})
    repository.refresh_index()
    refused = repository.move_worktree(start, tree)
    assert refused is not None
    assert "app.py" in refused
    assert (repository.worktree / "app.py").read_text() == "my edit\n"
    assert (repository.worktree / "notes.txt").read_text() == "n\n"
    assert not (repository.worktree / "new.py").exists()
    assert repository.status() == (" M app.py",)


def test_a_staged_edit_of_a_touched_file_is_refused(repository: Repository) -> None:
    start = start_of(repository)
    (repository.worktree / "app.py").write_text("my edit\n")
    git(repository.worktree, "add", "app.py")
    assert repository.move_worktree(start, tree_with(repository, start, {"app.py": "two\n"})) is not None
    assert (repository.worktree / "app.py").read_text() == "my edit\n"


def test_an_untracked_file_in_the_way_is_refused(repository: Repository) -> None:
    start = start_of(repository)
    (repository.worktree / "new.py").write_text("mine\n")
    assert repository.move_worktree(start, tree_with(repository, start, {"new.py": "n\n"})) is not None
    assert (repository.worktree / "new.py").read_text() == "mine\n"


def test_an_ignored_file_in_the_way_is_refused_too(repository: Repository) -> None:
    (repository.git_dir / "info/exclude").write_text("*.local\n")
    start = start_of(repository)
    (repository.worktree / "settings.local").write_text("my secret\n")
    tree = tree_with(repository, start, {"settings.local": "theirs\n", "app.py": "two\n"})
    refused = repository.move_worktree(start, tree)
    assert (repository.worktree / "settings.local").read_text() == "my secret\n"
    assert refused is not None
    assert "settings.local" in refused
    assert (repository.worktree / "app.py").read_text() == "one\n"


def test_a_file_that_was_only_touched_counts_as_unchanged(repository: Repository) -> None:
    start = start_of(repository)
    os.utime(repository.worktree / "app.py", (1, 1))
    repository.refresh_index()
    assert repository.move_worktree(start, tree_with(repository, start, {"app.py": "two\n"})) is None


def test_hooks_are_not_run(repository: Repository, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-$(basename $0)\n")
        (hooks / name).chmod(0o755)
    git(repository.worktree, "config", "core.hooksPath", str(hooks))
    tree = tree_with(repository, start_of(repository), {"app.py": "two\n"})
    materialised(repository, tree, tmp_path)
    assert repository.move_worktree(start_of(repository), tree) is None
    assert repository.set_ref("refs/redfirst/runs/x", commit_of(repository, tree))
    assert list(tmp_path.glob("ran-*")) == []


# --- locks that a killed git left ------------------------------------------------------------------------------------

OURS = "refs/redfirst/claims/GAL-1"


def now() -> float:
    """Return the time as file systems see it: coarser than the clock."""
    return time.time() - 1


@contextlib.contextmanager
def git_in_its_editor(repository: Repository, tmp_path: Path) -> Generator[None]:
    """Hold the user's index as `git commit --all` does while a person writes the message."""
    up, end = tmp_path / "up", tmp_path / "end"
    os.mkfifo(up)
    os.mkfifo(end)
    (repository.worktree / "app.py").write_text("theirs\n")
    editor = f"sh -c 'echo up > {up}; cat {end} > /dev/null; false'"
    with subprocess.Popen(
        ["git", "-c", f"core.editor={editor}", "commit", "--quiet", "--all"], cwd=repository.worktree
    ) as commit:
        assert up.read_text() == "up\n"
        assert (repository.git_dir / "index.lock").exists()
        try:
            yield
        finally:
            end.write_text("")
            assert commit.wait() == 1


def test_a_lock_of_ours_that_a_killed_git_left_is_removed(repository: Repository) -> None:
    head = repository.resolve("HEAD") or ""
    assert repository.set_ref(OURS, head)
    lock = repository.git_dir / f"{OURS}.lock"
    lock.write_text("")
    assert repository.set_ref(OURS, head, head)
    lock.write_text("")
    repository.delete_ref(OURS)
    assert repository.resolve(OURS) is None
    assert not lock.exists()


def test_a_git_that_was_killed_while_it_wrote_the_users_files_is_recognised(repository: Repository) -> None:
    began = now()
    git(repository.worktree, "config", "filter.killer.smudge", "kill -9 $PPID")
    git(repository.worktree, "config", "filter.killer.required", "true")
    start = start_of(repository)
    tree = tree_with(repository, start, {"new.py": "n\n", ".gitattributes": "new.py filter=killer\n"})
    assert repository.move_worktree(start, tree) is not None
    assert (repository.git_dir / "index.lock").exists(), "git was killed with the lock in its hand"
    assert repository.index_lock(began) is None
    git(repository.worktree, "config", "filter.killer.smudge", "cat")
    repository.take_back_half(start, tree, began)
    assert repository.move_worktree(start, tree) is None
    assert (repository.worktree / "new.py").read_text() == "n\n"


def test_a_lock_that_is_older_than_our_publication_is_not_ours(repository: Repository) -> None:
    lock = repository.git_dir / "index.lock"
    lock.write_bytes(b"")
    assert repository.index_lock(time.time() + 60) == lock
    assert lock.exists()


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.broad
def test_a_lock_is_never_taken_from_a_git_that_runs(repository: Repository, tmp_path: Path, linked: bool) -> None:
    if linked:
        repository.add_worktree(tmp_path / "linked", "other", "main")
        repository = Repository.find(tmp_path / "linked")
    began = now()
    with git_in_its_editor(repository, tmp_path):
        lock = repository.git_dir / "index.lock"
        assert repository.index_lock(began) == lock
        other = repository.common_dir / f"{OURS}.lock"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"")
        assert not repository.set_ref(OURS, repository.resolve("HEAD") or "")
        assert lock.exists()
        assert other.exists()
    assert repository.index_lock(began) is None


def test_a_git_that_is_at_work_in_another_worktree_keeps_no_index_locked(
    repository: Repository, tmp_path: Path
) -> None:
    repository.add_worktree(tmp_path / "linked", "other", "main")
    linked = Repository.find(tmp_path / "linked")
    began = now()
    with git_in_its_editor(repository, tmp_path):
        (linked.git_dir / "index.lock").write_bytes(b"")
        assert linked.index_lock(began) is None
        assert (repository.git_dir / "index.lock").exists()


def test_gits_that_began_after_a_lock_was_left_did_not_make_it(repository: Repository) -> None:
    head = repository.resolve("HEAD") or ""
    lock = repository.git_dir / f"{OURS}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"")
    over = threading.Event()

    def busy() -> None:
        waits: list[subprocess.Popen[bytes]] = []
        while not over.is_set():  # one begins before another ends
            argv = ["git", "-c", "alias.wait=!read line", "wait"]
            waits.append(subprocess.Popen(argv, cwd=repository.worktree, stdin=subprocess.PIPE))
            if len(waits) > 2:
                waits.pop(0).communicate(b"\n")
        for each in waits:
            each.communicate(b"\n")

    with ThreadPoolExecutor() as pool:
        ran = pool.submit(busy)
        try:
            assert repository.set_ref(OURS, head)
        finally:
            over.set()
        ran.result()
    assert not lock.exists()


def test_where_nothing_is_locked_no_worktree_is_looked_at(repository: Repository) -> None:
    (repository.common_dir / "worktrees/odd/gitdir").mkdir(parents=True)  # reading it fails
    repository.free_branch("refs/heads/work", repository.resolve("HEAD") or "", now())


@pytest.mark.broad
def test_a_lock_on_the_branch_is_ours_when_it_holds_our_commit(repository: Repository) -> None:
    began, new = now(), commit_of(repository, start_of(repository))
    branch, head = repository.git_dir / "refs/heads/work.lock", repository.git_dir / "HEAD.lock"
    for content in (b"", f"{new}\n".encode()):
        branch.write_bytes(content)
        head.write_bytes(b"")
        repository.free_branch("refs/heads/work", new, began)
        assert (branch.exists(), head.exists()) == (False, False)
    branch.write_text(f"{repository.resolve('HEAD')}\n")
    repository.free_branch("refs/heads/work", new, began)
    assert branch.exists(), "somebody else's commit"


def test_a_lock_that_is_not_ours_is_named_and_is_no_bug(repository: Repository) -> None:
    assert repository.set_ref(OURS, repository.resolve("HEAD") or "")
    git(repository.worktree, "pack-refs", "--all")
    lock = repository.git_dir / "packed-refs.lock"
    lock.write_bytes(b"")
    with pytest.raises(UserError, match=r"packed-refs\.lock") as refused:
        repository.delete_ref(OURS)
    assert refused.value.reason is Reason.LOCKED
    assert lock.exists()
    lock.unlink()
    repository.delete_ref(OURS)


def test_a_modification_time_that_was_set_back_is_seen(repository: Repository, tmp_path: Path) -> None:
    git(repository.worktree, "config", "core.trustctime", "false")
    git(repository.worktree, "config", "core.checkStat", "minimal")
    folder, index = tmp_path / "tree", tmp_path / "index"
    folder.mkdir()
    repository.materialise(start_of(repository), folder, index)
    past = (folder / "app.py").stat().st_mtime_ns - 10**10  # older than the index: git does not compare contents then
    os.utime(folder / "app.py", ns=(past, past))
    repository.materialise(start_of(repository), folder, index)
    (folder / "app.py").write_text("two\n")
    os.utime(folder / "app.py", ns=(past, past))
    repository.materialise(start_of(repository), folder, index)
    assert (folder / "app.py").read_text() == "one\n"
    repository.materialise(start_of(repository), folder, index)
    assert (folder / "app.py").read_text() == "one\n"


# --- what the user's git obeys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hooks", "used"),
    [
        (None, ()),
        (".husky/_", (".husky/_",)),
        ("tools/hooks/", ("tools/hooks",)),
        ("./x/../.githooks", (".githooks",)),
        ("/elsewhere/hooks", ()),
        ("/dev/null", ()),
        ("../outside", ()),
        ("~/hooks", ()),
    ],
)
def test_a_hooks_folder_in_the_tree_is_used_by_git(repository: Repository, hooks: str | None, used: tuple[str]) -> None:
    if hooks is not None:
        git(repository.worktree, "config", "core.hooksPath", hooks)
    assert paths_git_uses(repository) == used


def test_hooks_at_the_top_of_the_tree_are_names_and_not_the_whole_tree(repository: Repository) -> None:
    git(repository.worktree, "config", "core.hooksPath", ".")
    assert "pre-commit" in paths_git_uses(repository)
    assert "." not in paths_git_uses(repository)
    assert "app.py" not in paths_git_uses(repository)


def test_a_hooks_folder_of_the_main_checkout_is_obeyed_in_every_worktree(
    repository: Repository, tmp_path: Path
) -> None:
    git(repository.worktree, "config", "core.hooksPath", str(repository.worktree / ".githooks"))
    repository.add_worktree(tmp_path / "linked", "other", "main")
    assert paths_git_uses(Repository.find(tmp_path / "linked")) == (".githooks",)


def test_a_hooks_folder_that_is_a_link_is_obeyed_under_both_names(repository: Repository) -> None:
    (repository.worktree / "real").mkdir()
    (repository.worktree / "hooks").symlink_to("real")
    git(repository.worktree, "config", "core.hooksPath", "hooks")
    assert paths_git_uses(repository) == ("hooks", "real")


def test_configuration_in_the_tree_that_is_included_is_obeyed_whether_it_is_there_or_not(
    repository: Repository, tmp_path: Path
) -> None:
    top = repository.worktree
    git(top, "config", "include.path", "../.gitconfig")
    git(top, "config", "includeIf.onbranch:none.path", f"{top}/deep/conf")
    (tmp_path / "home" / ".gitconfig").write_text(f"[include]\n\tpath = {top}/shared.conf\n\tpath = ~/own.conf\n")
    assert paths_git_uses(repository) == (".gitconfig", "deep/conf", "shared.conf")
    (top / ".gitconfig").write_text("[include]\n\tpath = more.conf\n")
    assert "more.conf" in paths_git_uses(repository)


def test_our_own_hardening_does_not_hide_where_the_users_hooks_are(repository: Repository) -> None:
    git(repository.worktree, "config", "core.hooksPath", "first")
    git(repository.worktree, "config", "--add", "core.hooksPath", "last")
    assert paths_git_uses(repository) == ("last",)


# --- what strangers put together -----------------------------------------------------------------------------------
def bomb(repository: Repository, levels: int = 9) -> str:
    """Return a tree of a few objects that names 10 to the power of *levels* paths."""
    tree = repository.write_blob(b"x\n")
    kind = "100644 blob"
    for _ in range(levels):
        lines = "".join(f"{kind} {tree}\t{number}\n" for number in range(10))
        tree = git(repository.worktree, "mktree", stdin=lines.encode())
        kind = "040000 tree"
    return tree


def test_a_tree_without_an_end_is_refused_before_anything_is_made_of_it(repository: Repository, tmp_path: Path) -> None:
    tree = bomb(repository)
    folder = tmp_path / "checkout"
    folder.mkdir()
    with pytest.raises(TooLargeError, match=f"The tree {tree} is too large"):
        repository.materialise(tree, folder, tmp_path / "index")
    assert list(folder.iterdir()) == []


def test_the_names_in_a_folder_do_not_depend_on_what_lies_below(repository: Repository) -> None:
    assert repository.names(bomb(repository), "0/1") == tuple(map(str, range(10)))
    assert repository.names(bomb(repository), "none") == ()
    assert repository.names(tree_with(repository, start_of(repository), {"ü/\n*": "x"}), "ü") == ("\n*",)


def test_blobs_that_are_too_large_together_are_refused(repository: Repository) -> None:
    oids = [repository.write_blob(bytes([number]) * 1000) for number in range(10)]
    assert len(repository.blobs(oids, 20_000)) == 10
    with pytest.raises(TooLargeError, match="too large"):
        repository.blobs(oids, 9_000)


@pytest.mark.broad
def test_the_blobs_of_many_thousand_files_come_without_waiting_for_each_other(repository: Repository) -> None:
    oids = repository.write_files((str(number), f"{number}\n".encode() * 20) for number in range(5_000))
    assert len(repository.blobs(oids.values())) == 5_000


def test_threads_that_share_a_door_get_the_answers_to_their_own_questions(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    blobs = [repository.write_blob(bytes([65 + number])) for number in range(6)]

    def answers(blob: str) -> set[str | None]:
        return {repository.resolve(blob) for _ in range(300)}

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(answers, blobs)) == [{blob} for blob in blobs]


def test_names_and_messages_are_read_and_written_as_utf8_whatever_the_user_has_set(repository: Repository) -> None:
    for key in ("commitEncoding", "logOutputEncoding"):
        git(repository.worktree, "config", f"i18n.{key}", "ISO-8859-1")
    who = ("-c", "user.name=J\u00fcrgen", "-c", "user.email=j@example.org")
    message = "Gr\u00fc\u00dfe".encode("latin-1")
    git(repository.worktree, *who, "commit", "--quiet", "--allow-empty", "-F", "-", stdin=message)
    assert repository.message("HEAD") == "Gr\u00fc\u00dfe\n"
    tree = repository.tree_of("HEAD")
    new = repository.commit_tree(
        tree, (), "sch\u00f6n\n", Signature("J\u00fcrgen", "j@example.org", "1767323045 +0000")
    )
    assert repository.author(new).name == "J\u00fcrgen"
    assert b"encoding" not in git(repository.worktree, "cat-file", "commit", new).encode()
