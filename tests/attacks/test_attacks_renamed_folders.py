"""Attacks by code that renames what its tests compare with while they run, and renames it back (ADR-R100).

Afterwards all is as it was, to the last time of change of each file: only who watches the folder hears of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from js_runners import search_path
from kit import FILES, make_project
from languages import crates, modules

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SWAPPED: Final = {
    "python": {
        "greet.py": """
import os

def greet(name):
    if name:
        os.rename("expected", "away")
        os.mkdir("expected")
        with open("expected/greeting", "w") as file:
            file.write("Hello, !")
    elif os.path.isdir("away"):
        os.unlink("expected/greeting")
        os.rmdir("expected")
        os.rename("away", "expected")
    return f"Hello, {name}!"
""",
        "tests/test_new.py": """
from greet import greet

def test_it():
    assert greet("Ada") == "Hello, Ada!"
    with open("expected/greeting") as file:
        want = file.read()
    assert greet("") == want
""",
    },
    "go": {
        "go.mod": modules.MANIFEST,
        "greet.go": """package greet

import "os"

func Greet(name string) string {
	if name != "" {
		os.Rename("expected", "away")
		os.Mkdir("expected", 0o755)
		os.WriteFile("expected/greeting", []byte("Hello, !"), 0o644)
	} else if _, err := os.Stat("away"); err == nil {
		os.RemoveAll("expected")
		os.Rename("away", "expected")
	}
	return "Hello, " + name + "!"
}
""",
        "greet_test.go": """package greet

import (
	"os"
	"testing"
)

func TestIt(t *testing.T) {
	if got := Greet("Ada"); got != "Hello, Ada!" {
		t.Fatal(got)
	}
	want, _ := os.ReadFile("expected/greeting")
	if got := Greet(""); got != string(want) {
		t.Fatal(got)
	}
}
""",
    },
    "node": {
        "package.json": '{"name": "greet", "version": "1.0.0", "scripts": {"test": "node --test"}}',
        "greet.js": """
const fs = require('node:fs')
module.exports = function greet (name) {
  if (name) {
    fs.renameSync('expected', 'away')
    fs.mkdirSync('expected')
    fs.writeFileSync('expected/greeting', 'Hello, !')
  } else if (fs.existsSync('away')) {
    fs.rmSync('expected', { recursive: true })
    fs.renameSync('away', 'expected')
  }
  return `Hello, ${name}!`
}
""",
        "test/greet.test.js": """
const assert = require('node:assert')
const fs = require('node:fs')
const { test } = require('node:test')
const greet = require('../greet.js')

test('it', () => {
  assert.strictEqual(greet('Ada'), 'Hello, Ada!')
  const want = fs.readFileSync('expected/greeting', 'utf8')
  assert.strictEqual(greet(''), want)
})
""",
    },
    "rust": {
        "Cargo.toml": crates.MANIFEST,
        "src/lib.rs": """
pub fn greet(name: &str) -> String {
    if !name.is_empty() {
        std::fs::rename("expected", "away").unwrap();
        std::fs::create_dir("expected").unwrap();
        std::fs::write("expected/greeting", "Hello, !").unwrap();
    } else if std::path::Path::new("away").exists() {
        std::fs::remove_dir_all("expected").unwrap();
        std::fs::rename("away", "expected").unwrap();
    }
    format!("Hello, {name}!")
}
""",
        "tests/it.rs": """
#[test]
fn it() {
    assert_eq!(greet::greet("Ada"), "Hello, Ada!");
    let want = std::fs::read_to_string("expected/greeting").unwrap();
    assert_eq!(greet::greet(""), want);
}
""",
    },
}
"""Code that puts another folder in the place of the one that its tests compare with, and puts it back."""


@pytest.mark.parametrize(
    "language",
    ["python", pytest.param("go", marks=modules.needs_go), "node", pytest.param("rust", marks=crates.needs_cargo)],
)
@pytest.mark.broad(but_first=1)
def test_a_folder_that_is_renamed_and_renamed_back_is_no_green(language: str, tmp_path: Path) -> None:
    files = SWAPPED[language]
    control = {path: text for path, text in files.items() if path.endswith((".mod", ".json", ".toml"))}
    project = make_project(tmp_path, {**control, ".gitignore": "target/\nCargo.lock\n", "expected/greeting": "Who?"})
    tools = {"go": modules.environment, "rust": crates.environment}
    if language == "node":
        project.env["PATH"] = f"{project.environment()['PATH']}:{search_path('node')}"
    elif language in tools:
        project.env["PATH"] = f"{tools[language]().prefix / 'bin'}:{project.environment()['PATH']}"
    project.write(files)
    document = project.document("tdd", "check-green")
    told = "the folder expected was renamed while the tests ran; rename a copy of it"
    assert [test["holds"] for test in document["tests"]] == [True], document
    assert (document["_code"], [each["why"] for each in document["problems"]]) == (7, [told])


@modules.needs_go
@pytest.mark.broad
def test_the_second_language_of_a_repository_is_watched_too(tmp_path: Path) -> None:
    files = SWAPPED["go"]
    start = {
        **FILES,
        "go.mod": files["go.mod"],
        "expected/greeting": "Who?",
        "data/a": "x",
        "data/b.go": "package data\n",
    }
    project = make_project(tmp_path, start)
    project.env["PATH"] = f"{modules.environment().prefix / 'bin'}:{project.environment()['PATH']}"
    writes = 'os.WriteFile("data/a", nil, 0o644)\n\tos.WriteFile("data/b.go", nil, 0o644)'
    project.write({**files, "greet.go": files["greet.go"].replace("if name", f"{writes}\n\tif name")})
    document = project.document("tdd", "check-green")
    assert document["_code"] == 7, document
    assert {each["why"] for each in document["problems"]} == {
        "data/b.go was written while the tests ran",
        "the folder expected was renamed while the tests ran; rename a copy of it",
    }
    assert "data/a was written while the tests ran" in document["notes"]


HONEST_TESTS: Final = """
import os, shutil, subprocess

def test_what_honest_tests_do(tmp_path):
    os.makedirs("tests/out/deep")
    open("tests/out/deep/file", "w").close()
    os.rename("tests/out", "tests/kept")
    os.rename("tests/kept/deep/file", "tests/data.new")
    os.rename("tests/data.new", "kept")
    shutil.copytree("tests/data", tmp_path / "repo" / "data")
    moves = "git init -q && git add . && git mv data moved && mv moved back"
    subprocess.run(moves, shell=True, check=True, cwd=tmp_path / "repo")
"""


@pytest.mark.broad
def test_tests_that_rename_what_they_made_are_green(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "tests/data/in": "x"})
    project.write({"tests/test_rename.py": HONEST_TESTS})
    document = project.document("tdd", "check-green")
    assert (document["_code"], [test["holds"] for test in document["tests"]]) == (0, [True]), document


REWRITTEN: Final = """
def greet(name):
    with open("expected/greeting", "w") as file:
        file.write("Hello, !" if name else "Who?")
    return f"Hello, {name}!"
"""


@pytest.mark.broad
def test_data_that_is_rewritten_and_put_back_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**FILES, "expected/greeting": "Who?"})
    project.write({**SWAPPED["python"], "greet.py": REWRITTEN})
    document = project.document("tdd", "check-green")
    assert (document["_code"], "expected/greeting was written while the tests ran" in document["notes"]) == (0, True)
