"""Where runs are: names, claims, leases, private checkouts, atomic files."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from runs.real import alone, begin, git, make_repository, tree_with

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.checkout import PrivateCheckout, remove_tree
from pipeline.run.lease import FileLease
from pipeline.run.run_ref import keep
from pipeline.run.runs_of_repository import find_run, next_name
from pipeline.run.store import (
    claim_on,
    claim_ref,
    publish_ref,
    release_claim,
    run_names,
    run_ref,
    state_of_run,
    take_claim,
    workflow_folder,
    worktree_key,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "project")


def holder_of(repository: Repository, issue: str) -> str | None:
    claim = claim_on(repository, issue)
    return None if claim is None else claim.run


def python(code: str, *argv: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, argv)],
        cwd=Path.cwd(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate()


# --- names -----------------------------------------------------------------------------------------------------------


def test_the_workflow_folder_hides_itself_from_git(repository: Repository) -> None:
    workflow_folder(repository)
    workflow_folder(repository)
    assert repository.status() == ()
    assert (repository.worktree / ".workflow/.gitignore").read_text() == "*\n"


def test_attempts_are_numbered_and_sorted_as_numbers(repository: Repository) -> None:
    for attempt in range(1, 12):
        name = next_name(repository, "GAL-3")
        assert name == ("run-GAL-3" if attempt == 1 else f"run-GAL-3@{attempt}")
        begin(repository, name)
    assert run_names(repository)[-3:] == ["run-GAL-3@9", "run-GAL-3@10", "run-GAL-3@11"]


def test_a_folder_without_run_json_is_no_run_and_its_name_is_free(repository: Repository) -> None:
    (workflow_folder(repository) / "run-GAL-3").mkdir()
    assert run_names(repository) == []
    assert next_name(repository, "GAL-3") == "run-GAL-3"


def test_an_exact_name_beats_every_prefix_and_an_issue_stands_for_its_newest_run(repository: Repository) -> None:
    for name in ("run-GAL-3", "run-GAL-3@2", "run-GAL-39", "run-run-GAL-3"):
        begin(repository, name)
    found = {
        asked: find_run(repository, asked).name
        for asked in ("run-GAL-3", "GAL-3", "GAL-3@2", "run-GAL-3@2", "GAL-39", "run-run")
    }
    assert found == {
        "run-GAL-3": "run-GAL-3",
        "GAL-3": "run-GAL-3@2",
        "GAL-3@2": "run-GAL-3@2",
        "run-GAL-3@2": "run-GAL-3@2",
        "GAL-39": "run-GAL-39",
        "run-run": "run-run-GAL-3",
    }


def test_a_prefix_must_be_unique_and_the_error_names_the_runs(repository: Repository) -> None:
    for name in ("run-GAL-3", "run-GAL-39"):
        begin(repository, name)
    with pytest.raises(UserError, match="fits more than one run") as refused:
        find_run(repository, "GAL")
    assert refused.value.details == {"runs": ["run-GAL-3", "run-GAL-39"]}
    for name in ("../project", ""):
        with pytest.raises(UserError, match="is not a run of this repository"):
            find_run(repository, name)


def test_refs_and_state_folders_of_two_worktrees_and_attempts_differ(repository: Repository, tmp_path: Path) -> None:
    repository.add_worktree(tmp_path / "linked", "other", "main")
    linked = Repository.find(tmp_path / "linked")
    places = [
        (run_ref(repo, name), publish_ref(repo, name), state_of_run(tmp_path, repo, name))
        for repo in (repository, linked)
        for name in ("run-X", "run-X@2")
    ]
    for kind in zip(*places, strict=True):
        assert len(set(kind)) == 4
    for ref, publish, _ in places:
        git(repository.worktree, "check-ref-format", ref)
        git(repository.worktree, "check-ref-format", publish)


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_is_seen_from_every_worktree_and_given_back_by_its_holder_only(
    repository: Repository, tmp_path: Path
) -> None:
    repository.add_worktree(tmp_path / "linked", "other", "main")
    linked = Repository.find(tmp_path / "linked")
    assert take_claim(repository, "GAL-39", "run-GAL-39") is None
    assert take_claim(repository, "GAL-39", "run-GAL-39") is None
    holder = f"{worktree_key(repository)}/run-GAL-39"
    assert take_claim(linked, "GAL-39", "run-GAL-39") == holder
    assert take_claim(repository, "GAL-39", "run-GAL-39@2") == holder
    release_claim(linked, "GAL-39", "run-GAL-39")
    assert holder_of(linked, "GAL-39") == holder
    release_claim(repository, "GAL-39", "run-GAL-39")
    assert holder_of(repository, "GAL-39") is None
    assert take_claim(linked, "GAL-39", "run-GAL-39") is None


def test_a_claim_that_cannot_be_written_is_not_taken_for_granted(repository: Repository) -> None:
    folder = (repository.common_dir / claim_ref("GAL-39")).parent
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    with pytest.raises(UserError) as refused:
        take_claim(repository, "GAL-39", "run-GAL-39")
    assert refused.value.reason is Reason.DISK


def test_a_claim_that_cannot_be_given_back_is_told(repository: Repository) -> None:
    assert take_claim(repository, "GAL-39", "run-GAL-39") is None
    lock = repository.common_dir / "packed-refs.lock"  # a git that is at work on all refs
    lock.touch()
    with pytest.raises(UserError, match="The claim on GAL-39 cannot be given back"):
        release_claim(repository, "GAL-39", "run-GAL-39")
    lock.unlink()
    release_claim(repository, "GAL-39", "run-GAL-39")
    assert holder_of(repository, "GAL-39") is None


def test_the_ref_of_a_run_moves_from_where_it_is_and_what_does_not_move_is_told(repository: Repository) -> None:
    run = begin(repository)
    ref = run_ref(repository, run.info.run_id)
    git(repository.worktree, "update-ref", ref, "HEAD")
    keep(repository, run)
    assert repository.resolve(f"{ref}^{{tree}}") == repository.refs(ref)[ref]
    git(repository.worktree, "update-ref", "-d", ref)
    git(repository.worktree, "update-ref", f"{ref}/below", "HEAD")
    with pytest.raises(UserError, match=f"The ref {ref} keeps what the run has made"):
        keep(repository, run)


_CLAIM = """
import sys
from pathlib import Path
from pipeline.repo import Repository
from pipeline.run.store import take_claim
repository = Repository.find(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
print(take_claim(repository, "GAL-39", sys.argv[2]), flush=True)
"""


def test_of_processes_that_claim_at_once_exactly_one_wins(repository: Repository) -> None:
    racers = [python(_CLAIM, repository.worktree, name) for name in ("run-GAL-39", "run-GAL-39@2", "run-GAL-39@3")]
    assert [told(racer) for racer in racers] == ["ready"] * 3
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    answers = [told(racer) for racer in racers]
    for racer in racers:
        racer.wait()
        assert racer.stdout is not None
        racer.stdout.close()
    assert answers.count("None") == 1
    assert set(answers) - {"None"} == {holder_of(repository, "GAL-39")}


# --- leases ----------------------------------------------------------------------------------------------------------


_WATCH = """
import sys
from pathlib import Path
from pipeline.run.lease import FileLease
print("watching", flush=True)
while True:
    FileLease.is_held(Path(sys.argv[1]))
"""


def test_a_reader_that_asks_who_drives_never_keeps_a_driver_out(repository: Repository) -> None:
    run = begin(repository)
    FileLease.take(run.folder).release()
    watcher = python(_WATCH, run.folder)
    assert told(watcher) == "watching"
    for _ in range(300):
        FileLease.take(run.folder).release()
    watcher.kill()
    end(watcher)


def test_a_child_of_the_driver_does_not_keep_the_lease(repository: Repository) -> None:
    run = begin(repository)
    lease = FileLease.take(run.folder)
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    lease.release()
    assert not FileLease.is_held(run.folder)
    child.kill()
    child.wait()


# --- files -----------------------------------------------------------------------------------------------------------


_AS_NOBODY = """
import os, sys, tempfile
from pathlib import Path
from pipeline.errors import UserError
from pipeline.run.checkout import remove_tree
from pipeline.run.files import write_atomic
folder = Path(tempfile.mkdtemp())
if os.geteuid() == 0:
    os.chown(folder, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
"""


def as_nobody(code: str) -> str:
    """Run code as a user whom permissions bind, also where the tests run as root."""
    argv = [sys.executable, "-c", _AS_NOBODY + code]
    return subprocess.run(argv, capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout.strip()


def test_a_place_that_cannot_be_written_is_the_users_to_mend() -> None:
    code = """
folder.chmod(0o500)
try:
    write_atomic(folder / "plan.md", "x")
except UserError as error:
    print(error.reason.value, error.message)
folder.rmdir()
"""
    assert as_nobody(code).startswith("disk Cannot write /")


# --- checkouts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(repository: Repository, tmp_path: Path) -> PrivateCheckout:
    return PrivateCheckout(repository, tmp_path / "state")


@pytest.mark.broad
def test_a_checkout_is_opened_again_after_a_kill_that_left_its_lock(
    repository: Repository, checkout: PrivateCheckout
) -> None:
    start = repository.tree_of("HEAD")
    checkout.open(start)
    (checkout.root / "index.lock").touch()
    (checkout.tree / "app.py").write_text("half")
    checkout.open(tree_with(repository, start, {"more.py": "m\n"}))
    assert (checkout.tree / "app.py").read_text() == "one\n"
    assert (checkout.tree / "more.py").read_text() == "m\n"
    assert git(repository.worktree, "worktree", "list").count("\n") == 0
    assert repository.status() == ()


def test_views_get_new_folders_even_when_old_ones_are_left(checkout: PrivateCheckout) -> None:
    first = checkout.new_folder("view")
    again = PrivateCheckout(checkout.repository, checkout.root).new_folder("view")
    assert first != again
    assert again.is_dir()
    checkout.close()
    checkout.close()
    assert not checkout.root.exists()


def test_submodules_that_the_user_has_are_filled_and_others_stay_empty(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library", {"lib.py": "LIB = 1\n"})
    outer = make_repository(tmp_path / "outer")
    allow = ("-c", "protocol.file.allow=always")
    for name in ("have", "lack"):
        git(outer.worktree, *allow, "submodule", "add", "-q", str(library.worktree), f"vendor/{name}")
    git(outer.worktree, "commit", "-q", "-m", "vendor")
    git(outer.worktree, "submodule", "deinit", "-q", "-f", "vendor/lack")
    repository = Repository.find(outer.worktree)
    checkout = PrivateCheckout(repository, tmp_path / "state")
    folder = checkout.new_folder("view")
    checkout.fill(repository.tree_of("HEAD"), folder)
    assert (folder / "vendor/have/lib.py").read_text() == "LIB = 1\n"
    assert list((folder / "vendor/lack").iterdir()) == []
    assert repository.status() == ()
    inner = Repository.find(outer.worktree / "vendor/have")
    assert inner.worktree == outer.worktree / "vendor/have"
    assert inner.status() == ()


def test_removing_a_tree_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    doomed = tmp_path / "doomed"
    doomed.mkdir()
    (doomed / "link").symlink_to(outside)
    (doomed / os.fsdecode(b"no-text-\xff")).touch()
    remove_tree(doomed)
    remove_tree(doomed)
    assert not doomed.exists()
    assert (outside / "kept").exists()


def test_removing_a_tree_works_where_an_agent_took_the_permissions_away() -> None:
    code = """
view = folder / "view"
(view / "a" / "b").mkdir(parents=True)
(view / "a" / "b" / "file").touch()
for part in (view / "a" / "b", view / "a", view):
    part.chmod(0)
remove_tree(view)
print(view.exists())
folder.rmdir()
"""
    assert as_nobody(code) == "False"


# --- one process drives a run; any other is told which one, how to watch it and how to stop it ------------------------

DRIVER = """
import sys
from pathlib import Path
from pipeline.run.lease import FileLease
lease = FileLease.take(Path(sys.argv[1]))
print("driving", flush=True)
sys.stdin.readline()
"""


def test_who_drives_is_named_and_can_be_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "run-GAL-1"
    folder.mkdir()
    (folder / "lock").write_text("12345678901234567890")  # of a driver that was, with a longer number
    argv = [sys.executable, "-c", DRIVER, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "driving\n"
        assert FileLease.is_held(folder)
        with pytest.raises(UserError, match=f"Process {driver.pid} is driving run-GAL-1") as caught:
            FileLease.take(folder)
        assert caught.value.reason is Reason.LOCKED
        assert caught.value.actions == ("redfirst show run-GAL-1 --log --follow", "redfirst stop run-GAL-1")
        driver.kill()
    assert not FileLease.is_held(folder)
    lease = FileLease.take(folder)
    lease.release()
    lease.release()


def test_what_is_no_number_of_a_process_is_not_repeated(tmp_path: Path) -> None:
    held = FileLease.take(tmp_path)
    (tmp_path / "lock").write_text("$(rm -rf /)")
    with pytest.raises(UserError, match="Another process is driving") as caught:
        FileLease.take(tmp_path)
    assert "$(" not in caught.value.message
    held.release()


def test_who_only_asks_whether_a_run_is_driven_keeps_no_driver_away(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)  # as `is_held` does, on a machine that does not come to run it
        threading.Timer(0.5, reader.close).start()
        FileLease.take(tmp_path).release()
