"""What is printed of where one stands, of runs and of ready issues is kept, and printed until something differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.loading import loaded
from kit import FILES, Project, make_project
from runs.real import begin, event
from terminals import on_terminal

from pipeline.cli.runs_text import age_words, stays_s
from pipeline.config.folders import state_folder
from pipeline.git import Repository
from pipeline.routing.vocabulary import Signal
from pipeline.runs.lease import FileLease
from pipeline.runs.store import take_claim
from pipeline.service import text_cache
from pipeline.service.run_list import list_runs
from pipeline.service.runs_document import RunsDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.runs.run import Run

pytestmark = pytest.mark.slow

ASKED = (("runs",), ("issue", "ready"), ("show",), ())
KEPT = "this was kept"
OURS = Path(text_cache.__file__).parents[2]
READING = {"pipeline", "pipeline.cli", "pipeline.cli.quick", "pipeline.service", "pipeline.service.text_cache"}
ISSUE = "TODO/GAL-3.md"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    run_of(made, "run-GAL-2").decide(event(Signal.OK))
    made.write({ISSUE: FILES["TODO/GAL-1.md"].replace("GAL-1", "GAL-3"), "src/x.py": ""})
    (made.home / "state/redfirst").mkdir(parents=True)  # else the first answer finds that its home has changed
    return made


def run_of(project: Project, name: str) -> Run:
    days_old = datetime.now(UTC) - timedelta(days=2, hours=3)
    return begin(Repository.find(project.root), name, started_at=days_old.isoformat())


def settle() -> None:
    """Let the clock of the file system go on: what is so new is not kept."""
    until = time.time_ns() + 2 * text_cache.TICK_NS
    while time.time_ns() < until:
        os.sched_yield()


def mark(project: Project) -> int:
    """Have every answer that is kept say so on stderr; return how many did not say so yet."""
    found = {answer: answer.read_bytes() for answer in (project.home / "state/redfirst/answers").iterdir()}
    anew = [answer for answer, text in found.items() if KEPT.encode() not in text]
    for answer in anew:
        head, _, text = found[answer].partition(b"\n\n")
        head = head.replace(b" %d\n" % len(text), b" %d\n" % (len(text) + len(KEPT)), 1)
        answer.write_bytes(head + b"\n\n" + text + KEPT.encode())
    return len(anew)


def warm(project: Project) -> None:
    settle()
    for words in ASKED:
        project.redfirst(*words)
    assert mark(project) == len(ASKED)


def was_kept(project: Project, *words: str) -> bool:
    return KEPT in project.redfirst(*words).stderr


@pytest.mark.parametrize("words", [*ASKED, ("show", "gal-2"), ("issue", "ready", "--json")])
@pytest.mark.broad
def test_an_answer_is_printed_again_and_nothing_else_is_loaded(project: Project, words: tuple[str, ...]) -> None:
    settle()
    first = project.redfirst(*words)
    modules = loaded(project, *words)
    assert {module for module in modules if module.startswith(("pipeline", "todo"))} == READING
    assert not {"pathlib", "json", "re", "subprocess", "typing", "hashlib", "dataclasses"} & modules
    assert mark(project) == 1
    again = project.redfirst(*words)
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, f"{first.stderr}{KEPT}\n")


def edit(file: Path, old: str, new: str) -> None:
    """Change a file in place, and set its time back as far as anybody can."""
    before = file.stat()
    with file.open("r+b") as opened:
        content = opened.read().replace(old.encode(), new.encode())
        assert len(content) == before.st_size
        opened.seek(0)
        opened.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def copied_run(project: Project) -> None:
    folder = project.run_folder("run-GAL-2")
    copy = shutil.copytree(folder, folder.with_name("run-GAL-2@2")) / "run.json"
    copy.write_text(copy.read_text(encoding="utf-8").replace("run-GAL-2", "run-GAL-2@2"), encoding="utf-8")


def tracked(project: Project) -> Callable[[], object]:
    project.git("add", "--force", ".workflow/run-GAL-2/run.json")
    return lambda: project.git("rm", "--quiet", "--cached", ".workflow/run-GAL-2/run.json")


def claimed(project: Project, issue: str) -> None:
    take_claim(Repository.find(project.root), issue, "run-GAL-2")


ALL, READY, SHOW = set(ASKED), {ASKED[1], ()}, {ASKED[2]}
CHANGES: dict[str, tuple[set[tuple[str, ...]], Callable[[Project], object]]] = {
    "an issue is claimed": (ALL, lambda p: claimed(p, "GAL-3")),
    "another issue is claimed": (ALL, lambda p: claimed(p, "GAL-1")),
    "refs are packed": (ALL, lambda p: p.git("pack-refs", "--all")),
    "a run goes on": (ALL, lambda p: edit(p.run_folder("run-GAL-2") / "journal.jsonl", "T14:", "T15:")),
    "it is as it was": (ALL, lambda p: edit(p.run_folder("run-GAL-2") / "journal.jsonl", "T15:", "T14:")),
    "an issue is another one": (READY, lambda p: edit(p.root / ISSUE, "status: Todo", "status: Done")),
    "an issue was added": (READY, lambda p: p.write({"TODO/GAL-9.md": FILES["TODO/GAL-1.md"].replace("L-1", "L-9")})),
    "an issue is gone": (READY, lambda p: (p.root / ISSUE).unlink()),
    "a file of the run was added": (SHOW, lambda p: (p.run_folder("run-GAL-2") / "issue.md").write_text("# other\n")),
    "a run is driven": (ALL, lambda p: FileLease.take(p.run_folder("run-GAL-2")).release),
    "a run has begun": (ALL, lambda p: run_of(p, "run-GAL-8") and None),
    "a run was copied": (ALL, copied_run),
    "there is another worktree": (ALL, lambda p: p.git("worktree", "add", "--quiet", "--detach", "../other") and None),
    "runs are tracked": (ALL, tracked),
    "git has another setting": (ALL, lambda p: p.git("config", "some.thing", "else") and None),
    "the user has other settings": (ALL, lambda p: p.configure("[agents]\n")),
    "the repository has other settings": (ALL, lambda p: p.write({"redfirst.toml": ""})),
    "a run is gone": (ALL, lambda p: shutil.rmtree(p.run_folder("run-GAL-8"))),
}


@pytest.mark.parametrize("words", ASKED)
@pytest.mark.broad
def test_whatever_changes_makes_the_answer_anew(project: Project, words: tuple[str, ...]) -> None:
    settle()
    project.redfirst(*words)
    for name, (concerned, change) in CHANGES.items():
        if words in concerned:
            assert mark(project) == 1, f"it is kept before {name}"
            undo = change(project)
            settle()
            assert not was_kept(project, *words), name
            if callable(undo):
                undo()
                settle()
                project.redfirst(*words)


@pytest.mark.broad
def test_an_answer_is_of_where_it_is_asked(project: Project) -> None:
    warm(project)
    settle()
    env = project.environment()
    for more in ({"NO_COLOR": "1"}, {"LANG": "C"}, {"GIT_CEILING_DIRECTORIES": "/nowhere"}):
        argv = [sys.executable, "-c", "import redfirst; redfirst.main()", "runs"]
        done = subprocess.run(argv, cwd=project.root, env={**env, **more}, capture_output=True, text=True, check=True)
        assert KEPT not in done.stderr, more
    assert KEPT not in project.redfirst("runs", cwd=project.root / "src").stderr
    wide = on_terminal("show", cwd=project.root, env=env, columns=100)
    mark(project)
    narrow = on_terminal("show", cwd=project.root, env=env, columns=40)
    assert KEPT not in narrow[1]
    assert narrow != wide
    assert KEPT in on_terminal("show", cwd=project.root, env=env, columns=100)[1]


@pytest.mark.broad
def test_what_the_program_says_otherwise_now_is_said(project: Project, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("pipeline", "todo"):
        shutil.copytree(OURS / name, copy / name)
    shutil.copy2(OURS / "redfirst.py", copy)
    settle()

    def runs() -> str:
        argv = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(copy)!r}); import redfirst; redfirst.main()",
        ]
        env = project.environment()
        return subprocess.run(
            [*argv, "runs"], cwd=project.root, env=env, capture_output=True, text=True, check=True
        ).stdout

    state = project.home / "state/redfirst"
    assert "run-GAL-2" in runs()
    for text in (*(state / "answers").iterdir(), *(state / "lists").iterdir()):
        text.write_bytes(text.read_bytes().replace(b"0/0", b"6/7").replace(b'"tasks_total": 0', b'"tasks_total": 8'))
    assert "6/7" in runs()
    shutil.rmtree(state / "answers")
    assert "0/8" in runs(), "from the line of the run, without what folds journals"
    with (copy / "pipeline/runs/facts.py").open("a", encoding="utf-8") as folds:
        folds.write("# more\n")
    settle()
    assert "0/0" in runs()
    words = copy / "pipeline/cli/runs_text.py"
    words.write_text(words.read_text(encoding="utf-8").replace('"STATUS"', '"STANDING"'), encoding="utf-8")
    assert "STANDING" in runs()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_another_user_left_there_is_not_printed(project: Project) -> None:
    warm(project)
    for answer in (project.home / "state/redfirst/answers").iterdir():
        os.chown(answer, 12345, -1)
    assert not was_kept(project, "runs")


@pytest.mark.broad
def test_an_answer_that_was_cut_off_is_made_anew(project: Project) -> None:
    warm(project)
    first = project.redfirst("show")
    for answer in (project.home / "state/redfirst/answers").iterdir():
        answer.write_bytes(answer.read_bytes()[: -len(KEPT) - 20])
    again = project.redfirst("show")
    assert (again.stdout, again.stderr) == (first.stdout, "")


@pytest.mark.broad
def test_answers_are_the_users_own(project: Project) -> None:
    project.env["API_KEY"] = "hunter2"
    warm(project)
    files = [*(project.home / "state/redfirst/answers").iterdir()]
    assert {path.stat().st_mode & 0o077 for path in files} == {0}
    assert not any(b"hunter2" in path.read_bytes() for path in files)
    for environ in ({"HOME": "/h"}, {"HOME": "/h", "XDG_STATE_HOME": "/s"}, {"HOME": "/h", "XDG_STATE_HOME": "s"}):
        assert text_cache.place_of("runs", "", environ).rpartition("/")[0] == str(state_folder(environ) / "runs")


def test_a_list_says_how_long_its_ages_stay(project: Project) -> None:
    (line,) = list_runs(Repository.find(project.root)).runs
    for age in (*range(0, 200_000, 77), 0, 59, 60, 3599, 3600, 86399, 86400):
        aged = RunsDocument(runs=(replace(line, age_s=age),))
        stays = stays_s(aged)
        assert age_words(age + stays) == age_words(age)
        assert age_words(age + stays + 1) != age_words(age)
