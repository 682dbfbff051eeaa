"""`tdd` and `verify` tell of means of forging test results in production, and refuse nothing for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.test_rust_issue import make as make_rust
from kit import GREET_DONE, HONEST, MAKE, TEST_GREET_NEW, make_project
from languages.crates import MANIFEST, needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CODE = f"import ast\n\nast.parse = ast.parse\n{GREET_DONE}"
TOLD = "greet.py:3 changes `ast.parse` (what the tests use, too); test results can be forged so"


@pytest.mark.broad
def test_tdd_tells_of_them(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({"tests/test_greet.py": TEST_GREET_NEW, "greet.py": CODE})
    for which in ("check-red", "check-green"):
        document = project.document("tdd", which)
        assert (document["_code"], TOLD in document["notes"]) == (0, True), document
    said = project.redfirst("tdd", "check-green")
    assert (said.returncode, f"note: {TOLD}" in said.stdout) == (0, True), said


@pytest.mark.broad
def test_verify_tells_of_them(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    made = {**MAKE, "files": {"greet.py": CODE}}
    project.use_script([made if entry is MAKE else entry for entry in HONEST])
    assert project.run()["_code"] == 0
    document = project.document("verify", "run-GAL-1")
    assert (document["_code"], TOLD in document["commits"][0]["notes"]) == (0, True), document
    said = project.redfirst("verify", "run-GAL-1")
    assert (said.returncode, f"note: {TOLD}" in said.stdout) == (0, True), said


@needs_cargo
@pytest.mark.broad
def test_tdd_tells_of_rust_that_runs_while_tests_are_compiled(tmp_path: Path) -> None:
    macro = (
        "use proc_macro::TokenStream;\n#[proc_macro]\npub fn two(_: TokenStream) -> TokenStream { half() }\nmod half;\n"
    )
    half = "use half::half;\n"
    code = {
        "Cargo.toml": f'[workspace]\nmembers = ["mac"]\n{MANIFEST}[dependencies]\nmac = {{ path = "mac" }}\n',
        "mac/Cargo.toml": MANIFEST.replace("greet", "mac") + "[lib]\nproc-macro = true\n",
        "mac/src/lib.rs": half + macro,
        "mac/src/half.rs": 'pub fn half() -> proc_macro::TokenStream { "2".parse().unwrap() }\n',
        "src/lib.rs": "pub fn two() -> u32 { mac::two!() }\n",
        "build.rs": "fn main() {}\n",
        "tests/two.rs": "#[test]\nfn is_two() {\n    assert_eq!(greet::two(), 2);\n}\n",
    }
    project = make_rust(tmp_path, code)
    with (project.root / "tests/two.rs").open("a") as tests:
        tests.write("#[test]\nfn is_even() {\n    assert_eq!(greet::two() % 2, 0);\n}\n")
    for name in ("mac/src/half.rs", "build.rs"):
        with (project.root / name).open("a") as source:
            source.write("// changed\n")
    notes = project.document("tdd", "check-green")["notes"]
    for name, what in (("mac/src/half.rs", "procedural macro"), ("build.rs", "build script")):
        assert (
            f"{name} runs while tests are compiled (a {what}, or what one uses); test results can be forged so" in notes
        )
