"""Stubs in the place of what a task names, and what a change introduces: from sources alone, in each language."""

from __future__ import annotations

import ast
import shutil
import subprocess
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.modules import MANIFEST, needs_go
from languages.stub_sources import BODY, CRATE, GO, PYTHON, SCRIPT, TYPED, Source

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources import stubs
from pipeline.testing.languages.sources.stubs import with_old_bodies

if TYPE_CHECKING:
    from pathlib import Path

PANICS = 'panic("not implemented")'
TODO = "{ #![allow(unused)] todo!() }"
REPLACED = [
    (GO, "Greet", "string {\n\treturn greeting", f"string {{ {PANICS};\n\treturn greeting"),
    (GO, "greet.Greet", "string {\n\treturn greeting", f"string {{ {PANICS};\n\treturn greeting"),
    (GO, "Greeter.Polite", "bool { return", f"bool {{ {PANICS}; return"),
    (GO, "(*Greeter).Polite", "bool { return", f"bool {{ {PANICS}; return"),
    (GO, "Shout", "string { return name", f"string {{ {PANICS}; return name"),
    (GO, "Limit", "Limit = 3", f"Limit = {PANICS}"),
    (SCRIPT, "greet", "{\n  return `Hello, ${name}!`;\n}", BODY),
    (SCRIPT, "shout", "greet(name).toUpperCase()", BODY),
    (SCRIPT, "pick", "({ a });", f"{BODY};"),
    (SCRIPT, "Greeter.polite", "{ return true; }", BODY),
    (SCRIPT, "Greeter#polite", "{ return true; }", BODY),
    (SCRIPT, "Greeter.constructor", "{ this.name = name; }", BODY),
    (SCRIPT, "Greeter.later", "{ return 2; }", BODY),
    (SCRIPT, "Greeter.rude", "{ return false; }", BODY),
    (SCRIPT, "api.bye", "2,", f"{BODY},"),
    (SCRIPT, "extra", "function () { return 1; }", f"function () {BODY}"),
    (SCRIPT, "LIMIT", "LIMIT = 3", "LIMIT = undefined"),
    (TYPED, "over", "{ return a; }", BODY),
    (TYPED, "Base", "{ return 'b'; }", BODY),
    (TYPED, "Deep", "{ return 1; }", BODY),
    (TYPED, "Deep.inner", "{ return 1; }", BODY),
    (TYPED, "default", "{ x(); }", BODY),
    (TYPED, "LIMIT", "= 3", "= undefined as never"),
    (CRATE, "greet", '{\n    format!("Hello, {name}!")\n}', TODO),
    (CRATE, "Greeter.polite", "{ true }", TODO),
    (CRATE, "Greeter::polite", "{ true }", TODO),
    (CRATE, "crate::Greeter::polite", "{ true }", TODO),
    (CRATE, "Speak", "{ 1 }", TODO),
    (CRATE, "deep", "{ 7 }", TODO),
    (CRATE, "inner::deep", "{ 7 }", TODO),
    (CRATE, "inner", "{ 7 }", TODO),
    (CRATE, "LIMIT", "= 3;", "= todo!();"),
]
"""What a name means, and what becomes of it; every other byte stays."""


@pytest.mark.parametrize(("language", "name", "old", "new"), REPLACED)
def test_a_function_loses_its_body_or_a_value_itself_and_nothing_else_changes(
    language: Source, name: str, old: str, new: str
) -> None:
    assert old in language.source
    assert language.stubbed(name) == (language.source.replace(old, new), ())


@pytest.mark.parametrize(
    ("language", "name", "stub", "count"),
    [(GO, "Greeter", PANICS, 2), (CRATE, "Greeter", TODO, 3), (SCRIPT, "Greeter", BODY, 5), (SCRIPT, "api", BODY, 2)],
)
def test_a_type_loses_the_bodies_of_all_its_functions(language: Source, name: str, stub: str, count: int) -> None:
    assert language.stubbed(name)[0].count(stub) == count


def test_a_class_without_functions_cannot_be_made_and_a_mere_type_stays() -> None:
    assert "constructor(..._arguments: any[]) { throw" in TYPED.stubbed("Empty")[0]
    assert TYPED.stubbed("Shape", "Color") == (TYPED.source, ())


@pytest.mark.parametrize(
    ("language", "value", "function", "text"),
    [(GO, "Limit", "Greet", "Limit = 3"), (SCRIPT, "LIMIT", "greet", "LIMIT = 3"), (CRATE, "LIMIT", "greet", "= 3;")],
)
def test_a_value_stays_where_there_is_a_function(language: Source, value: str, function: str, text: str) -> None:
    assert text in language.stubbed(value, function)[0]


@pytest.mark.parametrize(
    ("language", "names"),
    [(GO, ("Nobody",)), (SCRIPT, ("nobody", "Greeter.nobody")), (CRATE, ("nobody", "it"))],
)
def test_what_is_unknown_is_said_and_test_code_is_left_alone(language: Source, names: tuple[str, ...]) -> None:
    assert language.stubbed(*names) == (language.source, names)
    assert language.stubbed("greet", path="other") == (language.source, ("greet",))
    done = stubs.stub_symbols(GO.package, {"greet_test.go": GO.source}, [Symbol("", "Greet")])
    assert (dict(done.files), [symbol.name for symbol in done.unknown]) == ({}, ["Greet"])


@pytest.mark.broad(but_first=1)
@needs_go
@pytest.mark.slow
@pytest.mark.parametrize("names", [("Greet",), ("Greeter", "Shout"), ("Greeter.Polite",)])
def test_stubbed_go_compiles(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "go.mod").write_text(MANIFEST)
    (tmp_path / "greet.go").write_text(GO.stubbed(*names)[0], encoding="utf-8")
    go = shutil.which("go")
    assert go is not None
    built = subprocess.run([go, "build", "./..."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


@pytest.mark.parametrize(
    ("language", "before", "new", "everything"),
    [
        (
            GO,
            GO.source.replace("Polite", "Rude").replace("Limit", "Most"),
            "Limit Greeter.Polite",
            "Limit greeting Greet Greeter Greeter.Polite Greeter.String Shout Speaker",
        ),
        (
            SCRIPT,
            SCRIPT.source.replace("polite", "rough").replace("const shout", "const cry"),
            "shout Greeter.polite",
            None,
        ),
        (TYPED, TYPED.source, "", "Shape Color over Base Base.area Base.name Empty LIMIT add Deep Deep.inner default"),
        (
            CRATE,
            CRATE.source.replace("pub fn polite", "fn rude").replace("mod inner", "mod outer").replace("deep", "flat"),
            "Greeter.polite deep",
            "LIMIT greet Greeter Greeter.new Greeter.polite Greeter.fmt Speak deep",
        ),
    ],
)
def test_what_a_change_introduces(language: Source, before: str, new: str, everything: str | None) -> None:
    assert language.introduced(before) == new.split()
    assert everything is None or language.introduced() == everything.split()


def test_what_only_moved_in_its_go_package_and_a_test_is_not_new() -> None:
    moved = {"greet.go": GO.source, "x_test.go": GO.source.replace("Greet", "Bye")}
    assert stubs.introduced(GO.package, {"old.go": GO.source}, moved) == ()


# --- Python


NEW = """import os

__all__ = ["greet"]
LIMIT: int = 3


class Name:
    size = 1


if os.name == "nt":
    def greet():
        return 1
else:
    async def greet():
        return 2
"""


def test_what_a_change_of_python_introduces() -> None:
    wanted = (Symbol("a.py", "LIMIT"), Symbol("a.py", "Name"), Symbol("a.py", "greet"))
    assert stubs.introduced(PYTHON.package, {}, {"a.py": NEW}) == wanted
    before = {"a.py": "LIMIT = 2\n\n\nclass Name:\n    pass\n", "b.py": "def greet():\n    pass\n"}
    assert stubs.introduced(PYTHON.package, before, {"a.py": NEW}) == (
        Symbol("a.py", "Name.size"),
        Symbol("a.py", "greet"),
    )
    cart = "class Cart:\n    def __init__(self, items):\n        self.items = items\n"
    more = "        self.total = 0\n    def __len__(self):\n        return 1\n\n\nclass New:\n    size = 1\n"
    found = stubs.introduced(PYTHON.package, {"a.py": cart}, {"a.py": cart + more})
    assert {one.name for one in found} == {"Cart.total", "Cart.__len__", "New"}
    assert stubs.introduced(PYTHON.package, {}, {"a.py": "def greet(:"}) == (), (
        "what cannot be parsed introduces nothing"
    )
    assert stubs.introduced(PYTHON.package, {"a.py": "def greet(:"}, {"a.py": "def greet(): ..."}) == (
        Symbol("a.py", "greet"),
    )


SOURCE = dedent('''
    """Grüße."""
    import functools

    LIMIT: int = 3

    def greet(name):  # keep
        """Say hello."""
        return f"hällo {name}"

    @functools.cache
    def cached(): return 1

    async def later():
        @functools.wraps(greet)
        def inner(): pass
        return inner

    class Greeter:
        kind = "x"

        def __init__(self, name):
            self.name = name

        @property
        def loud(self):
            return self.name.upper()

        class Inner:
            def deep(self):
                return 1

    class Plain(Exception): pass

    if True:
        def guarded():
            return 1
    ''').lstrip()


def stub(*names: str) -> str:
    return stubs.stub_symbols(PYTHON.package, {"a.py": SOURCE}, [Symbol("a.py", name) for name in names]).files.get(
        "a.py", SOURCE
    )


def run(source: str) -> dict[str, object]:
    scope: dict[str, object] = {}
    exec(compile(source, "a.py", "exec"), scope)  # noqa: S102  the edited source is what is tested
    return scope


@pytest.mark.parametrize(
    "call", ["greet('x')", "cached()", "guarded()", "Greeter('x')", "Plain()", "Greeter.Inner().deep()"]
)
def test_a_stubbed_symbol_raises_when_it_is_used(call: str) -> None:
    name = "Greeter.Inner.deep" if "deep" in call else call.partition("(")[0]
    with pytest.raises((NotImplementedError, TypeError)):
        eval(call, run(stub(name)))  # noqa: S307  the edited source is what is tested
    assert eval(call, run(SOURCE)) is not None  # noqa: S307  the same


def test_a_method_alone_can_be_stubbed() -> None:
    scope = run(stub("Greeter.loud"))
    assert eval("Greeter('x').name", scope) == "x"  # noqa: S307  the edited source is what is tested
    with pytest.raises(NotImplementedError):
        eval("Greeter('x').loud", scope)  # noqa: S307  the same


def test_a_module_variable_loses_its_value() -> None:
    assert run(stub("LIMIT"))["LIMIT"] is NotImplemented


def test_everything_outside_the_body_keeps_its_bytes() -> None:
    expected = SOURCE.replace('"""Say hello."""\n    return f"hällo {name}"', "raise NotImplementedError")
    assert stub("greet") == expected


def test_symbols_that_no_file_defines_are_named_and_what_is_not_python_is_left_alone() -> None:
    wanted = [Symbol("a.py", "greet"), Symbol("a.py", "absent"), Symbol("", "loud"), Symbol("gone.py", "greet")]
    stubbed = stubs.stub_symbols(PYTHON.package, {"a.py": SOURCE, "b.py": "x = 1\n"}, wanted)
    assert stubbed.unknown == (wanted[1], wanted[2], wanted[3])
    assert set(stubbed.files) == {"a.py"}
    assert stubs.stub_symbols(PYTHON.package, {"a.py": "def greet(:"}, [Symbol("a.py", "greet")]).files == {}


NAMES = ["LIMIT", "greet", "cached", "later", "Greeter", "Greeter.loud", "Greeter.Inner", "Plain", "guarded", "absent"]


@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_any_choice_of_symbols_leaves_valid_python_with_the_same_names(names: list[str]) -> None:
    def top(source: str) -> list[str]:
        return [getattr(node, "name", "") for node in ast.parse(source).body]

    assert top(stub(*names)) == top(SOURCE)
    assert stub(*names) == stub(*reversed(names))


# --- signatures as they are with the bodies that were


go = partial(with_old_bodies, "pipeline.testing.languages.go")
script = partial(with_old_bodies, "pipeline.testing.languages.javascript")
rust = partial(with_old_bodies, "pipeline.testing.languages.rust")

RUST_WAS = """
struct A;
impl A { fn one(&self) -> i32 { 1 } }
pub fn greet(n: &str) -> String { n.into() }
"""
RUST_NOW = """
struct A { more: i32 }
impl A { fn one(&self) -> i32 { 1 } fn two(&self) -> i32 { 2 } }
pub fn greet(n: &str) -> String { if n.is_empty() { n.into() } else { shout(n) } }
#[cfg(test)] mod tests { #[test] fn t() { assert!(true) } }
"""
GO_WAS = 'package a\nimport "fmt"\nfunc Greet(n string) string { return fmt.Sprint(n) }\n'
GO_NOW = (
    'package a\nimport ("fmt"; "strings")\nfunc Greet(n string) string { return fmt.Sprint(strings.ToUpper(n)) }\n'
    "func (p *T) New() int { return 1 }\n"
)
SCRIPT_WAS = "export function greet(n: string) { return n; }\nexport class A { one() { return 1; } }\n"
SCRIPT_NOW = (
    "export function greet(n: string, m = 1) { return shout(n); }\nexport const shout = (n: string) => { return n; };\n"
    "export class A { one() { return 1; } two() { return 2; } }\n"
)


def test_rust_has_old_bodies_and_todo_and_its_tests_as_they_are() -> None:
    found = rust({"a.rs": RUST_WAS}, {"a.rs": RUST_NOW}, kept=True)
    assert found.changed == (Symbol("a.rs", "greet", new=False),)
    text = found.files["a.rs"]
    assert "fn greet(n: &str) -> String { n.into() }" in text
    assert "struct A { more: i32 }" in text
    assert "fn two(&self) -> i32 { #![allow(unused)] todo!() }" in text
    assert "assert!(true)" in text
    bare = rust({"a.rs": RUST_WAS}, {"a.rs": RUST_NOW}, kept=False).files["a.rs"]
    assert "fn greet(n: &str) -> String { #![allow(unused)] todo!() }" in bare
    assert "fn one(&self) -> i32 { 1 }" in bare


@pytest.mark.parametrize("kept", [True, False])
def test_a_value_is_what_it_was_where_the_old_one_needs_no_name(kept: bool) -> None:
    was = 'impl A { const MAX: u32 = 5; }\npub static NAME: &str = "a b";\nconst OF: u32 = five();\nconst N: u8 = 1;\n'
    now = 'impl A { const MAX: u32 = 10; }\npub static NAME: &str = "c";\nconst OF: u32 = 6;\nconst N: u16 = 1_000;\n'
    wanted = (
        'impl A { const MAX: u32 = 5; }\npub static NAME: &str = "a b";\nconst OF: u32 = 6;\nconst N: u16 = 1_000;\n'
    )
    assert rust({"a.rs": was}, {"a.rs": now}, kept).files["a.rs"] == (wanted if kept else now)
    was, now = (f"package a\nconst Max = {each}\nvar (\n\tA, b = 1, 2\n\tC = {each}\n)\n" for each in ("5", "0x0a"))
    assert go({"a.go": was}, {"a.go": now}, kept).files["a.go"] == (was if kept else now)
    was, now = (f"export const MAX = {each};\nlet made = {{ a: {each} }};\n" for each in ("'it\\'s'", "`b`"))
    assert script({"a.ts": was}, {"a.ts": now}, kept).files["a.ts"].startswith((was if kept else now).split(";")[0])


def test_go_keeps_what_a_file_imports_in_use() -> None:
    found = go({"a.go": GO_WAS}, {"a.go": GO_NOW}, kept=True)
    assert found.changed == (Symbol("a.go", "Greet", new=False),)
    assert "{ if true { return fmt.Sprint(n) }; return fmt.Sprint(strings.ToUpper(n)) }" in found.files["a.go"]
    assert '(p *T) New() int { panic("not implemented"); return 1 }' in found.files["a.go"]
    assert (
        'Greet(n string) string { panic("not implemented"); '
        in go({"a.go": GO_WAS}, {"a.go": GO_NOW}, False).files["a.go"]
    )


@pytest.mark.parametrize("kept", [True, False])
def test_script_has_stubs_for_functions_that_are_new_or_do_not_fit(kept: bool) -> None:
    text = script({"a.ts": SCRIPT_WAS}, {"a.ts": SCRIPT_NOW}, kept).files["a.ts"]
    assert ("greet(n: string, m = 1) { return n; }" in text) is kept
    assert 'shout = (n: string) => { throw new Error("not implemented"); }' in text
    assert 'one() { return 1; } two() { throw new Error("not implemented"); }' in text
