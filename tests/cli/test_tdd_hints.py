"""What `redfirst tdd` says to who tests what is not written yet, in each language, and of tests that assert nothing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import TRACKER
from kit import make_project
from languages.crates import MANIFEST, needs_cargo
from languages.crates import environment as cargo
from languages.modules import environment as go
from languages.modules import needs_go

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no node")

RUST = "pub fn twice(n: i32) -> i32 {\n    n * 2\n}\n"
BESIDE = """
#[cfg(test)]
mod tests {{
    use super::*;

    #[test]
    fn doubles() {{
        assert_eq!(twice(2), 4);
    }}
{more}}}
"""
TRIPLES = "\n    #[test]\n    fn triples() {\n        assert_eq!(thrice(2), 6);\n    }\n"
IN_A_FILE = "use greet::thrice;\n\n#[test]\nfn triples() {\n    assert_eq!(thrice(2), 6);\n}\n"
CRATE = {"Cargo.toml": MANIFEST, ".gitignore": "target/\nCargo.lock\n", **TRACKER}
GO = "package sums\n\nfunc Twice(n int) int { return n * 2 }\n"
GO_TEST = """package sums

import "testing"

func TestTwice(t *testing.T) {
    if Twice(2) != 4 {
        t.Error("not twice")
    }
}
"""
GO_MORE = '\nfunc TestThrice(t *testing.T) {\n    if Thrice(2) != 6 {\n        t.Error("not thrice")\n    }\n}\n'
NODE = {
    "package.json": '{"name": "sums", "type": "module", "scripts": {"test": "node --test"}}\n',
    "sums.js": "export const twice = (n) => n * 2;\n",
    "sums.test.js": "import { test } from 'node:test';\nimport assert from 'node:assert';\n"
    "import * as sums from './sums.js';\ntest('twice', () => assert.equal(sums.twice(2), 4));\n",
    **TRACKER,
}


def red(project: Project, *argv: str) -> tuple[int, dict[str, Any]]:
    document = project.document("tdd", "check-red", *argv)
    assert document["_code"] == document.get("exit_code", 2), document["_stderr"]
    return document["_code"], document


def with_path(project: Project, folder: Path) -> Project:
    project.env["PATH"] = f"{folder}:{project.environment()['PATH']}"
    return project


@pytest.mark.broad
def test_python_names_what_may_be_to_come(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    test = "import greet\n\n\ndef test_parts():\n    assert greet.part('Ada') == 'Goodbye, Ada!'\n"
    project.write({"tests/test_part.py": test})
    code, document = red(project)
    assert (code, document["notes"]) == (7, ["if part is still to be written: --new part"])
    assert red(project, "--new", "part")[0] == 0
    project.write(
        {"tests/test_part.py": "from nosuchmodule import part\n\n\ndef test_parts():\n    assert part() == 1\n"}
    )
    code, document = red(project)
    assert code == 2
    assert "if nosuchmodule is still to be written: --new nosuchmodule" in document["error"]["message"]
    assert red(project, "--new", "nosuchmodule")[0] == 0


@needs_cargo
@pytest.mark.broad
def test_rust_beside_the_code(tmp_path: Path) -> None:
    files = {**CRATE, "src/lib.rs": RUST + BESIDE.format(more="")}
    project = with_path(make_project(tmp_path, files), cargo().prefix / "bin")
    project.write({"src/lib.rs": RUST + BESIDE.format(more=TRIPLES)})
    code, document = red(project)
    (test,) = document["tests"]
    assert (code, test["measured"]) == (7, "IMPORT_HIDES_TESTS")
    assert test["why"].startswith("does not compile: thrice does not exist yet")
    assert "import the module" not in test["why"]
    stub = RUST + "\npub fn thrice(_n: i32) -> i32 {\n    todo!()\n}\n"
    project.write({"src/lib.rs": stub + BESIDE.format(more="")})
    project.commit("a stub, as advised")
    project.write({"src/lib.rs": stub + BESIDE.format(more=TRIPLES)})
    assert red(project, "--base", "HEAD")[0] == 0


@needs_cargo
@pytest.mark.broad
def test_rust_in_a_new_file(tmp_path: Path) -> None:
    files = {**CRATE, "src/lib.rs": RUST + BESIDE.format(more="")}
    project = with_path(make_project(tmp_path, files), cargo().prefix / "bin")
    project.write({"tests/sums.rs": IN_A_FILE})
    code, document = red(project)
    assert (code, document["notes"]) == (7, ["if thrice is still to be written: --new thrice"])
    code, document = red(project, "--new", "thrice")
    assert (code, [test["measured"] for test in document["tests"]]) == (0, ["MISSING_BEHAVIOR"])


@needs_go
@pytest.mark.broad
def test_go_names_what_may_be_to_come_once(tmp_path: Path) -> None:
    files = {"go.mod": "module example.org/sums\n\ngo 1.19\n", "sums.go": GO, "sums_test.go": GO_TEST, **TRACKER}
    project = with_path(make_project(tmp_path, files), go().prefix / "bin")
    project.write({"sums_test.go": GO_TEST + GO_MORE})
    code, document = red(project)
    assert (code, document["notes"]) == (7, ["if Thrice is still to be written: --new Thrice"])
    (test,) = document["tests"]
    assert "undefined: Thrice" in test["why"]
    assert "undefined: undefined" not in test["why"]
    code, document = red(project, "--new", "Thrice")
    (test,) = document["tests"]
    assert (code, test["measured"]) == (7, "IMPORT_HIDES_TESTS")
    assert "does not compile: Thrice does not exist yet" in test["why"]
    assert 'panic("not implemented")' in test["why"]
    head = GO_TEST.partition("func")[0]
    project.write({"sums_test.go": GO_TEST, "thrice_test.go": head + GO_MORE.lstrip()})
    assert red(project, "--new", "Thrice")[0] == 0


@pytest.mark.broad
@needs_node
def test_node_names_what_may_be_to_come(tmp_path: Path) -> None:
    project = make_project(tmp_path, NODE)
    more = "test('thrice', () => assert.equal(sums.thrice(2), 6));\n"
    project.write({"sums.test.js": NODE["sums.test.js"] + more})
    code, document = red(project)
    assert code == 7
    assert "if thrice is still to be written: --new thrice" in document["notes"]
    assert red(project, "--new", "thrice")[0] == 0
