"""What `redfirst tdd` says to who tests what is not written yet, in each language, and of tests that assert nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import TRACKER
from kit import make_project
from languages.crates import MANIFEST, needs_cargo
from languages.crates import environment as cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


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
CRATE = {"Cargo.toml": MANIFEST, ".gitignore": "target/\nCargo.lock\n", **TRACKER}


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
