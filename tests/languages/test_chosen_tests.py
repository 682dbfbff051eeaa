"""Tests that an agent names by our ids: which runner gets which, as which command; and that the commands run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from languages import direct
from languages.direct import write

from pipeline.testing.languages.runners import chosen_tests
from pipeline.testing.languages.runners.chosen_tests import commands, share

PYTEST: dict[str, Any] = {
    "name": "pytest",
    "folder": "",
    "mark": "",
    "sources": [".py"],
    "argv": ["py", "-m", "pytest"],
}
CARGO: dict[str, Any] = {"name": "cargo", "folder": "", "mark": "", "sources": [".rs"], "argv": ["cargo", "test"]}
RUST: dict[str, Any] = {**CARGO, "folder": "rust", "mark": "rust::"}
GO: dict[str, Any] = {"name": "go", "folder": "", "mark": "", "sources": [".go"], "argv": ["go", "test"]}
WEB: dict[str, Any] = {
    "name": "node", "folder": "web", "mark": "web/", "sources": [".js", ".ts"], "argv": ["node", "--test"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("selector", "runner", "inside"),
    [
        ("tests/test_a.py::test_b[1]", PYTEST, "tests/test_a.py::test_b[1]"),
        ("tests/test_a.py", PYTEST, "tests/test_a.py"),
        ("rust::greet::lib::tests::x", RUST, "greet::lib::tests::x"),
        ("rust/tests/a.rs", RUST, "tests/a.rs"),
        ("web/a.test.ts::sums > two", WEB, "a.test.ts::sums > two"),
        ("svc/pkg::TestX/sub", GO, "svc/pkg::TestX/sub"),
        (".::TestX", GO, ".::TestX"),
        ("svc/a_test.go", GO, "svc/a_test.go"),
    ],
)
def test_a_test_goes_to_the_runner_that_has_it(selector: str, runner: dict[str, Any], inside: str) -> None:
    runners = [PYTEST, RUST, WEB, GO]
    shares, nobodys = share(runners, [selector])
    assert nobodys == []
    assert shares[runners.index(runner)] == [inside]
    assert sum(map(len, shares)) == 1


def test_what_nobody_has_is_said() -> None:
    assert share([PYTEST, RUST], ["nothing::here", "docs/a.md"]) == ([[], []], ["nothing::here", "docs/a.md"])


def test_one_runner_alone_gets_what_cannot_be_told() -> None:
    assert share([CARGO], ["tests::part_of_a_name"]) == ([["tests::part_of_a_name"]], [])


@pytest.mark.parametrize(
    ("runner", "chosen", "expected"),
    [
        (PYTEST, [], ["py -m pytest"]),
        (PYTEST, ["a.py::x", "b.py"], ["py -m pytest a.py::x b.py"]),
        (CARGO, [], ["cargo test"]),
        (CARGO, ["greet::lib::tests::x"], ["cargo test -p greet --lib -- --exact tests::x"]),
        (
            CARGO,
            ["greet::lib::a", "greet::lib::b", "polite::test/it::c", "polite::bin/cli::d"],
            [
                "cargo test -p greet --lib -- --exact a b",
                "cargo test -p polite --test it -- --exact c",
                "cargo test -p polite --bin cli -- --exact d",
            ],
        ),
        (CARGO, ["greet::doc::src/lib.rs::greet#2"], ["cargo test -p greet --doc -- greet"]),
        (CARGO, ["tests/it.rs"], ["cargo test --test it"]),
        (CARGO, ["src/lib.rs"], ["cargo test"]),
        (CARGO, ["part"], ["cargo test -- part"]),
        (GO, [".::TestX"], ["go test -run ^(TestX)$ ."]),
        (
            GO,
            ["a/b::TestX/sub", "a/b::TestY", "c::TestZ"],
            ["go test -run ^(TestX|TestY)$ ./a/b", "go test -run ^(TestZ)$ ./c"],
        ),
        (GO, ["a/x_test.go"], ["go test ./a"]),
        (WEB, ["a.test.js::x > y", "a.test.js::z", "b.test.js"], ["node --test a.test.js b.test.js"]),
    ],
)  # fmt: skip
def test_what_is_started(runner: dict[str, Any], chosen: list[str], expected: list[str]) -> None:
    assert [" ".join(command) for command in commands(runner, chosen)] == expected


def test_arguments_for_the_tests_themselves_stay_behind_the_dashes() -> None:
    runner = {**CARGO, "argv": ["cargo", "test", "--all-features", "--", "--test-threads=1"]}
    (command,) = commands(runner, ["greet::lib::x"])
    assert " ".join(command) == "cargo test --all-features -p greet --lib -- --test-threads=1 --exact x"
    assert commands(runner, ["tests/a.rs"]) == [
        ["cargo", "test", "--all-features", "--test", "a", "--", "--test-threads=1"]
    ]


@pytest.mark.slow
def test_any_end_of_an_id_runs_that_test_and_a_wrong_one_is_told_with_those_near_it(tmp_path: Path) -> None:
    tests = "import pytest\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_case(a): pass\n\ndef test_both(): pass\n"
    root = write(tmp_path / "view", {"a/tests/test_a.py": tests, "b/tests/test_b.py": tests.replace("case", "more")})
    argv = [*direct.environment().command, "--disable-plugin-autoload", "-p", "no:cacheprovider"]  # faster starts
    runners = [{**PYTEST, "folder": folder, "mark": f"{folder}/", "argv": argv} for folder in ("a", "b")]

    def run(*selectors: str, over: list[dict[str, Any]] = runners, folder: str = ".") -> tuple[int, str]:
        argv = [sys.executable, "-I", "-S", str(Path(chosen_tests.__file__)), json.dumps(over), *selectors]
        done = subprocess.run(argv, cwd=root / folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    one: dict[str, Any] = {"over": [{**PYTEST, "argv": argv}], "folder": "a"}
    # one lists quietly, and one loudly
    both = [{**runner, "argv": [*argv, how]} for runner, how in zip(runners, ("-q", "-v"), strict=True)]
    code, said = run("test_case", "b/tests/test_b.py::test_both", "test_more", over=both)
    assert (code, "2 passed" in said, "3 passed" in said) == (0, True, True), said
    code, said = run("test_a.py::test_case[2]", **one)
    assert (code, "1 passed" in said) == (0, True), said
    code, said = run("test_both", "test_cases")
    assert code == 2
    assert "2 tests end in test_both: a/tests/test_a.py::test_both, b/tests/test_b.py::test_both" in said
    assert "no test is called test_cases; near it: a/tests/test_a.py::test_case" in said
    code, said = run("tests/test_a.py::test_bath", **one)
    assert code in {2, 4}
    assert "no test is called tests/test_a.py::test_bath; near it: tests/test_a.py::test_both" in said
