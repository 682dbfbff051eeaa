"""A run folder of unknown origin: cloned with the repository, unpacked from an archive, half written by a stranger.

Every command that opens a run meets it. Nothing outside of the run folder is written, read into a document or removed,
nothing hangs, and what is said names the place. Each planted link is first tried with a plain `open`, which follows it:
without the defence the attack works.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
from kit import Project, make_project
from runs.real import begin, event, git, load, start_dispatch, write_result

from pipeline.app.doctor import check_leftovers
from pipeline.errors import UserError
from pipeline.matrix.engine.run import sha256_hex
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.journal_kinds import TrackerFile, TrackerWritten
from pipeline.run.preconditions import examine
from pipeline.run.run import Run
from pipeline.run.store import claims, release_claim
from pipeline.trees import remove_tree
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.run.run import Run

pytestmark = pytest.mark.slow

RUN: Final = "run-GAL-1"
SECRET: Final = "what only the user knows"
LIMIT_S: Final = 60
READING: Final = (("show", RUN), ("show", RUN, "--log"), ("explain", RUN), ("diff", RUN), ("runs",))
ANSWERING: Final = (
    ("resume", RUN),
    ("approve", RUN),
    ("reject", RUN, "--feedback", "no"),
    ("abandon", RUN),
    ("hand-in", RUN, "--verdict", "ACCEPTABLE"),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    made.use_script([])
    return made


@pytest.fixture
def run(project: Project) -> Run:
    found = begin(Repository.find(project.root), RUN)
    found.decide(event(Signal.OK))
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a file of the user, outside of the repository."""
    path = tmp_path / "home" / ".bashrc"
    path.write_text(SECRET)
    return path


def ask(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return project.redfirst(*words, timeout=LIMIT_S)


def all_of_it(project: Project) -> list[subprocess.CompletedProcess[str]]:
    """Return what every command that opens a run says, the reading ones first."""
    return [ask(project, *words) for words in (*READING, *ANSWERING)]


def some_of_it(project: Project) -> list[subprocess.CompletedProcess[str]]:
    """Return what the commands say that read the most, or write; once a run is in hand the others do no more."""
    return [ask(project, *words) for words in (("explain", RUN), ("show", RUN), ("resume", RUN), ("abandon", RUN))]


def reads_no_run_json(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether it is the list of runs, which has a line for what is damaged, or the journal alone."""
    return "runs" in done.args or "--log" in done.args


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def add_line(run: Run, kind: str, /, **data: Any) -> None:
    """Append a line to the journal as its owner would, but with anything in it."""
    line = json.loads((run.folder / "journal.jsonl").read_text().splitlines()[-1])
    line |= {"seq": len(run.journal.lines) + 1, "kind": kind, "data": data}
    with (run.folder / "journal.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


# --- the repository owns it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("staged", [True, False], ids=["index", "HEAD"])
@pytest.mark.broad
def test_a_tracked_run_is_opened_by_no_command(project: Project, run: Run, *, staged: bool) -> None:
    assert ask(project, "show", RUN).returncode == 0  # the control: as long as it is not tracked it is a run like any
    project.git("add", "--force", ".workflow")
    if not staged:
        project.git("commit", "--quiet", "--message", "mine is yours")
        project.git("rm", "-r", "--quiet", "--cached", ".workflow")
    before = (run.folder / "journal.jsonl").read_bytes()
    for words in (*READING, *ANSWERING, ("run", "GAL-1"), ("verify", RUN)):
        done = ask(project, *words)
        if words == ("runs",):  # it lists all worktrees: a bad one costs its line, and not the others
            assert (done.returncode, RUN in done.stdout) == (0, False), (done.stdout, done.stderr)
            said = done.stdout
        else:
            assert done.returncode == 2, (words, done.stdout, done.stderr)
            said = done.stderr
        assert "git rm -r --cached .workflow" in said, words
        assert "tracks .workflow" in said, words
    assert (run.folder / "journal.jsonl").read_bytes() == before
    checks = {check["id"]: check for check in project.document("doctor")["checks"]}
    assert checks["leftovers"]["status"] == "fail"
    assert "git rm -r --cached .workflow" in checks["leftovers"]["message"]


@pytest.mark.broad
def test_a_workflow_folder_that_is_a_link_is_opened_by_no_command(project: Project, run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(run.folder.parent, elsewhere)
    run.folder.parent.symlink_to(elsewhere)
    assert (run.folder / "run.json").exists()  # a plain open goes through it
    for done in (*all_of_it(project), ask(project, "run", "GAL-1")):
        lists = "runs" in done.args  # it lists all worktrees: a bad one costs its line, and not the others
        assert done.returncode == (0 if lists else 2), (done.args, done.stdout, done.stderr)
        assert "is a link" in (done.stdout if lists else done.stderr)
        assert not lists or RUN not in done.stdout


@pytest.mark.broad
def test_a_run_folder_that_is_a_link_is_no_run(project: Project, run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(run.folder, elsewhere)
    run.folder.symlink_to(elsewhere)
    before = written(elsewhere)
    for done in all_of_it(project):
        assert done.returncode == (0 if "runs" in done.args else 2), (done.args, done.stdout, done.stderr)
    assert written(elsewhere) == before


def written(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.broad
@pytest.mark.parametrize("name", ["../../home/.bashrc", "{victim}"], ids=["above", "absolute"])
def test_the_journal_cannot_name_a_file_to_be_put_back(project: Project, run: Run, victim: Path, name: str) -> None:
    name = name.format(victim=victim)
    assert (project.root / "TODO" / name).read_text() == SECRET  # the control: that is where the plain path leads
    planted = run.folder / "tracker" / name
    planted.parent.mkdir(parents=True, exist_ok=True)
    if planted != victim:
        planted.write_text("owned")
    hashes = {"before": sha256_hex(b"owned"), "after": sha256_hex(SECRET.encode())}
    add_line(run, "tracker_written", files={name: hashes})
    ask(project, "abandon", RUN)
    assert victim.read_text() == SECRET


@pytest.mark.broad
def test_the_run_json_cannot_name_another_folder(project: Project, run: Run, victim: Path) -> None:
    theirs = victim.parent / "state" / "theirs"
    theirs.mkdir(parents=True)
    (theirs / "kept").write_text("kept")
    keys = [path.name for path in (victim.parent / "state").rglob("*")]
    assert keys
    rewrite(run.folder / "run.json", lambda info: info.update(run_id="../../../theirs"))
    for done in all_of_it(project):
        assert done.returncode == (0 if reads_no_run_json(done) else 2), (done.args, done.stdout, done.stderr)
    assert (theirs / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("issue", "../heads/main"),
        ("issue", "GAL-2"),
        ("run_id", "run-GAL-2"),
        ("start_tree", "--output=/tmp/redfirst-owned"),
        ("start_commit", "--all"),
        ("branch", "--force"),
        ("base_branch", "-x"),
        ("started_at", "\x1b]0;owned\x07"),
    ],
)
@pytest.mark.broad
def test_what_run_json_names_is_a_name(project: Project, run: Run, key: str, value: str) -> None:
    rewrite(run.folder / "run.json", lambda info: info.update({key: value}))
    for done in some_of_it(project):
        assert done.returncode == (0 if reads_no_run_json(done) else 2), (done.args, done.stdout, done.stderr)
        assert reads_no_run_json(done) or "run.json" in (done.stderr + done.stdout) or "hand-in" in done.args
        assert "\x1b]" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("dispatch_finished", {"dispatch": "../../../../home"}),
        ("artifact_written", {"path": "../../../home/.bashrc", "sha256": "0"}),
        ("artifact_written", {"path": "/etc/passwd", "sha256": "0"}),
        ("change_admitted", {"dispatch": "/"}),
        ("publish_intended", {"commits": ["--all"]}),
        ("decision", {"task": "../x"}),
        ("decision", {"evidence": ["evidence/../../x.md"]}),
    ],
)
@pytest.mark.broad(but_first=1)
def test_what_the_journal_names_is_a_name(project: Project, run: Run, kind: str, data: dict[str, Any]) -> None:
    add_line(run, kind, **data)
    for words in READING[:-1]:
        done = ask(project, *words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert "is damaged at line 3" in done.stderr


@pytest.mark.broad
def test_a_dispatch_that_is_somewhere_else_is_damage(project: Project, run: Run) -> None:
    to = run.folder.parent
    (to / "result.json").write_text("{}")
    record = start_dispatch(run, Role.ORCHESTRATOR, "plan")
    rewrite_last = json.loads((run.folder / "journal.jsonl").read_text().splitlines()[-1])
    assert rewrite_last["data"]["dispatch"] == record.dispatch
    add_line(run, "dispatch_started", **{**rewrite_last["data"], "dispatch": "../.."})
    done = ask(project, "show", RUN)
    assert done.returncode == 2
    assert "is damaged at line 4" in done.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [("session", "--dangerously-skip-permissions"), ("tree", "--output=/tmp/x"), ("dispatch", "../x")],
)
@pytest.mark.broad
def test_what_a_result_names_is_a_name(project: Project, run: Run, key: str, value: str) -> None:
    run.decide(event(Signal.CLAIMED))
    record = start_dispatch(run, Role.ORCHESTRATOR, "plan")
    run.finish_dispatch(write_result(run, record))
    assert ask(project, "show", RUN).returncode == 0  # the control
    rewrite(run.folder / "dispatches" / record.dispatch / "result.json", lambda result: result.update({key: value}))
    done = ask(project, "show", RUN)
    assert (done.returncode, "is damaged: the result" in done.stderr) == (2, True), done.stderr


# --- links -----------------------------------------------------------------------------------------------------------

FILES: Final = (
    "journal.jsonl",
    "lock",
    "run.json",
    "issue.md",
    "summary.md",
    "work.patch",
    "evidence/task-1.json",
    "dispatches/001-PLAN-orchestrator/result.json",
    "dispatches/001-PLAN-orchestrator/process.json",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.broad
def test_no_file_of_a_run_is_a_link(project: Project, run: Run, victim: Path, name: str) -> None:
    path = run.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    with path.open("a") as control:  # a plain open follows it
        control.write("!")
    assert victim.read_text() == f"{SECRET}!"
    for done in some_of_it(project):
        assert done.returncode in {0, 2}, (done.args, done.stdout, done.stderr)
        assert SECRET not in done.stdout + done.stderr
    assert victim.read_text() == f"{SECRET}!"
    assert victim.stat().st_nlink == 1


@pytest.mark.parametrize("name", ["evidence", "reviews", "dispatches", "tracker", "quarantine"])
@pytest.mark.broad(but_first=1)
def test_no_folder_of_a_run_is_a_link(project: Project, run: Run, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "001-x").mkdir(parents=True)
    for file in ("task-1.json", "001-x/process.json", "001-x/result.json", ".x.1.tmp"):
        (elsewhere / file).write_text(SECRET)
    (run.folder / name).symlink_to(elsewhere)
    assert (run.folder / name / "task-1.json").read_text() == SECRET
    before = written(elsewhere)
    for done in some_of_it(project):
        assert done.returncode in {0, 2}, (done.args, done.stdout, done.stderr)
        assert SECRET not in done.stdout + done.stderr
    assert written(elsewhere) == before


@pytest.mark.broad
def test_the_ignore_file_is_not_written_through_a_link(project: Project, run: Run, victim: Path) -> None:
    ignore = run.folder.parent / ".gitignore"
    ignore.unlink()
    ignore.symlink_to(victim)
    assert ignore.read_text() == SECRET
    ask(project, "run", "GAL-1")
    assert victim.read_text() == SECRET


@pytest.mark.broad
def test_a_tracker_that_became_a_link_is_not_written_through(project: Project, run: Run, victim: Path) -> None:
    run.write_artifact("tracker/.bashrc".replace(".b", "b"), b"owned")
    (victim.parent / "bashrc").write_text(SECRET)
    hashes = TrackerFile(before=sha256_hex(b"owned"), after=sha256_hex(SECRET.encode()))
    run.journal.append(TrackerWritten(files={"bashrc": hashes}))
    shutil.rmtree(project.root / "TODO")
    (project.root / "TODO").symlink_to(victim.parent)
    ask(project, "abandon", RUN)
    assert (victim.parent / "bashrc").read_text() == SECRET


# --- what never ends, and what is too much ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.broad(but_first=1)
def test_a_fifo_hangs_no_command(project: Project, run: Run, name: str) -> None:
    path = run.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for done in some_of_it(project):
        assert done.returncode in {0, 2}, (done.args, done.stdout, done.stderr)


@pytest.mark.broad
def test_a_fifo_in_the_exchange_of_a_dispatch_hangs_no_command(project: Project, run: Run) -> None:
    folder = run.folder / "dispatches" / "001-PLAN-orchestrator" / "exchange"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "desk")
    done = ask(project, "hand-in", "--verdict", "ACCEPTABLE")
    assert (done.returncode, "Nothing waits for a person here" in done.stderr) == (2, True), done.stderr


@pytest.mark.broad
def test_an_exchange_cannot_send_a_hand_in_elsewhere(project: Project, run: Run, tmp_path: Path) -> None:
    """An agent may write there: the folder that it names becomes the place where a person's report is written."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "desk").mkdir(parents=True)
    (elsewhere / "base.json").write_text("{}")
    exchange = run.folder / "dispatches" / "001-PLAN-orchestrator" / "exchange"
    exchange.mkdir(parents=True)
    asked = {
        "schema": "redfirst.desk/1",
        "run_id": RUN,
        "dispatch": "001-PLAN-orchestrator",
        "role": "check",
        "kind": "review-plan",
        "writable": False,
        "token": "t",
        "base": "b",
        "exchange": str(exchange),
    }
    (elsewhere / "asked.json").write_text(json.dumps(asked))
    (exchange / "desk").write_text(str(elsewhere))
    done = ask(project, "hand-in", "--verdict", "ACCEPTABLE")
    assert done.returncode == 2, done.stdout
    assert not (elsewhere / "handed-in.json").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.broad
def test_a_file_without_end_takes_no_memory(project: Project, run: Run, name: str) -> None:
    path = run.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(1 << 40)  # takes no room on disk
    for done in some_of_it(project):
        assert done.returncode in {0, 2}, (done.args, done.stdout, done.stderr)
    path.unlink()


@pytest.mark.parametrize("name", ["journal.jsonl", "run.json", "dispatches/001-PLAN-orchestrator/result.json"])
@pytest.mark.broad
def test_a_document_of_any_depth_is_damage(project: Project, run: Run, name: str) -> None:
    run.decide(event(Signal.CLAIMED))
    record = start_dispatch(run, Role.ORCHESTRATOR, "plan")
    path = run.folder / name.replace("001-PLAN-orchestrator", record.dispatch)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("[" * 200_000 + "]" * 200_000 + "\n")
    if path.name == "result.json":
        add_line(run, "dispatch_finished", dispatch=record.dispatch)
    for words in READING[:-1]:
        done = ask(project, *words)
        alone = path.name != "journal.jsonl" and reads_no_run_json(done)
        assert done.returncode == (0 if alone else 2), (words, done.stdout, done.stderr)


@pytest.mark.broad
def test_folders_without_end_are_refused(project: Project, run: Run) -> None:
    here = os.open(run.folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("x", dir_fd=here)
        there = os.open("x", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    try:
        for done in some_of_it(project):
            assert done.returncode in {0, 2}, (done.args, done.stdout, done.stderr)
    finally:
        remove_tree(run.folder)  # pytest cannot


@pytest.mark.parametrize("odd", ["two\nlines", "two\u2028lines", "\x1b]0;owned\x07", "b\udcff"], ids=ascii)
@pytest.mark.broad
def test_no_name_of_a_run_or_a_file_in_it_breaks_a_line(project: Project, run: Run, odd: str) -> None:
    shutil.copytree(run.folder, run.folder.parent / f"run-{odd}")
    (run.folder / "evidence").mkdir(exist_ok=True)
    for name in (f"task-{odd}.md", f"evidence/task-{odd}.json", f"{odd}.md"):
        (run.folder / name).write_text("{}")
    for words in (*READING, ("show", f"run-{odd}"), ("explain", f"run-{odd}"), ("verify", RUN), ("doctor",)):
        done = ask(project, *words)
        assert done.returncode in {0, 1, 2}, (words, done.stdout, done.stderr)
        assert "bug in redfirst" not in done.stderr, (words, done.stderr)
        assert odd not in done.stdout + done.stderr, (words, done.stdout, done.stderr)


# --- claims ----------------------------------------------------------------------------------------------------------

CLAIM: Final = "refs/redfirst/claims/"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'{"worktree": "/tmp"}',
        b'{"run": 1, "worktree": "/tmp"}',
        b'{"run": "project-1/../../x", "worktree": "/tmp"}',
        b'{"run": "project-1/run-GAL-2", "worktree": "/tmp", "more": "' + b"x" * 1_000_000 + b'"}',
        b"[" * 100_000,
        None,
    ],
    ids=["empty", "nonsense", "list", "null", "no-run", "number", "path", "huge", "deep", "tree"],
)
@pytest.mark.parametrize("issue", ["GAL-1", "GAL-9"], ids=["ours", "another"])
@pytest.mark.broad(but_first=2)
def test_an_unreadable_claim_is_named_with_its_remedy(project: Project, content: bytes | None, issue: str) -> None:
    repository = Repository.find(project.root)
    oid = repository.tree_of("HEAD") if content is None else repository.write_blob(content)
    git(project.root, "update-ref", CLAIM + issue, oid)
    with pytest.raises(UserError) as refused:
        examine(repository, "GAL-1", None)
    assert (refused.value.reason, refused.value.path) == (Reason.USAGE, CLAIM + issue)
    assert f"git update-ref -d {CLAIM}{issue}" in refused.value.message
    assert f"git update-ref -d {CLAIM}{issue}" in check_leftovers(repository, project.home).message
    release_claim(repository, issue, RUN)  # not ours: it stays
    assert claims(repository).keys() == {issue}
    git(project.root, "update-ref", "-d", CLAIM + issue)
    examine(repository, "GAL-1", None)  # the control: nothing else was in the way


@pytest.mark.broad
def test_a_claim_that_nobody_wrote_is_no_bug_of_ours(project: Project, run: Run) -> None:
    git(project.root, "update-ref", f"{CLAIM}GAL-9", Repository.find(project.root).write_blob(b"[]"))
    for words, code in ((("run", "GAL-1"), 2), (("doctor",), None), (("show", RUN), 0), (("abandon", RUN), 0)):
        done = ask(project, *words)
        assert code is None or done.returncode == code, (words, done.stdout, done.stderr)
        if words[0] in {"run", "doctor"}:
            assert f"git update-ref -d {CLAIM}GAL-9" in done.stderr + done.stdout


# --- the ref of a run ------------------------------------------------------------------------------------------------


def quoted(path: Path) -> str:
    """Return a name without a slash that git, where it reads names by lines, takes for this path."""
    return '"' + str(path).replace("/", "\\057") + '"'


@pytest.mark.broad
def test_no_name_of_a_file_brings_another_file_into_the_ref(project: Project, run: Run, victim: Path) -> None:
    names = {quoted(victim), "two\nlines", "two\u2028lines", "b\udcff", " ", "dispatches/.git", "..."}
    for name in names:
        (run.folder / name).parent.mkdir(exist_ok=True)
        (run.folder / name).write_text(f"harmless {name!a}")
    taken = git(project.root, "hash-object", "--stdin-paths", stdin=f"{quoted(victim)}\n".encode())
    assert taken == git(project.root, "hash-object", str(victim))  # the control: git reads the file outside
    done = ask(project, "abandon", RUN)
    assert done.returncode == 0, done.stderr
    ref = git(project.root, "for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    kept = {entry.path: entry.oid for entry in Repository.find(project.root).entries(ref, "run")}
    for name in names - {"dispatches/.git"}:  # no tree may have such a one
        assert git(project.root, "cat-file", "blob", kept[f"run/{name}"]) == f"harmless {name!a}"
    assert subprocess.run(["git", "cat-file", "-e", taken], cwd=project.root, check=False).returncode == 1


# --- what stays as it was --------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_what_an_agent_left_in_its_exchange_hides_no_run(project: Project, run: Run, victim: Path) -> None:
    exchange = run.folder / "dispatches" / "001-PLAN-orchestrator" / "exchange"
    exchange.mkdir(parents=True)
    (exchange / "link").symlink_to(victim)
    os.mkfifo(exchange / "pipe")
    assert ask(project, "show", RUN).returncode == 0
    done = ask(project, "abandon", RUN)
    assert done.returncode == 0, done.stderr
    ref = git(project.root, "for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    assert "exchange" not in git(project.root, "ls-tree", "-r", "--name-only", ref)


@pytest.mark.broad
def test_a_damaged_journal_can_be_given_up(project: Project, run: Run) -> None:
    add_line(run, "artifact_written", path="../x", sha256="0")
    done = ask(project, "abandon", RUN)
    assert done.returncode == 0, done.stderr
    assert load(run).state.outcome == "cancelled"
