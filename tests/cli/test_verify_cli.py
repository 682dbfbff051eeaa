"""`redfirst verify` in a fresh clone: what a run left is true there too, and each way to bend it is found."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from kit import (
    FILES,
    GREET,
    GREET_DONE,
    HONEST,
    MAKE,
    PLAN,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    RESULT_ACCEPTED,
    RESULT_SIMPLE,
    SPLIT_ACCEPTED,
    TASK,
    TEST_GREET,
    TEST_GREET_NEW,
    TESTS,
    make_project,
)

from pipeline.faces.cli.verify import verify_text
from pipeline.testing.verification.results import CommitCheck, Status, TestLine, VerifyDocument

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

RUN = "run-GAL-1"
FETCH = "refs/redfirst/runs/*:refs/redfirst/runs/*"
PART = GREET_DONE + '\n\ndef part(name):\n    return f"Goodbye, {name}!"\n'
TEST_PART = 'from greet import part\n\n\ndef test_parts_by_name():\n    assert part("Ada") == "Goodbye, Ada!"\n'
SECOND = {
    **TASK,
    "title": "Part politely",
    "acceptance_criteria": ['part("Ada") returns "Goodbye, Ada!"'],
    "test_files": [{"path": "tests/test_part.py", "action": "create"}],
    "symbols": [{"path": "greet.py", "name": "part", "signature": "part(name)", "new": True}],
}
SPLIT = {"when": {"kind": "split"}, "report": {"tasks": [TASK, SECOND]}}
TESTS_2 = {
    "when": {"kind": "write-tests", "task": "2"},
    "files": {"tests/test_part.py": TEST_PART},
    "report": {"verdict": "TESTS_READY", "tests": [{"id": "tests/test_part.py::test_parts_by_name"}]},
}
MAKE_2 = {
    "when": {"kind": "implement", "task": "2"},
    "files": {"greet.py": PART},
    "report": {"result": "COMPLETE", "summary": "part"},
}
MET = {
    **RESULT_ACCEPTED,
    "report": {"verdict": "ACCEPTABLE", "criteria": [{"task": task, "id": "C1", "met": True} for task in ("1", "2")]},
}
SCRIPT = [PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS, MAKE, TESTS_2, MAKE_2, MET, RESULT_SIMPLE]
WEAK = TEST_GREET_NEW.replace(
    "with pytest.raises(ValueError):\n        greet", "with pytest.raises(Exception):\n        greet"
)
UNTAGGED, FIRST, SECOND_TASK, CLOSING = "HEAD~3", "HEAD~2", "HEAD~1", "HEAD"


@dataclass(frozen=True)
class Clone:
    """A clone of the project on branch `work`, as on another machine."""

    project: Project
    root: Path

    def git(self, *argv: str) -> str:
        return self.project.git(*argv, cwd=self.root)

    def verify(self, what: str) -> dict[str, Any]:
        done = self.project.redfirst("verify", what, "--json", cwd=self.root)
        document: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == document.get("exit_code", 2), done.stderr
        return document

    def check(self, what: str) -> tuple[int, dict[str, Any]]:
        document = self.verify(what)
        (commit,) = document["commits"]
        return document["exit_code"], commit

    def rewrite(self, commit: str, files: dict[str, str], *, message: str | None = None) -> str:
        """Make *commit* again on its own parent with other files, or another message; return the new commit."""
        said = self.message(commit) if message is None else message
        self.git("switch", "--quiet", "--detach", commit)
        for name, content in files.items():
            (self.root / name).write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--amend", "--message", said)
        return self.git("rev-parse", "HEAD")

    def message(self, commit: str) -> str:
        return self.git("show", "--no-patch", "--format=%B", commit)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("verify"))
    project.env["REDFIRST_LIMITS__PARALLEL"] = "1"  # both tasks change one file, and the script says who is first
    project.use_script(SCRIPT)
    assert project.run()["outcome"] == "completed"
    return project


@pytest.fixture
def clone(done: Project, tmp_path: Path) -> Clone:
    root = tmp_path / "clone"
    done.git("clone", "--quiet", "--branch", "work", str(done.root), str(root), cwd=tmp_path)
    found = Clone(done, root)
    found.git("config", "user.name", "Bob")
    found.git("config", "user.email", "bob@example.org")
    found.git("fetch", "--quiet", "origin", FETCH)
    return found


def written(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def why(commit: dict[str, Any]) -> str:
    return "; ".join(f"{problem['id']} {problem['why']}" for problem in commit["problems"])


def test_a_run_is_verified_on_another_machine_and_leaves_nothing_behind(clone: Clone) -> None:
    before = written(clone.root)
    document = clone.verify(RUN)
    first, second, closing = document["commits"]
    assert (document["status"], document["exit_code"], document["ok"]) == ("verified", 0, True)
    assert [first["task"], second["task"], closing["status"]] == ["1", "2", "nothing_claimed"]
    (test,) = first["tests"]
    assert (test["recorded"], test["measured"]) == ("ASSERTION_MISMATCH", "ASSERTION_MISMATCH")
    (file,) = second["tests"]
    assert (file["id"], file["granularity"], file["measured"]) == ("tests/test_part.py", "file", "MISSING_BEHAVIOR")
    assert file["before_holds"]
    assert file["after_holds"]
    assert written(clone.root) == before


@pytest.mark.broad
def test_the_folder_of_the_run_is_evidence_too_and_people_are_told_in_words(done: Project) -> None:
    ref = next(line.split()[2] for line in done.git("for-each-ref", "refs/redfirst/runs").splitlines())
    oid = done.git("rev-parse", ref)
    done.git("update-ref", "-d", ref)
    said = done.redfirst("verify", FIRST)
    done.git("update-ref", ref, oid)
    assert said.returncode == 0, said.stderr
    assert "evidence of task 1: .workflow/run-GAL-1" in said.stdout
    assert "test_an_empty_name_is_refused: wrong result or exception; now passes" in said.stdout


@pytest.mark.broad
def test_without_the_run_nothing_can_be_said(clone: Clone) -> None:
    for line in clone.git("for-each-ref", "--format=%(refname)", "refs/redfirst").splitlines():
        clone.git("update-ref", "-d", line)
    code, commit = clone.check(FIRST)
    assert (code, commit["status"]) == (2, "unchecked")
    assert "git fetch" in commit["why"]
    error = clone.verify(RUN)["error"]
    assert error["safe_next_actions"][-1] == "git fetch REMOTE 'refs/redfirst/runs/*:refs/redfirst/runs/*'"
    assert error["kind"] == "usage"


@pytest.mark.broad
def test_a_commit_without_trailers_claims_nothing(clone: Clone) -> None:
    code, commit = clone.check(UNTAGGED)
    assert (code, commit["status"]) == (2, "nothing_claimed")
    assert "no Run-Id" in commit["why"]


def test_what_is_neither_a_commit_nor_a_run_is_an_error(clone: Clone) -> None:
    error = clone.verify("run-GAL-7")["error"]
    assert error["kind"] == "usage"
    assert RUN in error["message"]


def _bend(clone: Clone, name: str, old: str, new: str) -> None:
    """Put another text in a file of the run that the clone has fetched."""
    ref = clone.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    place = clone.root.parent / "unpacked"
    clone.git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(place))
    clone.project.git("read-tree", ref, cwd=place)
    clone.project.git("checkout-index", "--all", cwd=place)
    path = place / "run" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    clone.project.git("add", "--all", "--force", cwd=place)
    clone.git("update-ref", ref, clone.project.git("write-tree", cwd=place))


def test_evidence_that_was_changed_is_not_what_the_trailer_names(clone: Clone) -> None:
    _bend(clone, "evidence/task-1.json", "ASSERTION_MISMATCH", "MISSING_BEHAVIOR")
    code, commit = clone.check(FIRST)
    assert (code, commit["status"]) == (7, "refuted")
    assert "is not the one that the trailer Red-Evidence names" in why(commit)
    lines = clone.project.redfirst("verify", FIRST, cwd=clone.root).stdout.splitlines()
    assert lines[-1] == "NOT verified. The claims above that begin with NO are refuted."
    assert any(line.startswith("    NO  ") for line in lines)


@pytest.mark.broad
def test_a_task_file_that_was_changed_is_not_what_the_trailer_names(clone: Clone) -> None:
    _bend(clone, "task-1.md", "tests_to_change: []", "tests_to_change:\n- {id: tests/test_greet.py, reason: so}")
    code, commit = clone.check(FIRST)
    assert (code, commit["status"]) == (2, "unchecked")
    assert "is not the one that the trailer Task-File names" in commit["why"]


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("Red-Evidence: sha256:", "Red-Evidence: sha256:0", 2, "are not what a run writes"),
        ("Task: 1", "Task: 2", 7, "is not the one that the trailer"),
        ("Task: 1", "Task: 9", 2, "run-GAL-1 has no task 9: "),
        ("Run-Id: run-GAL-1", "Run-Id: run-GAL-2", 2, "no evidence of task 1 of run-GAL-2"),
        ("Run-Id: run-GAL-1", "Run-Id: ../../x", 2, "are not what a run writes"),
        ("Task: 1", "Task: 1\nTask: 2", 2, "two values of Task"),
        ("Issue: GAL-1", "Issue: GAL-3", 7, "the run worked on GAL-1"),
        ("Task: 1", "Task: 1\nRed-Base: 1234567", 2, "not in the history"),
    ],
)
@pytest.mark.broad
def test_wrong_trailers(clone: Clone, old: str, new: str, code: int, said: str) -> None:
    bent = clone.rewrite(FIRST, {}, message=clone.message(FIRST).replace(old, new))
    found, commit = clone.check(bent)
    assert found == code
    assert said in f"{commit['why']} {why(commit)}"


def test_a_test_that_was_weakened_afterwards_is_found(clone: Clone) -> None:
    code, commit = clone.check(clone.rewrite(FIRST, {"tests/test_greet.py": WEAK}))
    assert code == 7
    assert "tests/test_greet.py::test_an_empty_name_is_refused is not the test that was judged" in why(commit)


@pytest.mark.broad
def test_what_serves_the_tests_is_part_of_them(clone: Clone) -> None:
    code, commit = clone.check(clone.rewrite(FIRST, {"tests/conftest.py": "import pytest\n"}))
    assert (code, why(commit)) == (7, "tests/conftest.py was changed after the tests were judged")


@pytest.mark.broad
def test_code_that_does_not_do_it_or_breaks_another_test_is_found(clone: Clone) -> None:
    broken = GREET_DONE.replace("Hello", "Hi").replace("ValueError", "KeyError")
    code, commit = clone.check(clone.rewrite(FIRST, {"greet.py": broken}))
    assert code == 7
    assert "test_an_empty_name_is_refused does not pass (failed: builtins.KeyError" in why(commit)
    assert "test_greets_by_name passed before and fails now" in why(commit)
    assert commit["kept"] == 0
    said = clone.project.redfirst("verify", commit["commit"], cwd=clone.root).stdout
    assert "GREEN in the commit" not in said
    assert "measured over the parent's code, then in the commit; 0 tests besides them kept:" in said


def test_the_closing_commit_of_a_run_cannot_weaken_a_test(clone: Clone) -> None:
    bent = clone.rewrite(CLOSING, {"tests/test_greet.py": WEAK})
    code, commit = clone.check(bent)
    assert code == 7
    assert "tests/test_greet.py serves tests" in why(commit)


def rebase_on(clone: Clone, files: dict[str, str]) -> None:
    """Put the run's commits on a commit of somebody else."""
    clone.git("switch", "--quiet", "--create", "theirs", UNTAGGED)
    for name, content in files.items():
        (clone.root / name).write_text(content, encoding="utf-8")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "a change of somebody else")
    clone.git("switch", "--quiet", "work")
    clone.git("rebase", "--quiet", "theirs")


@pytest.mark.broad
def test_on_other_commits_it_is_measured_anew(clone: Clone) -> None:
    rebase_on(clone, {"tests/test_more.py": "def test_is_on_its_own():\n    assert True\n"})
    document = clone.verify("theirs..work")
    assert (document["exit_code"], [c["status"] for c in document["commits"]]) == (
        0,
        ["verified", "verified", "nothing_claimed"],
    )
    clone.git("switch", "--quiet", "theirs")
    (clone.root / "greet.py").write_text(GREET_DONE, encoding="utf-8")
    clone.git("commit", "--quiet", "--all", "--message", "did it already")
    clone.git("switch", "--quiet", "work")
    clone.git("rebase", "--quiet", "theirs")
    code, commit = clone.check(FIRST)
    assert code == 7
    assert "over the code before, and now passes already" in why(commit)


BY_OTHERS = TEST_GREET.replace("\n\ndef", "\n\ndef test_of_others():\n    assert True\n\n\ndef")
TOGETHER = TEST_GREET_NEW.replace(TEST_GREET, BY_OTHERS)


@pytest.mark.broad
def test_others_may_have_changed_the_same_test_file(clone: Clone) -> None:
    rebase_on(clone, {"tests/test_greet.py": BY_OTHERS})
    assert clone.git("show", f"{FIRST}:tests/test_greet.py") == TOGETHER.strip()
    document = clone.verify("theirs..work")
    states = [commit["status"] for commit in document["commits"]]
    assert (document["exit_code"], states) == (0, ["verified", "verified", "nothing_claimed"]), document
    assert any("tests/test_greet.py was changed by others, too" in note for note in document["commits"][0]["notes"])


BENT = {
    "the test": (TOGETHER.replace("ValueError", "Exception"), "is not the test that was judged"),
    "around it": (
        TOGETHER.replace("import pytest\n", "import pytest\n\npytestmark = []\n"),
        "is not the file that was",
    ),
    "theirs": (TOGETHER.replace("    assert True\n", "    assert 1\n"), "is not the file that was judged"),
}


@pytest.mark.parametrize(("content", "said"), BENT.values(), ids=BENT.keys())
@pytest.mark.broad
def test_a_rebased_commit_whose_own_tests_differ_is_refuted_as_before(clone: Clone, content: str, said: str) -> None:
    rebase_on(clone, {"tests/test_greet.py": BY_OTHERS})
    code, commit = clone.check(clone.rewrite(FIRST, {"tests/test_greet.py": content}))
    assert code == 7
    assert said in why(commit)


SEAM = "def check(name):\n    pass\n\n\n" + GREET.partition("\n\n\n")[2]
TEST_SEAM = """import greet


def test_the_name_is_checked(monkeypatch):
    seen = []
    monkeypatch.setattr(greet, "check", seen.append)
    greet.greet("Ada")
    assert seen == ["Ada"]
"""


@pytest.mark.broad
def test_what_can_only_be_tested_through_a_seam_is_measured_over_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    task = {**TASK, "test_files": [{"path": "tests/test_check.py", "action": "create"}]}
    split = {"when": {"kind": "split"}, "report": {"tasks": [task]}}
    untestable = {"verdict": "NOT_TESTABLE", "reason": "missing-seam", "seam_files": ["greet.py"]}
    seam = {"files": {"greet.py": SEAM}, "report": {"result": "COMPLETE", "summary": "a seam"}}
    tests: Entry = {
        **TESTS,
        "files": {"tests/test_check.py": TEST_SEAM},
        "report": {"verdict": "TESTS_READY", "tests": []},
    }
    make = {**MAKE, "files": {"greet.py": SEAM.replace("    return f", "    check(name)\n    return f")}}
    project.use_script(
        [
            *(PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, split, SPLIT_ACCEPTED),
            {"when": {"kind": "write-tests"}, "report": untestable},
            {"when": {"kind": "seam"}, **seam},
            *(tests, make, RESULT_ACCEPTED, RESULT_SIMPLE),
        ]
    )
    document = project.run()
    assert document["outcome"] == "completed", document["_stderr"]
    found = project.document("verify", document["commits"][0])
    (commit,) = found["commits"]
    assert (commit["status"], commit["red_over"]) == ("verified", "seam"), why(commit)


BUILT = "import os, pytest\n\npytestmark = pytest.mark.skipif(not os.path.exists('built'), reason='not built')\n"
BUILT_FILES = {".gitignore": "/built\n", ".worktreeinclude": "/built\n", "tests/test_greet.py": BUILT + TEST_GREET}


@pytest.mark.broad
def test_where_all_that_is_wrong_is_that_a_test_is_skipped_it_cannot_be_checked(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, **BUILT_FILES})
    project.env["REDFIRST_TRUST"] = "1"
    project.write({"built": "a part that git ignores"})
    tests: Entry = {**TESTS, "files": {"tests/test_greet.py": BUILT + TEST_GREET_NEW}}
    project.use_script([tests if entry is TESTS else entry for entry in HONEST])
    document = project.run()
    assert document["outcome"] == "completed", document["_stderr"]
    first = document["commits"][0]
    assert project.document("verify", first)["status"] == "verified"
    (project.root / "built").unlink()
    done = project.redfirst("verify", first, "--json")
    (commit,) = json.loads(done.stdout)["commits"]
    assert (done.returncode, commit["status"]) == (2, "unchecked")
    assert "test_an_empty_name_is_refused is skipped here, over the code before and in the commit" in commit["why"]
    clone = Clone(project, project.root)
    code, commit = clone.check(clone.rewrite(first, {"greet.py": GREET_DONE, "tests/conftest.py": "import pytest\n"}))
    assert (code, commit["status"]) == (7, "refuted"), "what is wrong besides is said"


@pytest.mark.broad
def test_other_people_s_files_do_not_come_in_the_way(clone: Clone) -> None:
    (clone.root / "greet.py").write_text("raise SystemExit\n", encoding="utf-8")
    shutil.rmtree(clone.root / "tests")
    code, _ = clone.check(FIRST)
    assert code == 0


def _tree(clone: Clone, *lines: str) -> str:
    """Return the tree of these entries, as `git ls-tree` tells them."""
    stdin = "".join(f"{line}\n" for line in lines)
    argv = ["git", "mktree"]
    done = subprocess.run(argv, cwd=clone.root, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _bomb(clone: Clone) -> str:
    """Return a tree of a few objects that names a thousand million paths."""
    entry = f"100644 blob {clone.git('rev-parse', 'HEAD:greet.py')}"
    for _ in range(9):
        lines = [f"{entry}\t{number}" for number in range(10)]
        entry = f"040000 tree {_tree(clone, *lines)}"
    return entry.split(" ")[2]


def _with_folder(clone: Clone, tree: str, name: str, folder: str) -> str:
    """Return *tree* with *folder* as *name*."""
    kept = [line for line in clone.git("ls-tree", tree).splitlines() if line.partition("\t")[2] != name]
    return _tree(clone, *kept, f"040000 tree {folder}\t{name}")


@pytest.mark.parametrize("where", ["the commit", "its parent"])
@pytest.mark.broad
def test_a_commit_whose_tree_has_no_end_is_not_checked(clone: Clone, where: str) -> None:
    tree, parent = clone.git("rev-parse", f"{FIRST}^{{tree}}"), clone.git("rev-parse", f"{FIRST}^")
    endless = _with_folder(clone, tree, "bomb", _bomb(clone))
    if where == "its parent":
        parent = clone.git("commit-tree", endless, "-p", parent, "-m", "x")
    else:
        tree = endless
    commit = clone.git("commit-tree", tree, "-p", parent, "-m", clone.message(FIRST))
    code, check = clone.check(commit)
    assert (code, check["status"]) == (2, "unchecked")
    assert "is too large" in check["why"]


@pytest.mark.broad
def test_evidence_beside_which_lies_a_tree_without_an_end_is_read(clone: Clone) -> None:
    ref = clone.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
    run = _with_folder(clone, f"{ref}:run", "bomb", _bomb(clone))
    clone.git("update-ref", ref, _with_folder(clone, ref, "run", run))
    bent = clone.rewrite(FIRST, {}, message=clone.message(FIRST).replace("Task: 1", "Task: 9"))
    code, check = clone.check(bent)
    assert (code, check["status"]) == (2, "unchecked")
    assert "run-GAL-1 has no task 9" in check["why"]


@pytest.mark.broad
def test_a_commit_that_git_itself_cannot_check_out_is_not_checked(clone: Clone) -> None:
    tree = clone.git("rev-parse", f"{FIRST}^{{tree}}")
    endless = _with_folder(clone, tree, "x" * 300, clone.git("rev-parse", f"{FIRST}:tests"))
    commit = clone.git("commit-tree", endless, "-p", f"{FIRST}^", "-m", clone.message(FIRST))
    code, check = clone.check(commit)
    assert (code, check["status"]) == (2, "unchecked")
    assert "File name too long" in check["why"]


def test_a_commit_that_has_only_guards_is_not_said_to_have_been_red() -> None:
    line = TestLine(
        id="a::test_b", granularity="id", recorded="GUARD", measured="GUARD", before_holds=True, after_holds=True
    )
    checked = CommitCheck(
        commit="1" * 40, subject="test: b", status=Status.VERIFIED, red_over="parent", tests=(line,), kept=3
    )
    told = verify_text(VerifyDocument(ok=True, status=Status.VERIFIED, exit_code=0, asked="HEAD", commits=(checked,)))
    assert "guards over the parent's code and in the commit, 3 tests besides them kept" in told
    assert "RED" not in told


def test_the_cases_of_a_function_that_came_to_the_same_are_one_line() -> None:
    def case(name: str, *, after_holds: bool = True) -> TestLine:
        return TestLine(
            id=f"a::test_b[{name}]", granularity="id", recorded="ASSERTION", measured="ASSERTION", before_holds=True,
            after_holds=after_holds,
        )  # fmt: skip

    lines = (*map(case, "xyz"), case("odd", after_holds=False))
    checked = CommitCheck(commit="1" * 40, subject="feat: b", status=Status.REFUTED, red_over="parent", tests=lines)
    told = verify_text(VerifyDocument(ok=False, status=Status.REFUTED, exit_code=7, asked="HEAD", commits=(checked,)))
    assert [line.partition(": ")[0].strip() for line in told.splitlines() if "a::test_b" in line] == [
        "a::test_b (3 cases)",
        "a::test_b[odd]",
    ]
