"""Agents that work as people would expect, and must go through: tools, traces, moves; and trials of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import dispatches, done, stdout_of
from kit import (
    AFTER_MAKE,
    FILES,
    GREET_DONE,
    HONEST,
    MAKE,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT_ACCEPTED,
    TEST_GREET,
    TESTS,
    UNTIL_TESTS,
    WITH_PLUGINS,
    Entry,
    Project,
    make_project,
)

if TYPE_CHECKING:
    from kit import Entry, Project

pytestmark = pytest.mark.slow

AGENTS = Path(__file__).with_name("agents")


def use_program(project: Project, entries: list[Entry], *words: str) -> None:
    """Let @make be a program of the agents folder, everybody else be played by the entries."""
    script = project.script(entries)
    argv = json.dumps([sys.executable, str(AGENTS / words[0]), *words[1:]])
    project.configure(
        f'[agents]\nbackend = "scripted"\nscript = "{script}"\n'
        f'[agents.make]\nbackend = "command"\nargv = {argv}\nread = ["{AGENTS}"]\n'
    )


def processes(*argv: str) -> list[str]:
    """Return the processes of this machine that were started by exactly this command line."""
    wanted = "\0".join(argv).encode() + b"\0"
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == wanted:
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.broad
def test_an_agent_may_use_git_run_the_tests_and_leave_caches_and_processes(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.env["PATH"] = WITH_PLUGINS
    seconds = str(100_000 + os.getpid())
    use_program(project, [*UNTIL_TESTS, TESTS, *AFTER_MAKE], "tidy_maker.py", seconds)

    done(project)

    (folder,) = dispatches(project, "implement-make")
    *log, _ = (json.loads(line) for line in stdout_of(folder).splitlines())
    told = {line["command"]: line["out"] for line in log}
    assert [line["code"] for line in log] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert told["git status --porcelain"] == ""
    assert "1 failed, 1 passed" in told["python -m pytest -q -p pytest_cov --cov=greet"]
    assert "greet.py" in told["git diff --stat"]
    assert "refuse empty names" in told["git log --oneline"]
    assert "2 passed" in told["python -m pytest -q tests/test_greet.py"]
    assert processes("sleep", seconds) == []

    answer = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert answer["gate"] == "admitted"
    assert [change["path"] for change in answer["changes"]] == ["greet.py"]
    # what can be told where to cache does so outside the view; the rest is dropped with a line
    assert {line.partition(" ")[0] for line in answer["dropped"]} == {
        "tests/.greet.py.swp",
        ".hypothesis",
        ".pytest_cache",
        "greet.egg-info",
    }
    assert project.git("show", "HEAD~1:greet.py") == GREET_DONE.strip()
    # its commits in the view were its own affair
    assert "refuse empty names" not in project.git("log", "--format=%s", "--all")


SHOP = {
    "shop.py": "def price(name):\n    return len(name)\n",
    "old.py": "GONE = True\n",
    "tests/test_shop.py": "from shop import price\n\n\ndef test_price():\n    assert price('tea') == 3\n",
    "tests/test_old.py": "import old\n\n\ndef test_old():\n    assert old.GONE\n",
    "pyproject.toml": FILES["pyproject.toml"],
    "TODO/GAL-1.md": FILES["TODO/GAL-1.md"],
    "TODO/README.md": FILES["TODO/README.md"],
}
TEST_STORE = """import store


def test_price():
    assert store.price("tea") == 3


def test_total():
    assert store.total([1, 2]) == 3
"""
SHOP_FILES = [
    {"path": "store.py", "action": "rename", "from": "shop.py"},
    {"path": "old.py", "action": "delete"},
    {"path": "notes/größe.txt", "action": "create"},
    {"path": "notes/empty.txt", "action": "create"},
    {"path": "notes/raw.bin", "action": "create"},
    {"path": "tools/price.sh", "action": "create"},
]
SHOP_PLAN = {
    "problem": "The shop is a store now.",
    "approach": "Move it.",
    "files": SHOP_FILES,
    "test_design": {"behaviours": [{"action": "call store.total", "outcome": "the sum is returned"}]},
}
SHOP_TASK = {
    "title": "Make the shop a store",
    "description": "shop.py becomes store.py with total; old.py goes.",
    "acceptance_criteria": ["store.total adds prices"],
    "files": SHOP_FILES,
    "test_files": [
        {"path": "tests/test_store.py", "action": "create"},
        {"path": "tests/test_shop.py", "action": "delete"},
        {"path": "tests/test_old.py", "action": "delete"},
    ],
    "symbols": [
        {"path": "store.py", "name": "total", "signature": "(prices)", "new": True},
        {"path": "store.py", "name": "price", "signature": "(name)", "new": True},
    ],
    "tests_to_change": [
        {"id": "tests/test_shop.py::test_price", "reason": "moves with the shop"},
        {"id": "tests/test_old.py::test_old", "reason": "old.py goes"},
    ],
}


@pytest.mark.broad
def test_an_agent_may_rename_delete_and_create_what_its_task_names(tmp_path: Path) -> None:
    project = make_project(tmp_path, SHOP)
    tests = {
        "when": {"kind": "write-tests"},
        "files": {"tests/test_store.py": TEST_STORE, "tests/test_shop.py": None, "tests/test_old.py": None},
        "report": {"verdict": "TESTS_READY"},
    }
    plan = {"when": {"kind": "plan"}, "report": SHOP_PLAN}
    split = {"when": {"kind": "split"}, "report": {"tasks": [SHOP_TASK]}}
    use_program(project, [plan, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED, tests, *AFTER_MAKE], "mover.py")

    done(project)

    listed = project.git("-c", "core.quotePath=false", "ls-tree", "-r", "HEAD~1").splitlines()
    modes = {line.partition("\t")[2]: line[:6] for line in listed}
    assert modes["tools/price.sh"] == "100755"
    assert modes["store.py"] == modes["notes/größe.txt"] == modes["notes/empty.txt"] == "100644"
    assert not modes.keys() & {"shop.py", "old.py", "tests/test_shop.py", "tests/test_old.py"}
    assert (project.root / "notes" / "größe.txt").read_bytes() == "Größe: 5 µm\r\nEnde".encode()
    assert (project.root / "notes" / "empty.txt").read_bytes() == b""
    assert (project.root / "notes" / "raw.bin").read_bytes() == bytes(range(256))


# --- `redfirst agents try`: one dispatch, judged, nothing applied, and an exit code that says how it ended ------------

TRY = ("agents", "try", "make", "--kind", "implement", "--issue", "GAL-1", "--write", "greet.py")


def tried(tmp_path: Path, entry: Entry) -> Project:
    project = make_project(tmp_path)
    project.use_script([entry])
    return project


SEES = (
    "env | grep -v -e ^REDFIRST_ -e ^PWD= | sort; command -v pytest; ls -A; "
    "python -m pytest -q -p no:cacheprovider 2>&1 | tail -n 1 | cut -d ' ' -f 2"
)
"""What tells one box from another: variables, programs, ignored files, what `setup` made, and whether tests run."""


@pytest.mark.broad
def test_the_agent_has_what_it_has_in_a_run(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({".worktreeinclude": "local.cfg\n", ".gitignore": "local.cfg\n.workflow\n"})
    project.commit()
    project.write({"local.cfg": "ours\n"})
    project.env["REDFIRST_TRUST"] = "1"
    seen = {**MAKE, "run": ["sh", "-c", SEES]}
    project.use_script(
        [seen if entry is MAKE else entry for entry in HONEST],
        '[toolchains.pytest]\nsetup = ["touch", "made-by-setup"]\n',
    )
    tried = project.document(*TRY)
    assert tried.get("gate") == "admitted", tried
    assert project.run()["outcome"] == "completed"
    ran = next(project.run_folder().glob("dispatches/*-implement-make/stdout.log")).read_text(encoding="utf-8")
    assert tried["log"] == ran
    assert "local.cfg" in ran
    assert ran.endswith("\npassed\n")


@pytest.mark.broad
def test_what_counts_as_a_test_is_known_as_in_a_run(tmp_path: Path) -> None:
    document = tried(tmp_path, {**MAKE, "files": {"greet.py": GREET_DONE, "tests/test_greet.py": TEST_GREET + "\n"}})
    told = document.document(*TRY, "--write", "tests/test_greet.py")
    assert (told["_code"], told["ok"], told["gate"]) == (4, False, "rejected")
    assert [one["rule"] for one in told["violations"]] == ["test-file"]
    assert "put back" not in told["report_error"]


@pytest.mark.broad
def test_where_no_run_could_begin_nobody_is_asked(tmp_path: Path) -> None:
    project = tried(tmp_path, MAKE)
    project.write({"tests/conftest.py": "import not_installed_anywhere\n"})
    project.commit()
    told = project.document(*TRY)
    assert (told["_code"], told["error"]["kind"]) == (2, "baseline_impossible")


def test_an_answer_that_counts_is_shown_and_not_applied(tmp_path: Path) -> None:
    project = tried(tmp_path, MAKE)
    start = project.git("rev-parse", "HEAD")
    document = project.document(*TRY)
    assert (document["_code"], document["ok"], document["gate"]) == (0, True, "admitted")
    assert [change["path"] for change in document["changes"]] == ["greet.py"]
    assert document["agent"]["product"] == "scripted"
    assert project.untouched_since(start)
    assert not (project.root / ".workflow").exists()


@pytest.mark.parametrize(
    ("entry", "gate", "says"),
    [
        ({**MAKE, "files": {"greet.py": GREET_DONE, "other.py": "x = 1\n"}}, "rejected", "other.py"),
        ({"when": {}, "report": {"result": "PERFECT"}}, "admitted", "result"),
        ({"when": {}, "exit": 3}, "admitted", "exit code 3"),
    ],
    ids=["violation", "schema", "exit"],
)
@pytest.mark.broad
def test_one_that_does_not_count_ends_otherwise(tmp_path: Path, entry: Entry, gate: str, says: str) -> None:
    project = tried(tmp_path, entry)
    document = project.document(*TRY)
    assert (document["_code"], document["ok"], document["gate"]) == (4, False, gate)
    assert says in document["report_error"]
    done = project.redfirst(*TRY)
    assert done.returncode == 4
    assert "does not count" in done.stdout
