"""The region rule against rustc: what is accepted must be the same production code for the compiler."""

from __future__ import annotations

import os
from functools import cache
from itertools import product

import pytest
from fuzz import rustc
from fuzz.rust_soup import CLOSINGS, MACRO, OPENINGS
from fuzz.targets import regions
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.region_cases import BASE, EDITS_INSIDE, NEW_REGIONS

from pipeline.testing.languages.rust.sources import modules, parse
from pipeline.testing.languages.rust.test_regions import region_fault

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not rustc.is_there(), reason="there is no rustc; scripts/system-packages.sh installs it"),
]

EXAMPLES = int(os.environ.get("REDFIRST_FUZZ_EXAMPLES", "400"))
production_syntax, production_code = cache(rustc.production_syntax), cache(rustc.production_code)
PRODUCTION = f"{MACRO}pub fn f() {{}}\n#[cfg(test)]\nmod t {{"


def trap(opening: str, closing: str) -> str:
    """Return a file in which one of two readers finds the module closed early, and `evil` behind it."""
    return f"{PRODUCTION} m!{{ {opening} }} }} pub fn evil() {{}} mod z {{ m!{{ {closing} }} }}\n"


@pytest.mark.parametrize(
    ("old", "new"), [*(pytest.param(BASE, *case.values, id=case.id) for case in EDITS_INSIDE), *NEW_REGIONS]
)
@pytest.mark.broad(but_first=2)
def test_the_cases_that_are_accepted_compile_to_the_same_code(old: str, new: str) -> None:
    before, after = old.encode(), new.encode()
    assert region_fault("src/lib.rs", before, after) is None
    for edition in filter(rustc.knows, rustc.EDITIONS):
        expected = production_syntax(before, edition)
        assert expected
        assert rustc.production_syntax(after, edition) == expected
    assert production_code(before, "2021") == rustc.production_code(after, "2021")


def test_the_compiler_sees_a_change_where_there_is_one() -> None:
    old, new = f"{PRODUCTION}}}\n", f"{PRODUCTION}}}\npub fn evil() {{}}\n"
    for judge in (rustc.production_syntax, rustc.production_code):
        assert judge(old.encode(), "2021") is not None
        assert judge(old.encode(), "2021") != judge(new.encode(), "2021")
        assert judge(old.encode(), "2021") == judge(b"\n// moved\n" + old.encode(), "2021")


@pytest.mark.parametrize("opening", ['cr#""', '"a"r#""', "'a'r#\"\"", '1r#""'])
def test_code_that_only_rustc_sees_outside_of_the_module_is_refused(opening: str) -> None:
    old, new = f"{PRODUCTION}}}\n".encode(), trap(opening, '"#/*"*/').encode()
    assert rustc.production_syntax(new, "2018") not in {None, rustc.production_syntax(old, "2018")}
    assert region_fault("src/lib.rs", old, new) is not None


def test_the_parser_alone_would_be_deceived() -> None:
    tree = parse(trap('"a"r#""', '"#/*"*/').encode())
    assert not tree.has_error
    assert len(modules(tree)) == 1, "`mod z` is a string to it"


@pytest.mark.parametrize("edition", rustc.EDITIONS)
@pytest.mark.broad(but_first=1)
def test_no_trap_between_two_lexers_is_accepted_with_other_code(edition: str) -> None:
    old = f"{PRODUCTION}}}\n".encode()
    before = rustc.production_syntax(old, edition)
    accepted = 0
    for opening, closing in product(OPENINGS, CLOSINGS):
        new = trap(opening, closing).encode()
        if region_fault("src/lib.rs", old, new) is None:
            accepted += 1
            assert rustc.production_syntax(new, edition) in {before, None}, new
    assert accepted, "traps that every reader sees through are accepted"


@settings(max_examples=EXAMPLES, deadline=None, derandomize="REDFIRST_FUZZ_EXAMPLES" not in os.environ)
@given(st.binary(min_size=3, max_size=14))
def test_an_accepted_edit_is_the_same_production_code(data: bytes) -> None:
    regions(data)
