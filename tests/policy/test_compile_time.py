"""Rust sources that run while tests are compiled are told of, whatever changes in them."""

from __future__ import annotations

import pytest

from pipeline.testing.languages.rust import compile_time

SHOP = '[package]\nname = "shop"\n'
MANIFESTS = {
    "Cargo.toml": f'[workspace]\nmembers = ["*"]\n[workspace.dependencies]\nwords = {{ path = "words" }}\n{SHOP}'
    '[dependencies]\nmac = { path = "mac" }\nplain = { path = "plain" }\n',
    "mac/Cargo.toml": '[package]\nname = "mac"\n[lib]\nproc-macro = true\n[dependencies]\nwords.workspace = true\n',
    "words/Cargo.toml": '[package]\nname = "words"\n[dependencies]\nletters = { path = "../letters" }\n',
    "letters/Cargo.toml": '[package]\nname = "letters"\n[dev-dependencies]\nplain = { path = "../plain" }\n',
    "plain/Cargo.toml": '[package]\nname = "plain"\nbuild = "make/main.rs"\n[target."cfg(unix)".build-dependencies]\n'
    'tool = { path = "../tool" }\n',
    "tool/Cargo.toml": '[package]\nname = "tool"\nbuild = false\n',
    "broken/Cargo.toml": "[package\n",
}
MACRO = "a procedural macro, or what one uses"
SCRIPT = "a build script, or what one uses"


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("mac/src/lib.rs", MACRO),
        ("mac/src/deep/below.rs", MACRO),
        ("words/src/lib.rs", MACRO),
        ("letters/src/lib.rs", MACRO),
        ("build.rs", SCRIPT),
        ("plain/make/main.rs", SCRIPT),
        ("plain/make/more.rs", SCRIPT),
        ("tool/src/lib.rs", SCRIPT),
    ],
)
def test_what_runs_while_tests_are_compiled_is_told(path: str, what: str) -> None:
    manifests = {name: text.encode() for name, text in MANIFESTS.items()}
    (told,) = compile_time.notes(path, manifests)
    assert told == f"{path} runs while tests are compiled ({what}); test results can be forged so"


@pytest.mark.parametrize(
    "path", ["src/lib.rs", "plain/src/lib.rs", "plain/build.rs", "broken/src/lib.rs", "mac/notes.md"]
)
def test_other_sources_are_not(path: str) -> None:
    assert compile_time.notes(path, {name: text.encode() for name, text in MANIFESTS.items()}) == ()


def test_where_no_manifest_is_known_nothing_is_told() -> None:
    assert compile_time.notes("build.rs", {}) == ()
