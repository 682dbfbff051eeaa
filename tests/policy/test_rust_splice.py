"""Production of one Rust text, test regions of another: nothing of either is lost, and nothing is guessed."""

from __future__ import annotations

import os
from functools import cache

import pytest
from fuzz import rustc
from fuzz.rust_soup import EDITIONS, edit
from hypothesis import example, given, settings
from hypothesis import strategies as st
from policy.region_cases import BASE, EDITS_INSIDE, NEW, NEW_REGIONS, PLAIN

from pipeline.testing.languages.rust.regions import RustFile, read_rust
from pipeline.testing.languages.rust.test_regions import only_test_regions, regions_of, splice
from pipeline.testing.languages.sources import Unspliced

EXAMPLES = int(os.environ.get("REDFIRST_FUZZ_EXAMPLES", "300"))
MADE = BASE.replace("a + b }", "a.wrapping_add(b) }").replace("pub fn f() {}", "pub fn f() { g(); }\n    fn g() {}")
TESTED = BASE.replace("add(1, 2), 3", "add(2, 2), 4").replace("f(); }", "f(); f(); }")
production_syntax = cache(rustc.production_syntax)


def spliced(tests: str, production: str) -> str:
    result = splice(tests.encode(), production.encode())
    assert not isinstance(result, Unspliced), result.why
    return result.decode()


def test_code_of_one_and_tests_of_the_other() -> None:
    assert MADE != BASE != TESTED
    result = spliced(TESTED, MADE)
    assert result == MADE.replace("add(1, 2), 3", "add(2, 2), 4").replace("f(); }", "f(); f(); }")
    assert only_test_regions("a.rs", MADE.encode(), result.encode())
    assert only_test_regions("a.rs", result.encode(), MADE.encode())
    assert regions_of(result.encode()) == regions_of(TESTED.encode())


@pytest.mark.parametrize(
    ("old", "new"), [*(pytest.param(BASE, *c.values, id=c.id) for c in EDITS_INSIDE), *NEW_REGIONS]
)
def test_over_code_that_did_not_change_the_result_is_the_tests_text(old: str, new: str) -> None:
    assert spliced(new, old) == new


@pytest.mark.parametrize(("old", "new"), NEW_REGIONS)
def test_a_region_that_only_the_production_has_goes(old: str, new: str) -> None:
    result = spliced(old, new)
    assert regions_of(result.encode()) == regions_of(old.encode())
    assert sorted(result.split()) == sorted(old.split())


HEAD = "pub fn a() {}\n"
CHANGED = "pub fn a() { b(); }\nfn b() {}\n"


def region(name: str, says: str = "") -> str:
    return f"#[cfg(test)]\nmod {name} {{{says}}}\n"


@pytest.mark.parametrize(
    ("tests", "production", "order"),
    [
        pytest.param([HEAD, "x"], [CHANGED], ["x"], id="at-the-end"),
        pytest.param([HEAD, "x", "y"], [CHANGED, "y"], ["x", "y"], id="before-the-next"),
        pytest.param([HEAD, "x", "y", "z"], [CHANGED, "x", "z"], ["x", "y", "z"], id="between"),
        pytest.param([HEAD, "x", "y", "z"], [CHANGED, "x"], ["x", "y", "z"], id="two-behind"),
        pytest.param([HEAD, "x", "y", "z"], [CHANGED, "z", "old"], ["x", "y", "z"], id="two-before"),
        pytest.param([HEAD, "x", "x"], [CHANGED, "x"], ["x", "x (2)"], id="the-same-name-twice"),
        pytest.param(["x", HEAD], [CHANGED, "old"], ["x"], id="instead-of-another"),
        pytest.param(["x", HEAD], [""], ["x"], id="no-code-left"),
    ],
)
def test_the_order_of_the_tests_is_kept(tests: list[str], production: list[str], order: list[str]) -> None:
    def text(parts: list[str], says: str) -> str:
        return "".join(region(part, says) if part.isalpha() else part for part in parts)

    result = spliced(text(tests, " /* new */ "), text(production, " /* old */ "))
    found = regions_of(result.encode())
    assert not isinstance(found, Unspliced)
    assert list(found) == order
    assert all(b"new" in inside for inside in found.values())


def test_a_region_stands_in_the_module_that_it_stood_in() -> None:
    tests = f"mod p {{\n    pub fn f() {{}}\n\n    {region('t').strip()}\n}}\nmod q {{\n    {region('u').strip()}\n}}\n"
    production = 'mod q {\n    pub fn h() {}\n}\nmod p {\n    pub fn f() { g() } // why\n    fn g() {} // not "}\n}\n'
    result = spliced(tests, production)
    assert regions_of(result.encode()).keys() == {"p::t", "q::u"}  # type: ignore[union-attr]
    assert result == spliced(tests, result)


def test_a_module_before_the_region_keeps_its_place_before_it() -> None:
    tests = f"{region('x')}mod p {{ {region('y')} }}\n"
    result = spliced(tests, f"{HEAD}mod p {{ {region('y')} pub fn k() {{}} }}\n")
    found = regions_of(result.encode())
    assert not isinstance(found, Unspliced)
    assert list(found) == ["x", "p::y"]


def test_attributes_of_a_region_are_the_tests() -> None:
    tests = f"{HEAD}#[cfg(test)]\n#[allow(unused)]\nmod t {{}}\n"
    production = f"{CHANGED}/// Doc of t.\n{region('t')}"
    assert spliced(tests, production) == f"{CHANGED}#[cfg(test)]\n#[allow(unused)]\nmod t {{}}\n"


@pytest.mark.parametrize(
    ("tests", "production", "why"),
    [
        (f"mod p {{ {NEW} }}\n", "fn a() {}\n", "has no module p, which p::tests stands in"),
        (f"{PLAIN}{NEW}\n", 'fn a() { "a"r#""#; }\n', "line 1 of the production file"),
        (f'{NEW}\nfn a() {{ "a"u8; }}\n', PLAIN, "line 6 of the file with the tests has a literal with a suffix"),
        (f"{PLAIN}{NEW}\n", "fn a() {}\n#[inline]\n", "cannot be put together"),
        (f"{PLAIN}{NEW}\n", "fn a() {}\n" * 30_000, "more than"),
        ("".join(region(f"t{n}") for n in range(1200)), "fn a() {}\n", "more than 1000 modules"),
    ],
)
def test_what_is_not_certain_is_not_guessed(tests: str, production: str, why: str) -> None:
    found = splice(tests.encode(), production.encode())
    assert isinstance(found, Unspliced)
    assert why in found.why


def test_windows_lines() -> None:
    result = spliced(TESTED.replace("\n", "\r\n"), MADE.replace("\n", "\r\n"))
    assert result == spliced(TESTED, MADE).replace("\n", "\r\n")


def production(source: bytes) -> list[bytes]:
    """Return the tokens outside of the regions: told by another way than the splice's own check."""
    file = read_rust(source)
    assert isinstance(file, RustFile)
    left = source
    for found in reversed(file.regions):
        left = left[: file.start(found)] + b" " + left[file.tokens.all[found.closing].end :]
    rest = read_rust(left)
    assert isinstance(rest, RustFile)
    assert not rest.regions
    return [token.text for token in rest.tokens.all]


@pytest.mark.slow
@given(st.binary(min_size=3, max_size=24), st.booleans())
@example(b"\x00\x00\x00", True)
def test_any_two_texts(data: bytes, turned: bool) -> None:
    made = edit(data)
    tests, code = (made.old, made.new) if turned else (made.new, made.old)
    result = splice(tests, code)
    if isinstance(result, Unspliced):
        return
    assert production(result) == production(code)
    assert regions_of(result) == regions_of(tests)
    assert splice(tests, result) == result
    if regions_of(code) == regions_of(tests):
        assert only_test_regions("a.rs", code, result)
        assert only_test_regions("a.rs", result, code)


@pytest.mark.slow
@pytest.mark.skipif(not rustc.is_there(), reason="there is no rustc; scripts/system-packages.sh installs it")
@settings(max_examples=EXAMPLES, deadline=None, derandomize="REDFIRST_FUZZ_EXAMPLES" not in os.environ)
@given(st.binary(min_size=3, max_size=24), st.sampled_from(EDITIONS), st.booleans())
@pytest.mark.broad
def test_for_the_compiler_it_is_the_same_production_code(data: bytes, edition: str, turned: bool) -> None:
    made = edit(data)
    tests, code = (made.old, made.new) if turned else (made.new, made.old)
    result = splice(tests, code)
    if isinstance(result, Unspliced) or result == code:
        return
    before = production_syntax(code, edition)
    if before is not None:
        assert production_syntax(result, edition) in {before, None}
