"""Agents that do their work as people would expect, and must go through: tools, traces, moves, one more file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kit import (
    AFTER_MAKE,
    FILES,
    GREET_DONE,
    NEW_ID,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT_ACCEPTED,
    TEST_GREET_NEW,
    TESTS,
    UNTIL_TESTS,
    Entry,
    Project,
    judge,
    make_project,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

AGENTS = Path(__file__).with_name("agents")


def use_program(project: Project, entries: list[Entry], program: str) -> None:
    """Let @make be a program of the agents folder, everybody else be played by the entries."""
    script = project.script(entries)
    argv = json.dumps([sys.executable, str(AGENTS / program)])
    project.configure(
        f'[agents]\nbackend = "scripted"\nscript = "{script}"\n'
        f'[agents.make]\nbackend = "command"\nargv = {argv}\nread = ["{AGENTS}"]\n'
    )


def answer_of(dispatch: Path) -> dict[str, Any]:
    """Return the result of a dispatch."""
    return json.loads((dispatch / "result.json").read_text(encoding="utf-8"))


def said(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what tidy_maker.py printed."""
    for line in (folder / "stdout.log").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def processes_called(*argv: str) -> list[str]:
    wanted = "\0".join(argv).encode() + b"\0"
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == wanted:
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_an_agent_may_use_git_run_the_tests_and_leave_caches_and_processes(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    use_program(project, [*UNTIL_TESTS, TESTS, *AFTER_MAKE], "tidy_maker.py")
    head = project.git("rev-parse", "HEAD")

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    log = list(said(dispatch(project, "implement-make")))
    told = {" ".join(line["argv"][:3]): line for line in log if "argv" in line}
    assert {line["argv"][0] + str(line["code"]) for line in log if "argv" in line} == {
        "git0", "python0", "python1", "ruff0", "sh0",
    }  # fmt: skip
    first, second = (line["out"] for line in log if line.get("argv", [""])[0] == "python")
    assert "1 failed, 1 passed" in first  # the new test, before the work
    assert "2 passed" in second
    assert told["git status --porcelain"]["out"] == ""
    assert "greet.py" in told["git diff --stat"]["out"]
    assert "refuse empty names" in told["git log --oneline"]["out"]
    assert processes_called("sleep", "4321") == []

    answer = answer_of(project, "implement-make")
    assert answer["gate"] == "admitted"
    assert [change["path"] for change in answer["changes"]] == ["greet.py"]
    dropped = {line.partition(" ")[0] for line in answer["dropped"]}
    assert dropped >= {".pytest_cache", ".ruff_cache", ".hypothesis", "greet.egg-info", "__pycache__", ".coverage"}
    assert "tests/.greet.py.swp" in dropped
    # its commits are its own affair
    assert project.git("rev-list", "--count", f"{head}..HEAD") == "2"
    assert "refuse empty names" not in project.git("log", "--format=%s", "--all")
    assert project.git("show", "HEAD:greet.py") == GREET_DONE.strip()


def test_an_agent_that_needs_one_more_file_asks_and_is_given_it(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "words.py": 'REFUSAL = "no"\n'})
    asks = {
        "when": {"kind": "implement", "attempt": 1},
        "report": {
            "result": "INCOMPLETE",
            "blocking_issue": "the wording lives in words.py",
            "needs": [{"path": "words.py", "action": "modify", "why": "the message belongs there"}],
        },
    }
    done = {
        "when": {"kind": "implement", "attempt": 2},
        "files": {
            "words.py": 'REFUSAL = "a name is needed"\n',
            "greet.py": "from words import REFUSAL\n\n\ndef greet(name):\n    if not name:\n"
            '        raise ValueError(REFUSAL)\n    return f"Hello, {name}!"\n',
        },
        "report": {"result": "COMPLETE", "summary": "raises ValueError"},
    }
    project.use_script([*UNTIL_TESTS, TESTS, asks, judge("amend", accepted=True), done, *AFTER_MAKE])

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    code = project.git("rev-parse", "HEAD~1")
    assert project.git("diff", "--name-only", f"{code}^", code).split() == [
        "greet.py", "tests/test_greet.py", "words.py",
    ]  # fmt: skip
    task = (project.run_folder() / "task-1.md").read_text(encoding="utf-8")
    assert "## Amendments" in task
    assert "words.py" in task
    granted = json.loads(
        (sorted(project.run_folder().glob("dispatches/*implement-make"))[-1] / "exchange" / "dispatch.json").read_text()
    )
    assert {"path": "words.py", "action": "modify"} in granted["write"]


def test_a_test_writer_that_needs_one_more_file_asks_and_is_given_it(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/conftest.py": "import pytest\n"})
    asks = {
        "when": {"kind": "write-tests", "attempt": 1},
        "report": {
            "verdict": "BLOCKED",
            "problem": "the empty name is to be a fixture",
            "needs": [{"path": "tests/conftest.py", "action": "modify", "why": "fixtures live there"}],
        },
    }
    test = TEST_GREET_NEW.replace("refused():", "refused(nobody):").replace('greet("")', "greet(nobody)")
    tests = {
        "when": {"kind": "write-tests", "attempt": 2},
        "files": {
            "tests/conftest.py": 'import pytest\n\n\n@pytest.fixture\ndef nobody():\n    return ""\n',
            "tests/test_greet.py": test,
        },
        "report": {"verdict": "TESTS_READY", "tests": [{"id": NEW_ID}]},
    }
    make = {
        "when": {"kind": "implement"},
        "files": {"greet.py": GREET_DONE},
        "report": {"result": "COMPLETE", "summary": "-"},
    }
    project.use_script([*UNTIL_TESTS, asks, judge("amend", accepted=True), tests, make, *AFTER_MAKE])

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    assert "nobody" in project.git("show", "HEAD~1:tests/conftest.py")


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
    assert store.price('tea') == 3


def test_total():
    assert store.total([1, 2]) == 3
"""


def test_an_agent_may_rename_delete_and_create_what_its_task_names(tmp_path: Path) -> None:
    project = make_project(tmp_path, SHOP)
    files = [
        {"path": "store.py", "action": "rename", "from": "shop.py"},
        {"path": "old.py", "action": "delete"},
        *({"path": f"notes/{name}", "action": "create"} for name in ("größe.txt", "empty.txt", "raw.bin")),
        {"path": "tools/price.sh", "action": "create"},
    ]
    plan = {
        "when": {"kind": "plan"},
        "report": {
            "problem": "The shop is a store now.",
            "approach": "Move it.",
            "files": files,
            "test_design": {"behaviours": [{"action": "call store.total", "outcome": "the sum is returned"}]},
        },
    }
    task = {
        "title": "Make the shop a store",
        "description": "shop.py becomes store.py with total; old.py goes.",
        "acceptance_criteria": ["store.total adds prices"],
        "files": files,
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
    tests = {
        "when": {"kind": "write-tests"},
        "files": {"tests/test_store.py": TEST_STORE, "tests/test_shop.py": None, "tests/test_old.py": None},
        "report": {"verdict": "TESTS_READY"},
    }
    split = {"when": {"kind": "split"}, "report": {"tasks": [task]}}
    use_program(project, [plan, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED, tests, *AFTER_MAKE], "mover.py")

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    listed = project.git("-c", "core.quotePath=false", "ls-tree", "-r", "HEAD~1").splitlines()
    modes = {line.partition("\t")[2]: line[:6] for line in listed}
    assert modes["tools/price.sh"] == "100755"
    assert modes["store.py"] == modes["notes/größe.txt"] == modes["notes/empty.txt"] == "100644"
    assert not modes.keys() & {"shop.py", "old.py", "tests/test_shop.py", "tests/test_old.py"}
    assert (project.root / "notes" / "größe.txt").read_bytes() == "Größe: 5 µm\r\nEnde".encode()
    assert (project.root / "notes" / "empty.txt").read_bytes() == b""
    assert (project.root / "notes" / "raw.bin").read_bytes() == bytes(range(256))
    assert project.git("status", "--porcelain") == ""
