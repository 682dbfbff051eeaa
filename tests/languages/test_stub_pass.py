"""What a stub pass may change in each language: named symbols as stubs, and what it takes to reach them (ADR-7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.stub_sources import BODY, GO, PYTHON, RUST, SCRIPT, TYPED, Source

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources import stubs

PY_STUB = "    raise NotImplementedError\n"
GO_STUB = 'panic("not implemented")'
GO_BYE = f"\n// Bye parts.\nfunc Bye(name string) (string, error) {{\n\t// TODO\n\t{GO_STUB}\n}}\n"


def old(language: Source, name: str) -> Symbol:
    """Return a symbol that was there before."""
    return Symbol(language.path, name, new=False)


ADDED: dict[Source, list[tuple[str, list[str]]]] = {
    PYTHON: [
        (f"\n\ndef price(cart, rate=None):\n{PY_STUB}", ["price"]),
        (f'\n\ndef price(cart):\n    """Return it."""\n{PY_STUB}', ["price"]),
        (f"\n\nasync def price(cart):\n{PY_STUB}", ["price"]),
        ("\n\ndef price(cart):\n    raise NotImplementedError()\n", ["price"]),
        (
            f"    def drop(self, name):\n    {PY_STUB}".replace("    def", "\n\nclass Basket(Cart):\n    def"),
            ["Basket"],
        ),
        (f"\n\nclass Basket:\n    size: int = 0\n\n    def drop(self):\n    {PY_STUB}", ["Basket.drop"]),
        ("\n\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = enum.auto()\n", ["Colour"]),
        ("\n\nLIMIT = 30\n", ["LIMIT"]),
        ("\n\nName = str | None\n", ["Name"]),
        (f"\n\nimport enum\n\n\ndef price():\n{PY_STUB}\n\n__all__ = ['price']\n", ["price"]),
    ],
    RUST: [
        ("\npub fn price(cart: &Cart) -> u32 { todo!() }\n", ["price"]),
        ("\npub fn price(cart: &Cart) -> u32 {\n    // soon\n    todo!();\n}\n", ["crate::price"]),
        ("\nimpl Cart {\n    pub fn drop(&mut self) { todo!() }\n}\n", ["Cart::drop"]),
        ("\n#[derive(Debug)]\npub struct Coin { pub cents: u32 }\n", ["Coin"]),
        ("\npub struct Coin;\nimpl Clone for Coin { fn clone(&self) -> Coin { todo!() } }\n", ["Coin"]),
        ("\npub enum Kind { A, B(u32) }\n", ["Kind"]),
        ("\npub trait Priced { const UNIT: u32; fn price(&self); fn twice(&self) { todo!() } }\n", ["Priced"]),
        ("\npub const LIMIT: u32 = 30;\n", ["LIMIT"]),
        ("\npub mod coins;\nuse coins::Coin;\n", []),
        ("\npub mod coins { pub fn mint() { todo!() } }\n", ["coins::mint"]),
    ],
}


@pytest.mark.parametrize(
    ("language", "added", "names"), [(language, *row) for language, rows in ADDED.items() for row in rows]
)
def test_stubs_are_accepted(language: Source, added: str, names: list[str]) -> None:
    assert language.faults(language.source + added, names) == []


@pytest.mark.parametrize(
    ("after", "symbols"),
    [
        (GO.source + GO_BYE, ["Bye"]),
        (GO.source + "\n// only a comment\n", ()),
        (GO.source.replace('import "strings"', 'import (\n\t"io"\n\t"strings"\n)\n\nvar _ io.Writer = (*Out)(nil)')
         + f"\ntype Out struct{{ N int }}\n\nfunc (o *Out) Write(p []byte) (int, error) {{ {GO_STUB} }}\n",
         ("Out",)),
        (GO.source + '\nvar ErrEmpty = errors.New("empty")\n', ("ErrEmpty",)),
        (GO.source + "\ntype Color int\n\nconst (\n\tRed Color = 1 << iota\n\tBlue\n)\n",
         ("Color", "Red", "Blue")),
        (GO.source + "\nvar Names = map[string]int{}\n", ("Names",)),
        (GO.source + f"\nvar Bye = func() {{ {GO_STUB} }}\n", ["Bye"]),
        # a signature changes: the body is what it was, or the stub
        (GO.source.replace("Greet(name string) string {", "Greet(name string, loud bool) string {"),
         (old(GO, "Greet"),)),
        (GO.source.replace('\treturn greeting + ", " + strings.ToUpper(name)', f"\t{GO_STUB}"),
         (old(GO, "Greet"),)),
        # a member of a type that is there: a method, a field, a method of an interface
        (GO.source + f"\nfunc (g Greeter[T]) Bye() {{ {GO_STUB} }}\n", ("Greeter.Bye",)),
        (GO.source.replace("struct{ Loud T }", "struct{ Loud T; Name string }"), ("Greeter.Name",)),
        (GO.source.replace("\tSay() string\n", "\tSay() string\n\tHush()\n"), ("Speaker.Hush",)),
        # a new type comes with its named method
        (GO.source + f"\ntype Bell struct{{}}\n\nfunc (b *Bell) Ring() {{ {GO_STUB} }}\n", ("Bell.Ring",)),
    ],
)  # fmt: skip
def test_go_stubs_are_accepted(after: str, symbols: tuple[str | Symbol, ...]) -> None:
    assert GO.faults(after, symbols) == []


@pytest.mark.parametrize(
    "added",
    [
        f"function bye(a) {BODY}",
        "/** Says */\nasync function bye(a, b = 3) {\n  // x\n  throw new Error('not implemented')\n}",
        f"function bye() {BODY}\nexports.bye = bye;",
        f"const bye = (a) => {BODY};",
        f"const bye = async function () {BODY};\nmodule.exports.bye = bye;",
        f"function* bye() {BODY}",
        f"class bye extends Greeter {{ x = 1; static y = 'z'; #p; constructor() {BODY} f() {BODY} get g() {BODY} }}",
        f"const bye = {{ f() {BODY}, g: () => {BODY}, h: 3 }};",
        "const bye = -4;",
        "const bye = ['a', { b: null }];",
        "const path = require('node:path');\nconst { join } = require('node:path');",
    ],
)
def test_script_stubs_are_accepted(added: str) -> None:
    assert SCRIPT.faults(f"{SCRIPT.source}{added}\n", ["bye"] if "bye" in added else []) == []


def test_what_a_stub_pass_may_add_in_typescript() -> None:
    added = (
        "import type { y } from './y';\nexport { x } from './x';\nexport type Id = string | number;\n"
        "export interface Point { x: number; at(): Point }\nexport enum Kind { A, B = 2 }\n"
        f"export function far(a: Id): Id;\nexport function far(a: unknown): unknown {BODY}\n"
        f"export abstract class Box<T> {{ abstract open(): T; shut(): void {BODY} }}\n"
        f"export const make = <T,>(value: T): T => {BODY};\nexport const NAMES = ['a', 'b'] as const;\n"
    )
    names = ("Id", "Point", "Kind", "far", "Box", "make", "NAMES")
    assert TYPED.faults(TYPED.source + added, names) == []


MORE: dict[Source, list[tuple[str, list[str | Symbol], str]]] = {
    PYTHON: [
        (PYTHON.source + "\n\ndef price(cart):\n    return 3\n", ["price"], "body that is more"),
        (PYTHON.source + f"\n\ndef price(cart):\n    print(1)\n{PY_STUB}", ["price"], "body that is more"),
        (PYTHON.source + "\n\ndef price(cart):\n    raise NotImplementedError(cart)\n", ["price"], "body that is more"),
        (
            PYTHON.source + f"\n\ndef price(cart):\n{PY_STUB}\n\ndef help():\n{PY_STUB}",
            ["price"],
            "help, which the task does not",
        ),
        (PYTHON.source, ["price"], "does not define price"),
        (PYTHON.source.replace("len(cart.lines)", "3"), [], "changes total"),
        (PYTHON.source.replace("def total(cart)", "def total(cart, rate)"), [], "changes total"),
        (PYTHON.source.replace("def total(cart):\n    return len(cart.lines)\n", ""), [], "total is gone"),
        (PYTHON.source + "\n\nprint(total)\n", [], "adds a statement"),
        (PYTHON.source + "\n\nLIMIT = total(Cart())\n", ["LIMIT"], "value that is computed"),
        (PYTHON.source.replace("RATE = 3", "RATE = 4"), [], "changes RATE"),
        (PYTHON.source.replace("class Cart:", "class Cart(dict):"), [], "changes Cart"),
        (PYTHON.source + "\n\ndef price(:\n", ["price"], "cannot be parsed"),
    ],
    RUST: [
        (RUST.source + "\npub fn price() -> u32 { 3 }\n", ["price"], "body that is more"),
        (RUST.source + '\npub fn price() -> u32 { todo!("later") }\n', ["price"], "body that is more"),
        (RUST.source.replace("self.lines.push(name.into());", ""), ["Cart::add"], "changes the body of Cart::add"),
        (RUST.source + "\nthread_local! { static X: u32 = 1; }\n", [], "adds a statement"),
        (RUST.source + "\npub const LIMIT: u32 = limit();\n", ["LIMIT"], "value that is computed"),
        (RUST.source.replace("RATE: u32 = 3", "RATE: u32 = 4"), [], "changes RATE"),
        (RUST.source + "\nmacro_rules! m { () => { 1 } }\n", [], "adds m, which the task does not name"),
        (RUST.source + "\npub fn price( { todo!() }\n", ["price"], "cannot be parsed"),
    ],
    GO: [
        (
            GO.source + GO_BYE.replace(GO_STUB, 'return "Bye", nil'),
            ["Bye"],
            f"greet.go:34 gives Bye a body that is more than `{GO_STUB}`",
        ),
        (GO.source + GO_BYE.replace(GO_STUB, 'panic("later")'), ["Bye"], "gives Bye a body"),
        (GO.source + "\nfunc Bye()\n", ["Bye"], "gives Bye a body"),
        (GO.source + GO_BYE + f"\nfunc (g Greeter[T]) More() {{ {GO_STUB} }}\n", ["Bye"], "adds Greeter.More"),
        (GO.source.replace('"Hi"', '"Hey"') + GO_BYE, ["Bye"], "changes init"),
        (GO.source + GO_BYE + "\nfunc init() {}\n", ["Bye"], "adds init"),
        (GO.source + GO_BYE + "\nvar _ = register()\n", ["Bye"], "adds _"),
        (GO.source.replace("Limit = 3", "Limit = 4") + GO_BYE, ["Bye"], "changes Limit"),
        (GO.source.replace("struct{ Loud T }", "struct{ Loud, Low T }") + GO_BYE, ["Bye"], "adds Greeter.Low"),
        (GO.source.replace("struct{ Loud T }", "struct{ Low T }"), ["Greeter.Low"], "Greeter.Loud is gone"),
        (
            GO.source.replace("= 3", "= compute()"),
            [old(GO, "Limit")],
            "gives Limit a value that is computed",
        ),
        (GO.source + "\nvar Bye = compute()\n", ["Bye"], "gives Bye a value that is computed"),
        (GO.source + '\nvar Bye = map[string]string{"a": "b"}\n', ["Bye"], "gives Bye a value that is computed"),
        (GO.source + '\nvar Bye = func() string { return "x" }\n', ["Bye"], "gives Bye a value that is computed"),
        (GO.source + "\n//go:embed x\nvar Bye string\n", ["Bye"], "adds a statement, a macro or a directive"),
        ("//go:build ignore\n\n" + GO.source + GO_BYE, ["Bye"], "adds a statement, a macro or a directive"),
        (GO.source.replace("package greet\n", "package other\n") + GO_BYE, ["Bye"], "is of another package"),
        (
            GO.source.replace('import "strings"', 'import "strings"\n\n// int f() { }\nimport "C"') + GO_BYE,
            ["Bye"],
            "adds a statement",
        ),
        (
            GO.source + GO_BYE.replace("Bye(", "Polite("),
            ["Bell.Polite"],
            "greet.go does not define Bell.Polite",
        ),
    ],
    SCRIPT: [
        (SCRIPT.source + added, ["bye"], said)
        for added, said in [
            (
                "function bye(a) { return 1; }",
                'gives bye a body that is more than `throw new Error("not implemented")`',
            ),
            ("function bye() { throw new Error('not implemented yet'); }", "gives bye a body that is more than"),
            ("const bye = () => greet();", "gives bye a body that is more than"),
            ("console.log(1);", "adds a statement"),
            ("if (LIMIT) greet();", "adds a statement"),
            ("greet.bye = 1;", "adds a statement"),
            ("const bye = greet('a');", "gives bye a value that is computed"),
            ("const bye = `${LIMIT}`;", "gives bye a value that is computed"),
            ("const bye = [...api.plain];", "gives bye a value that is computed"),
            ("class bye { x = greet(); }", "gives bye.x a value that is computed"),
            ("class bye { static { greet(); } }", "gives bye.static a body that is more than"),
            ("class bye extends mixin(Greeter) {}", "computes what bye extends"),
            (f"function bye(a = greet()) {BODY}", "gives a parameter of bye a value that is computed"),
            ("exports.bye = greet('a');", "gives bye a value that is computed"),
        ]
    ],
}
"""A new text, what the task names, and what is told of it. What is alike for all languages has a row of Python."""


@pytest.mark.parametrize(
    ("language", "after", "names", "said"), [(language, *row) for language, rows in MORE.items() for row in rows]
)
def test_what_is_more_than_a_stub_is_told(language: Source, after: str, names: list[str | Symbol], said: str) -> None:
    found = language.faults(after, names)
    assert any(said in fault for fault in found), found


def test_a_named_function_may_get_another_signature_and_keeps_its_body() -> None:
    other = PYTHON.source.replace("def total(cart)", "def total(cart, rate=1)")
    assert PYTHON.faults(other, ["total"]) == []
    changed = other.replace("len(cart.lines)", "rate")
    assert PYTHON.faults(changed, ["total"]) == ["cart.py:18 changes the body of total"]


def test_a_file_that_a_stub_pass_deletes_is_told() -> None:
    assert [str(fault) for fault in stubs.stub_faults(PYTHON.package, {"a.py": "x = 1\n"}, {}, [])] == ["a.py is gone"]


def test_tests_beside_the_code_are_no_matter_of_the_stub_pass() -> None:
    assert RUST.faults(RUST.source.replace("mod tests {", "mod tests {\n    fn help() -> u32 { 3 }"), []) == []


TWINS = """
pub enum Error { Io(std::io::Error), Text(std::fmt::Error) }

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self { Self::Io(error) }
}

impl From<std::fmt::Error> for Error {
    fn from(error: std::fmt::Error) -> Self { Self::Text(error) }
}

#[cfg(unix)]
pub fn home() -> u32 { 1 }

#[cfg(windows)]
pub fn home() -> u32 { 2 }
"""


def test_items_of_one_name_are_told_apart() -> None:
    """Two conversions into one type, and one function for each system."""
    before = RUST.source + TWINS
    price = "\npub fn price(cart: &Cart) -> u32 { todo!() }\n"
    other = "\nimpl From<u8> for Error {\n    fn from(code: u8) -> Self { todo!() }\n}\n"

    assert RUST.faults(before + price, ["price"], before) == []
    assert RUST.faults(before + other, ["Error::From::from"], before) == []
    assert RUST.faults(before + other.replace("todo!()", "Self::Io(code)"), ["Error::From::from"], before) == [
        "src/lib.rs:39 gives Error::From::from a body that is more than `todo!()`"
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{ 1 }", "{ 3 }", ["src/lib.rs:33 changes home, which the task does not name"]),
        ("{ 2 }", "{ 3 }", ["src/lib.rs:36 changes home, which the task does not name"]),
        ("Self::Io(error)", "todo!()", ["src/lib.rs:25 changes Error::From::from, which the task does not name"]),
        ("#[cfg(windows)]\npub fn home() -> u32 { 2 }\n", "", ["src/lib.rs home is gone"]),
    ],
)
def test_a_change_of_one_of_them_is_told_with_its_own_line(old: str, new: str, said: list[str]) -> None:
    assert RUST.faults((RUST.source + TWINS).replace(old, new), [], RUST.source + TWINS) == said


def test_new_files_and_files_of_others() -> None:
    def faults(path: str, text: str, *names: Symbol) -> list[str]:
        return [str(fault) for fault in stubs.stub_faults(GO.package, {}, {path: text}, names)]

    bell = f"package bell\n\ntype Bell struct{{}}\n\nfunc (b Bell) Ring() {{ {GO_STUB} }}\n"
    assert faults("bell/bell.go", bell, Symbol("bell/bell.go", "Bell")) == []
    assert faults("bell/bell.go", bell, Symbol("", "Bell")) == []
    assert faults("x_test.go", "package x\n") == ["x_test.go is no Go source of production"]
    assert faults("go.mod", "module x\n") == ["go.mod is no Go source of production"]


def test_the_count_of_constants_is_part_of_them() -> None:
    before = "package p\n\nconst (\n\tA = iota\n\tB\n)\n"
    assert GO.faults(before.replace("\tB\n", "\tB\n\tC\n"), ["C"], before) == []
    middle = before.replace("\tB\n", "\tC\n\tB\n")
    assert GO.faults(middle, ["C"], before) == ["greet.go:6 changes B, which the task does not name"]


def test_what_was_there_stays_as_it_was() -> None:
    def changed(old: str, new: str, *names: str) -> list[str]:
        assert old in SCRIPT.source
        faults = SCRIPT.faults(SCRIPT.source.replace(old, new), names)
        return [fault.removeprefix("a.js:") for fault in faults]

    assert changed("greet(name, loud = false)", "greet(name, loud = true)") == [
        "6 changes greet, which the task does not name"
    ]
    assert changed("greet(name, loud = false)", "greet(name, quiet)", "greet") == []
    assert changed("return `Hello, ${name}!`", "throw new Error('not implemented')", "greet") == []
    assert changed("return `Hello, ${name}!`", "return 'Hello'", "greet") == ["6 changes the body of greet"]
    assert changed("// Greetings", "// Salutations") == []
    assert changed("{ greet, shout, Greeter }", "{ greet, shout, Greeter, LIMIT }") == []
    assert changed("'use strict';\n", "") == []
    assert "a.js extra is gone" in changed("exports.extra = function () { return 1; };\n", "")
    assert changed("return true", "return !true", "Greeter") == ["15 changes the body of Greeter.polite"]


@given(st.sampled_from(["greet", "shout", "Greeter", "api", "extra", "Greeter.polite", "pick"]))
def test_a_stubbed_file_is_a_stub_pass_of_its_symbols(name: str) -> None:
    text, _ = SCRIPT.stubbed(name)
    assert SCRIPT.faults(text, [name]) == []


@given(st.text(alphabet="function class{}()=>.`$'\";=\n a1", max_size=80))
def test_no_source_trips_the_readers(text: str) -> None:
    stubs.introduced(SCRIPT.package, {}, {"a.ts": text})
    stubs.stub_symbols(SCRIPT.package, {"a.js": text}, [Symbol("a.js", "a")])
    same = stubs.stub_faults(SCRIPT.package, {"a.js": text}, {"a.js": text}, ())
    assert [fault.what for fault in same] in ([], ["cannot be parsed"])
