"""The recipe `solo`: one writer for tests and code, parted by side and measured; what goes wrong comes back to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import finding, play, review
from e2e.shapes import TRACKER
from e2e.test_unnoticed_faults import BLIND, GOOD, SHOP
from kit import (
    FILES,
    GREET,
    GREET_DONE,
    MAKE,
    NEW_ID,
    PLAN,
    RESULT_ACCEPTED,
    TASK,
    TEST_GREET,
    TEST_GREET_NEW,
    TESTS,
    Entry,
    judge,
    make_project,
)
from languages import crates, modules
from languages.crates import MANIFEST as CRATE
from languages.crates import needs_cargo
from languages.modules import MANIFEST as MODULE
from languages.modules import needs_go

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


def built(files: dict[str, Any] | None = None, **report: Any) -> Entry:
    return {
        "when": {"kind": "build"},
        "files": {**TESTS["files"], **MAKE["files"]} if files is None else files,
        "report": {"result": "COMPLETE", "summary": "blank names are refused", **report},
    }


def asked(project: Project) -> list[str]:
    return [line["data"]["kind"] for line in project.journal() if line["kind"] == "dispatch_started"]


def test_solo_takes_an_issue_to_one_commit_that_is_verified_with_two_dispatches(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    played = play(project, [built(), RESULT_ACCEPTED], "--recipe", "solo")
    assert played.document["outcome"] == "completed", (played.document, played.rows)
    assert asked(project) == ["build", "review-result"]
    assert played.rows == [
        "sanity/OK",
        "issue/CLAIMED[one writer]",
        "build/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    assert played.assert_artifact_rule() == 2
    assert len(played.subjects()) == 2, "tests and code are one commit, then the tracker's"
    commit = project.git("log", "-1", "--format=%B", "HEAD~1")
    assert "\nWriters: one" in commit
    assert "\nRed-Evidence: sha256:" in commit
    evidence = json.loads(played.artifact("evidence/task-1.json"))
    assert (evidence["writers"], len(evidence["ledger"]["red"]) > 0) == ("one", True)
    verified = project.redfirst("verify", "run-GAL-1")
    assert verified.returncode == 0, verified.stdout


BLANK = GREET_DONE.replace("if not name:", "if not name.strip():")
BLANK_TEST = TEST_GREET_NEW.replace("an_empty", "a_blank").replace('greet("")', 'greet(" ")')
BLANK_PROOF = """import pytest

from greet import greet


def test_a_blank_name():
    with pytest.raises(ValueError):
        greet("  ")
"""
HI = "Hello, {name}!", "Hi, {name}!"


def again(code: str, tests: str, **report: Any) -> Entry:
    return built({"greet.py": code, "tests/test_greet.py": tests}, **report)


@pytest.mark.broad
def test_what_is_wrong_with_one_writers_work_comes_back_to_it_measured(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.env["REDFIRST_LIMITS__BUILD"] = "20"
    stopped = {"result": "INCOMPLETE", "blocking_issue": "what a name is, is said nowhere"}
    wrong = finding("blank names pass", concern="production")
    script = [
        again(GREET_DONE, TEST_GREET_NEW.replace('        greet("")', '        greeet("")')),
        again(GREET_DONE, TEST_GREET + '\n\ndef test_bo():\n    assert greet("Bo") == "Hello, Bo!"\n'),
        again(GREET, TEST_GREET_NEW),
        again(GREET_DONE.replace(*HI), TEST_GREET_NEW),
        again(GREET_DONE.replace(*HI), TEST_GREET_NEW.replace("Hello, Ada!", "Hi, Ada!")),
        again(GREET, TEST_GREET),
        {**again(GREET, TEST_GREET_NEW), "report": stopped},
        built({"pyproject.toml": FILES["pyproject.toml"] + "\n"}),
        again(GREET_DONE, TEST_GREET_NEW, criteria=[{"id": "C1", "tests": [NEW_ID]}]),
        review("review-result", "NEEDS WORK", wrong),
        again(BLANK, BLANK_TEST),
        review(
            "review-result", "ACCEPTABLE", prior=[{"id": "final-1-01", "status": "resolved", "note": "it is refused"}]
        ),
    ]
    played = play(project, script, "--recipe", "solo")
    assert played.rows[2:-1] == [
        "build/ILLEGAL_RED",
        "build/PASSES_ALREADY",
        "build/NOT_GREEN",
        "build/REGRESSION",
        "build/HIDDEN_REGRESSION",
        "build/NO_CHANGE",
        "build/INCOMPLETE",
        "any/VIOLATION",
        "build/GREEN",
        "final-review/FIX[one writer]",
        "build/GREEN",
        "final-review/ACCEPTABLE",
    ], played.document["note"]
    assert played.document["outcome"] == "completed"
    assert played.assert_artifact_rule() == len(script)
    asked = played.dispatches("build")
    assert "measured" not in asked[0].artifacts
    for number, said in enumerate(("name 'greeet' is not defined", "passes on the code", "not GREEN: ", "breaks"), 1):
        assert said in asked[number].text("measured")
    assert "[HIGH] blank names pass" in asked[-1].text("findings")
    assert len(played.subjects()) == 2, "what the review found is in the same commit"
    assert "test_a_blank_name" in project.git("show", "HEAD~1")


@pytest.mark.broad
def test_one_writer_is_handed_what_is_proved_beside_what_is_not(tmp_path: Path) -> None:
    proof = {"test": {"path": "tests/test_blank.py", "content": BLANK_PROOF}}
    script = [
        built(),
        review(
            "review-result",
            "NEEDS WORK",
            {**finding("blank names pass", concern="production"), "proof": proof},
            finding("no word of it in the docstring", concern="production"),
        ),
        built(),
        review(
            "review-result", "NEEDS WORK", prior=[{"id": "final-1-02", "status": "resolved", "note": "it is there"}]
        ),
        again(BLANK, BLANK_TEST),
        RESULT_ACCEPTED,
    ]
    played = play(make_project(tmp_path), script, "--recipe", "solo")
    assert played.rows[3:-1] == [
        "final-review/FIX[one writer]",
        "build/GREEN",
        "final-review/PROVED[one writer]",
        "build/GREEN",
        "final-review/ACCEPTABLE",
    ], played.document["note"]
    for request in played.dispatches("build")[1:]:
        assert "def test_a_blank_name" in request.text("findings"), "what is proved is no task of its own here"
    assert played.document["outcome"] == "completed"


@pytest.mark.broad
def test_what_one_writer_does_not_bring_about_is_planned_with_its_work_as_a_patch(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    stopped = {"result": "INCOMPLETE", "blocking_issue": "it is two things"}
    script = [
        *({**again(GREET_DONE, TEST_GREET), "report": stopped},) * 3,
        judge("diagnose", diagnosis="split_needed", notes="plan it"),
        {"when": {"kind": "plan-and-tasks"}, "report": {**PLAN["report"], "tasks": [TASK]}},
        TESTS,
        MAKE,
        RESULT_ACCEPTED,
    ]
    played = play(project, script, "--recipe", "solo")
    assert played.document["outcome"] == "completed", (played.document["note"], played.rows)
    assert played.rows[4:9] == [
        "build/INCOMPLETE",
        "diagnose/SPLIT_NEEDED[asked by BUILD]",
        "plan/DRAFTED",
        "review-plan/NOT_ASKED",
        "split/NOT_ASKED",
    ]
    assert played.assert_artifact_rule() == len(script)
    assert "a name is needed" in played.asked("plan").text("previous_patch")
    assert played.asked("write-tests").document["task"] == "2"
    assert "Writers:" not in project.git("log", "-1", "--format=%B", "HEAD~1")


@pytest.mark.broad
def test_work_without_a_test_is_signed_off_or_not(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    why = {"result": "NOT_TESTABLE", "reason": "pure-wiring", "attempted": "nothing to call", "summary": "says it"}
    told = GREET.replace("Greetings.", "Greetings, for people.")
    script = [
        {**built({"greet.py": told.replace(*HI)}), "report": why},
        {**built({"greet.py": told}), "report": why},
        judge("not_testable", accepted=True, notes="only words"),
        RESULT_ACCEPTED,
    ]
    played = play(project, script, "--recipe", "solo")
    assert played.rows[2:-1] == [
        "build/REGRESSION",
        "build/NOT_TESTABLE",
        "check-tests/ACCEPTABLE[asked by BUILD]",
        "final-review/ACCEPTABLE",
    ], played.document["note"]
    assert played.assert_artifact_rule() == len(script)
    assert played.tasks() == {"1": "done"}
    assert "for people" in project.git("show", "work:greet.py")


def test_a_repository_says_which_recipe_an_issue_has_where_none_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.env |= {"REDFIRST_RECIPES__DEFAULT": "quick", "REDFIRST_RECIPES__LABELS__BUG": "solo"}

    def named(*words: str) -> str:
        return json.loads(project.redfirst("run", "GAL-1", *words, "--dry-run", "--json").stdout)["recipe"]["name"]

    assert (named(), named("--recipe", "issue")) == ("solo", "issue")
    project.env["REDFIRST_RECIPES__LABELS__BUG"] = "issue"
    assert named() == "issue"
    del project.env["REDFIRST_RECIPES__LABELS__BUG"]
    assert named() == "quick"
    project.env["REDFIRST_RECIPES__DEFAULT"] = "quik"
    assert 'no recipe "quik"' in project.redfirst("run", "GAL-1", "--dry-run").stderr


@pytest.mark.broad
def test_faults_that_no_test_of_one_writer_notices_come_back_to_it_once(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.probed = True
    weak = {"shop.py": SHOP, "tests/test_shop.py": BLIND}
    strong = {"tests/test_shop.py": GOOD}
    played = play(project, [built(weak), built(strong), RESULT_ACCEPTED], "--recipe", "solo")
    assert played.rows[2:4] == ["build/UNNOTICED_FAULTS", "build/GREEN"], played.document["note"]
    assert "not noticed" in played.asked("build", 2).text("measured")
    phases = json.loads(project.redfirst("show", "run-GAL-1", "--json").stdout)
    assert phases["outcome"] == "completed"


# --- where tests do not compile over code that lacks a name: stubs come from the writer's own signatures --------------


@dataclass(frozen=True)
class Work:
    """A project in which `double` gives back what it got, and what one writer makes of it; `triple` is new."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    red: frozenset[str]


_RUST_TEST = (
    "\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
    "    #[test]\n    fn zero() {\n        assert_eq!(double(0), 0);\n    }\n%s}\n"
)
_RUST_NEW = (
    "    #[test]\n    fn two() {\n        assert_eq!(double(2), 4);\n    }\n"
    "    #[test]\n    fn three() {\n        assert_eq!(triple(2), 6);\n    }\n"
)
RUST = Work(
    {"Cargo.toml": CRATE, "src/lib.rs": "pub fn double(n: i32) -> i32 {\n    n\n}\n" + _RUST_TEST % ""},
    {
        "src/lib.rs": (
            "pub fn double(n: i32) -> i32 {\n    triple(n) - n\n}\n\npub fn triple(n: i32) -> i32 {\n    n * 3\n}\n"
            + _RUST_TEST % _RUST_NEW
        )
    },
    frozenset({"two", "three"}),
)
_GO_TEST = (
    'package greet\n\nimport "testing"\n\n'
    "func TestZero(t *testing.T) {\n\tif Double(0) != 0 {\n\t\tt.Fatal(0)\n\t}\n}\n"
)
_GO_NEW = (
    '\nfunc TestTwo(t *testing.T) {\n\tif got := Double(2); got != 4 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
    '\nfunc TestThree(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
)
GO = Work(
    {
        "go.mod": MODULE,
        "double.go": "package greet\n\n// Double doubles.\nfunc Double(n int) int {\n\treturn n\n}\n",
        "double_test.go": _GO_TEST,
    },
    {
        "double.go": (
            'package greet\n\nimport "math"\n\n'
            "// Double doubles.\nfunc Double(n int) int {\n\treturn Triple(n) - n\n}\n\n"
            "// Triple triples.\nfunc Triple(n int) int {\n\treturn int(math.Round(float64(n) * 3))\n}\n"
        ),
        "double_test.go": _GO_TEST + _GO_NEW,
    },
    frozenset({"TestTwo", "TestThree"}),
)
_NODE_TEST = (
    'import { test } from "node:test";\nimport assert from "node:assert";\nimport { %s } from "./double.mjs";\n\n'
    'test("zero", () => assert.equal(double(0), 0));\n'
)
NODE = Work(
    {
        "package.json": '{"name": "greet", "version": "1.0.0", "type": "module", "scripts": {"test": "node --test"}}\n',
        "double.mjs": "export function double(n) {\n  return n;\n}\n",
        "double.test.mjs": _NODE_TEST % "double",
    },
    {
        "double.mjs": (
            "export function double(n) {\n  return triple(n) - n;\n}\n\n"
            "export function triple(n) {\n  return n * 3;\n}\n"
        ),
        "double.test.mjs": _NODE_TEST % "double, triple"
        + 'test("two", () => assert.equal(double(2), 4));\ntest("three", () => assert.equal(triple(2), 6));\n',
    },
    frozenset({"two", "three"}),
)


@pytest.mark.broad
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(RUST, marks=needs_cargo, id="rust"),
        pytest.param(GO, marks=needs_go, id="go"),
        pytest.param(NODE, id="node"),
    ],
)
def test_tests_of_one_writer_are_red_over_its_own_signatures_and_no_dispatch_is_spent(
    work: Work, tmp_path: Path
) -> None:
    project = make_project(tmp_path, {**work.before, **TRACKER})
    if "Cargo.toml" in work.before or "go.mod" in work.before:
        of = crates if "Cargo.toml" in work.before else modules
        project.env["PATH"] = f"{of.environment().prefix / 'bin'}:{project.environment()['PATH']}"
    script = [
        {"when": {"kind": "build"}, "files": dict(work.after), "report": {"result": "COMPLETE", "summary": "doubles"}},
        RESULT_ACCEPTED,
    ]
    played = play(project, script, "--recipe", "solo")
    assert played.rows[2:] == ["build/GREEN", "final-review/ACCEPTABLE", "publish/PUBLISHED"], played.document
    red = json.loads(played.artifact("evidence/task-1.json"))["ledger"]["red"]
    assert {id_.replace("::", " ").split()[-1] for id_ in red} == work.red
    assert len(played.subjects()) == 2, "stubs are no commit of their own"
    verified = project.redfirst("verify", "run-GAL-1", "--json")
    commits = json.loads(verified.stdout)["commits"]
    assert (verified.returncode, commits[0]["red_over"]) == (0, "signatures"), verified.stdout
