"""What ends a run as an escape, and what a user may do to the repository while an agent works."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs.real import alone, git, make_repository

from pipeline.repo import NO_OBJECT, Repository
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.files import to_json
from pipeline.run.folder import RunFolder, Written
from pipeline.run.store import claim_ref, publish_ref, run_ref, take_claim
from pipeline.sandbox.escapes import Escape, Fingerprint, affects_git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.slow

RUN = "run-GAL-1"
FILES = {"app.py": "one\n", "pkg/mod.py": "x = 1\n", ".githooks/pre-commit": "#!/bin/sh\n", "shared.gitconfig": ""}


class Place:
    """A repository with a submodule, a second worktree and a run that has begun."""

    def __init__(self, folder: Path) -> None:
        self.repository = make_repository(folder / "project", FILES)
        self.root = self.repository.worktree
        self.common = self.repository.common_dir
        inner = make_repository(folder / "inner").worktree
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "lib/inner")
        self.git("commit", "--quiet", "--message", "submodule")
        self.git("worktree", "add", "--quiet", "-b", "elsewhere", str(folder / "elsewhere"))
        self.checkout = PrivateCheckout(self.repository, folder / "state")
        self.checkout.open(self.repository.tree_of("HEAD"))
        head = self.repository.resolve("HEAD") or ""
        assert take_claim(self.repository, "GAL-1", RUN) is None
        assert self.repository.set_ref(run_ref(self.repository, RUN), head)
        self.run_folder = self.root / ".workflow" / RUN
        self.ours = RunFolder(self.run_folder)
        self.record("run.json", "{}\n")
        self.record("journal.jsonl", "1\n2\n")
        self.record("evidence/baseline.json", "{}\n")
        self.record("plan.md", "# Plan\n")

    def record(self, name: str, text: str) -> None:
        path = self.run_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *argv: str) -> str:
        return git(self.root, *argv)

    def write(self, name: str, text: str) -> Path:
        path = self.common / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def fingerprint(self) -> Fingerprint:
        return Fingerprint.take(self.repository, self.ours.written)

    def differs(self, before: Fingerprint) -> Escape | None:
        return before.differs(self.repository, self.checkout)

    def escape_by(self, deed: Callable[[Place], object]) -> Escape | None:
        before = self.fingerprint()
        deed(self)
        return self.differs(before)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def commit(place: Place) -> None:
    (place.root / "app.py").write_text("mine\n")
    place.git("commit", "--quiet", "--all", "--message", "mine")


def collect_garbage(place: Place) -> None:
    place.git("pack-refs", "--all", "--prune")
    place.git("gc", "--quiet", "--prune=now")
    assert not (place.common / run_ref(place.repository, RUN)).exists(), "the ref was packed"


def fetch(place: Place) -> None:
    place.git("remote", "add", "other", str(place.root.parent / "inner"))
    place.git("fetch", "--quiet", "other")


def another_run(place: Place) -> None:
    other = Repository.find(place.root.parent / "elsewhere")
    assert take_claim(other, "GAL-2", "run-GAL-2") is None
    assert other.set_ref(run_ref(other, "run-GAL-2"), other.resolve("HEAD") or "")
    assert other.set_ref(publish_ref(other, RUN), other.resolve("HEAD") or "")


def stash(place: Place) -> None:
    (place.root / "app.py").write_text("mine\n")
    place.git("stash")


def edit_a_tracked_hook(place: Place) -> None:
    (place.root / ".githooks/pre-commit").write_text("#!/bin/sh\necho mine\n")


def leftovers_of_git(place: Place) -> None:
    for name in ("gc.pid", "gc.log", "FETCH_HEAD", "ORIG_HEAD", "MERGE_MSG", "COMMIT_EDITMSG", "info/refs"):
        place.write(name, "x\n")
    place.write("hooks/pre-push.sample", "#!/bin/sh\n")


USERS_OWN: dict[str, Callable[[Place], object]] = {
    "nothing": lambda _: None,
    "an edit": lambda place: (place.root / "app.py").write_text("mine\n"),
    "a new file and the index": lambda place: ((place.root / "new.py").write_text("n\n"), place.git("add", "new.py")),
    "a commit": commit,
    "a branch": lambda place: place.git("switch", "--quiet", "--create", "other"),
    "a tag": lambda place: place.git("tag", "--message", "v1", "v1"),
    "a stash": stash,
    "a fetch": fetch,
    "gc and packed refs": collect_garbage,
    "an upstream": lambda place: place.git("config", "branch.work.merge", "refs/heads/main"),
    "a remote's address": lambda place: place.git("config", "remote.origin.url", "https://example.org/x.git"),
    "a name": lambda place: place.git("config", "user.name", "Grace"),
    "maintenance": lambda place: place.git("config", "maintenance.strategy", "incremental"),
    "a sparse checkout elsewhere": lambda place: git(place.root.parent / "elsewhere", "sparse-checkout", "set", "pkg"),
    "another run": another_run,
    "a worktree": lambda place: place.git("worktree", "add", "--quiet", "--detach", str(place.root.parent / "third")),
    "a worktree gone": lambda place: place.git("worktree", "remove", "--force", str(place.root.parent / "elsewhere")),
    "what git leaves": leftovers_of_git,
    "an edit of the plan": lambda place: place.record("plan.md", "# Mine\n"),
    "the record of a dispatch": lambda place: place.record("dispatches/001/result.json", "{}\n"),
    "a submodule deinitialised": lambda place: place.git("submodule", "deinit", "--force", "lib/inner"),
    "the same configuration rewritten": lambda place: place.write("config", (place.common / "config").read_text()),
    "a comment in the configuration": lambda place: place.write(
        "config", (place.common / "config").read_text() + "# mine\n"
    ),
}


@pytest.mark.parametrize("deed", USERS_OWN)
@pytest.mark.broad(but_first=1)
def test_what_the_user_does_meanwhile_is_no_escape(place: Place, deed: str) -> None:
    assert place.escape_by(USERS_OWN[deed]) is None


def in_a_module(name: str) -> Callable[[Place], object]:
    return lambda place: place.write(f"modules/lib/inner/{name}", "[core]\n\tsshCommand = x\n")


def replace_an_object(place: Place) -> None:
    commit(place)
    place.git("replace", "HEAD", "HEAD~1")


def link_hooks(place: Place) -> None:
    hooks = place.common / "hooks"
    hooks.rename(place.common / "old")
    hooks.symlink_to(place.common / "old")


def forge_times(place: Place) -> None:
    path = place.checkout.tree / "app.py"
    status = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def made_executable(place: Place) -> None:
    (place.checkout.tree / "app.py").chmod(0o755)


def remove_a_ref(place: Place) -> None:
    place.repository.delete_ref(claim_ref("GAL-1"))


ESCAPES: dict[str, tuple[str, Callable[[Place], object]]] = {
    "a hook": ("hooks", lambda place: place.write("hooks/pre-commit", "#!/bin/sh\n")),
    "a program of a hook": ("hooks", lambda place: place.write("hooks/lib/tool", "#!/bin/sh\n")),
    "the hooks folder a link": ("hooks", link_hooks),
    "a setting": ("config", lambda place: place.git("config", "core.fsmonitor", "touch x")),
    "an alias": ("config", lambda place: place.git("config", "alias.st", "!touch x")),
    "a filter": ("config", lambda place: place.git("config", "filter.lfs.clean", "touch x")),
    "another hooks folder": ("config", lambda place: place.git("config", "core.hooksPath", "src")),
    "an include": ("config", lambda place: place.git("config", "include.path", "../shared.gitconfig")),
    "a diff driver": ("config", lambda place: place.git("config", "diff.x.textconv", "touch x")),
    "a helper for credentials": ("config", lambda place: place.git("config", "credential.helper", "!touch x")),
    "a program of a remote": ("config", lambda place: place.git("config", "remote.origin.uploadpack", "touch x")),
    "a command of a submodule": ("config", lambda place: place.git("config", "submodule.a.update", "!touch x")),
    "a section that git does not know": ("config", lambda place: place.git("config", "tool.run", "x")),
    "a worktree's configuration": (
        "config",
        lambda place: place.write("worktrees/elsewhere/config.worktree", "[core]\n\tpager = x\n"),
    ),
    "our worktree's configuration": ("config", lambda place: place.write("config.worktree", "[core]\n\tpager = x\n")),
    "a submodule's configuration": ("config", in_a_module("config")),
    "a submodule's hook": ("submodule", in_a_module("hooks/pre-commit")),
    "attributes": ("info", lambda place: place.write("info/attributes", "* filter=evil\n")),
    "grafts": ("info", lambda place: place.write("info/grafts", "x\n")),
    "objects from elsewhere": ("alternates", lambda place: place.write("objects/info/alternates", "/elsewhere\n")),
    "an object under another's name": ("replace refs", replace_an_object),
    "the publication of this run": (
        "refs of the run",
        lambda place: place.git("update-ref", publish_ref(place.repository, RUN), "HEAD"),
    ),
    "the trees of this run": (
        "refs of the run",
        lambda place: place.git("update-ref", run_ref(place.repository, RUN), "HEAD~1"),
    ),
    "the claim of this run": ("refs of the run", remove_a_ref),
    "a line of the journal": ("records of the run", lambda place: place.record("journal.jsonl", "1\n2\n3\n")),
    "another journal": ("records of the run", lambda place: place.record("journal.jsonl", "1\n9\n3\n")),
    "a shorter journal": ("records of the run", lambda place: place.record("journal.jsonl", "1\n")),
    "other evidence": ("records of the run", lambda place: place.record("evidence/baseline.json", "[]\n")),
    "more evidence": ("records of the run", lambda place: place.record("evidence/task-1.json", "[]\n")),
    "another run.json": ("records of the run", lambda place: place.record("run.json", "[]\n")),
    "a file of the checkout": (
        "private checkout",
        lambda place: (place.checkout.tree / "app.py").write_text("two\n"),
    ),
    "a file of the checkout with its old times": ("private checkout", forge_times),
    "a new file in the checkout": ("private checkout", lambda place: (place.checkout.tree / "new").write_text("n\n")),
    "a permission in the checkout": ("private checkout", made_executable),
    "a file gone from the checkout": ("private checkout", lambda place: (place.checkout.tree / "app.py").unlink()),
}


@pytest.mark.parametrize("deed", ESCAPES)
@pytest.mark.broad(but_first=1)
def test_what_only_an_escape_or_a_daring_user_does_is_one(place: Place, deed: str) -> None:
    part, act = ESCAPES[deed]
    escape = place.escape_by(act)
    assert escape is not None
    assert {found.part for found in escape.parts} == {part}
    assert f"outside its view: {part} (" in escape.why
    assert "redfirst run GAL-1" in escape.why, "what to do if it was the user"
    for found in escape.parts:
        assert found.before != found.after


def test_the_evidence_names_files_hashes_and_settings_but_no_value(place: Place) -> None:
    def plant(there: Place) -> None:
        there.git("config", "http.extraHeader", "Authorization: secret-token")
        there.write("hooks/post-merge", "#!/bin/sh\n")

    escape = place.escape_by(plant)
    assert escape is not None
    document = json.loads(to_json(escape.document()))
    hook, setting = sorted(document["parts"], key=lambda part: part["part"], reverse=True)
    assert (setting["part"], setting["path"], setting["keys"]) == (
        "config",
        str(place.common / "config"),
        ["http.extraheader"],
    )
    assert (hook["path"], hook["before"]) == (str(place.common / "hooks/post-merge"), "")
    assert all(len(part["after"]) == 64 for part in document["parts"])
    assert "secret-token" not in to_json(document)
    assert "http.extraheader" in escape.why


def test_a_hooks_folder_in_the_tree_counts_where_the_user_does_not_track_it(place: Place) -> None:
    place.git("config", "core.hooksPath", ".husky/_")
    husky = place.root / ".husky/_"
    husky.mkdir(parents=True)
    (husky / "pre-commit").write_text("#!/bin/sh\n")
    escape = place.escape_by(lambda _: (husky / "pre-commit").write_text("#!/bin/sh\ntouch x\n"))
    assert escape is not None
    assert [part.path for part in escape.parts] == [str(husky / "pre-commit")]
    place.git("config", "core.hooksPath", ".githooks")
    assert place.escape_by(edit_a_tracked_hook) is None, "that is an edit of the user's worktree like any other"


@pytest.mark.broad
def test_hooks_at_the_top_of_the_worktree_leave_the_rest_of_it_to_the_user(place: Place) -> None:
    place.git("config", "core.hooksPath", ".")

    def work(there: Place) -> None:
        (there.root / "notes.txt").write_text("mine\n")
        (there.root / "build").mkdir()
        (there.root / "build" / "x").write_text("x\n")

    assert place.escape_by(work) is None
    assert place.escape_by(lambda there: (there.root / "pre-push").write_text("x\n")) is not None


@pytest.mark.broad
def test_a_hooks_folder_that_is_a_link_into_the_tree_is_judged_by_what_is_tracked(place: Place) -> None:
    hooks = place.common / "hooks"
    hooks.rename(place.common / "old")
    hooks.symlink_to(place.root / ".githooks")
    assert place.escape_by(edit_a_tracked_hook) is None
    assert place.escape_by(lambda there: (there.root / ".githooks/post-merge").write_text("x\n")) is not None


def test_an_included_file_counts_by_its_settings(place: Place) -> None:
    place.git("config", "include.path", "../shared.gitconfig")
    shared = place.root / "shared.gitconfig"
    shared.write_text("[include]\n\tpath = deeper.gitconfig\n")
    assert place.escape_by(lambda _: (place.root / "deeper.gitconfig").write_text("[user]\n\tname = x\n")) is None
    escape = place.escape_by(lambda _: (place.root / "deeper.gitconfig").write_text("[alias]\n\tst = !touch x\n"))
    assert escape is not None
    assert escape.parts[0].keys == ("alias.st",)


def test_a_configuration_that_git_cannot_read_is_an_escape_and_no_crash(place: Place) -> None:
    escape = place.escape_by(lambda there: there.write("config", "[core\n"))
    assert escape is not None
    assert {part.part for part in escape.parts} == {"config"}


def test_what_was_planted_is_not_run_by_asking(place: Place, tmp_path: Path) -> None:
    def plant(there: Place) -> None:
        there.git("config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
        there.git("config", "core.fsmonitor", f"touch {tmp_path}/ran")
        there.write("info/attributes", "* filter=evil\n")
        (there.checkout.tree / "app.py").write_text("two\n")

    escape = place.escape_by(plant)
    assert escape is not None
    assert {part.part for part in escape.parts} == {"config", "info"}
    assert not (tmp_path / "ran").exists()


def test_a_pipe_in_place_of_a_file_is_not_waited_for(place: Place) -> None:
    def plant(there: Place) -> None:
        os.mkfifo(there.common / "hooks/pre-commit")
        os.mkfifo(there.common / "config.worktree")

    escape = place.escape_by(plant)
    assert escape is not None
    assert [part.part for part in escape.parts] == ["hooks"]


def test_a_linked_worktree_has_settings_and_rules_of_its_own(place: Place) -> None:
    linked = Repository.find(place.root.parent / "elsewhere")
    assert linked.set_ref(run_ref(linked, RUN), linked.resolve("HEAD") or "", NO_OBJECT)
    for act in (
        lambda: (linked.git_dir / "config.worktree").write_text("[core]\n\tpager = x\n"),
        lambda: (linked.worktree / ".git").write_text(f"gitdir: {place.common}\n"),
        lambda: (place.common / "hooks/pre-commit").write_text("x"),
    ):
        before = Fingerprint.take(linked, Written(linked.worktree / ".workflow" / RUN))
        act()
        assert before.differs(linked, place.checkout) is not None


@given(
    st.sampled_from(
        ["core", "alias", "filter.x", "diff.x", "merge.x", "credential", "http", "gpg", "pager", "include"]
    ),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1),
)
def test_every_setting_of_a_section_that_can_name_a_program_is_loud(section: str, name: str) -> None:
    assert affects_git(f"{section}.{name}")
