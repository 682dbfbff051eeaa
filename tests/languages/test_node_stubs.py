"""Stubs of JavaScript and TypeScript symbols, what a change introduces, and what a stub pass may be."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.nodes import TOOLCHAIN

from pipeline.judge.evidence.red_classes import Symbol

BODY = '{ throw new Error("not implemented"); }'
SOURCE = dedent(
    """\
    // Greetings, “quoted”.
    'use strict';
    const fs = require('node:fs');
    const LIMIT = 3;
    /** Greets. */
    function greet(name, loud = false) {
      return `Hello, ${name}!`;
    }
    const shout = (name) => greet(name).toUpperCase();
    const pick = ({ a }) => ({ a });
    class Greeter {
      #secret = 1;
      static made = 0;
      constructor(name) { this.name = name; }
      polite() { return true; }
      get size() { return 1; }
      later = () => { return 2; };
    }
    const api = { hello() { return 1; }, bye: () => 2, plain: 3 };
    Greeter.prototype.rude = function () { return false; };
    exports.extra = function () { return 1; };
    module.exports = { greet, shout, Greeter };
    """
)
TYPED = dedent(
    """\
    import { x } from './x';
    export interface Shape { area(): number }
    export enum Color { Red = 1, Blue }
    export function over(a: string): string;
    export function over(a: number): number;
    export function over(a: unknown): unknown { return a; }
    export abstract class Base<T> { abstract area(): number; name(): string { return 'b'; } }
    export class Empty {}
    export const LIMIT: number = 3;
    export const add = (a: number, b: number): number => a + b;
    export namespace Deep { export function inner(): number { return 1; } }
    export default function (): void { x(); }
    """
)


def stubbed(*names: str, path: str = "src/a.js", source: str = SOURCE) -> tuple[str, tuple[str, ...]]:
    file = "src/a.ts" if source is TYPED else "src/a.js"
    done = TOOLCHAIN.stub_symbols(
        {file: source}, [Symbol(path if path != "src/a.js" else file, name) for name in names]
    )
    return done.files.get(file, source), tuple(symbol.name for symbol in done.unknown)


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("greet", "{\n  return `Hello, ${name}!`;\n}"),
        ("shout", "greet(name).toUpperCase()"),
        ("pick", "({ a });"),
        ("Greeter.polite", "{ return true; }"),
        ("Greeter#polite", "{ return true; }"),
        ("Greeter.constructor", "{ this.name = name; }"),
        ("Greeter.later", "{ return 2; }"),
        ("Greeter.rude", "{ return false; }"),
        ("api.bye", "2,"),
        ("extra", "{ return 1; };"),
    ],
)
def test_a_function_loses_its_body_and_nothing_else_changes(name: str, old: str) -> None:
    end = old[-1] if old[-1] in ",;" else ""
    if name == "extra":
        assert stubbed(name) == (SOURCE.replace("function () { return 1; }", f"function () {BODY}"), ())
    else:
        assert stubbed(name) == (SOURCE.replace(old, BODY + end), ())


def test_a_class_and_an_object_lose_the_bodies_of_all_their_functions() -> None:
    assert stubbed("Greeter")[0].count(BODY) == 5
    assert stubbed("api")[0].count(BODY) == 2
    assert "static made = 0;" in stubbed("Greeter")[0]


def test_typescript() -> None:
    assert stubbed("over", source=TYPED)[0] == TYPED.replace("{ return a; }", BODY)
    assert stubbed("Base", source=TYPED)[0] == TYPED.replace("{ return 'b'; }", BODY)
    assert stubbed("Deep.inner", source=TYPED)[0] == stubbed("Deep", source=TYPED)[0]
    assert stubbed("default", source=TYPED)[0] == TYPED.replace("{ x(); }", BODY)
    assert "constructor(..._arguments: any[]) { throw" in stubbed("Empty", source=TYPED)[0]
    assert stubbed("Shape", "Color", source=TYPED) == (TYPED, ())


def test_a_value_is_replaced_where_there_is_no_function() -> None:
    assert stubbed("LIMIT")[0] == SOURCE.replace("LIMIT = 3", "LIMIT = undefined")
    assert stubbed("LIMIT", source=TYPED)[0] == TYPED.replace("= 3", "= undefined as never")
    assert "LIMIT = 3" in stubbed("LIMIT", "greet")[0]


def test_what_is_unknown_is_said() -> None:
    assert stubbed("nobody", "Greeter.nobody") == (SOURCE, ("nobody", "Greeter.nobody"))
    assert stubbed("greet", path="src/other.js") == (SOURCE, ("greet",))


def test_what_a_change_introduces() -> None:
    before = SOURCE.replace("polite", "rough").replace("const shout", "const cry")
    assert TOOLCHAIN.introduced({"src/a.js": before}, {"src/a.js": SOURCE}) == (
        Symbol("src/a.js", "shout"),
        Symbol("src/a.js", "Greeter.polite"),
    )
    names = [symbol.name for symbol in TOOLCHAIN.introduced({}, {"src/a.ts": TYPED})]
    assert names == [
        "Shape", "Color", "over", "Base", "Base.area", "Base.name", "Empty", "LIMIT", "add", "Deep", "Deep.inner",
        "default",
    ]  # fmt: skip


# --- stub passes


def faults(after: str, *names: str, before: str = SOURCE, path: str = "a.js") -> list[str]:
    symbols = [Symbol(path, name) for name in names]
    return [
        str(fault).removeprefix(f"{path}:") for fault in TOOLCHAIN.stub_faults({path: before}, {path: after}, symbols)
    ]


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
def test_what_a_stub_pass_may_add(added: str) -> None:
    assert faults(f"{SOURCE}{added}\n", *(["bye"] if "bye" in added else [])) == []


def test_what_a_stub_pass_may_add_in_typescript() -> None:
    added = (
        "import type { y } from './y';\nexport { x } from './x';\nexport type Id = string | number;\n"
        "export interface Point { x: number; at(): Point }\nexport enum Kind { A, B = 2 }\n"
        f"export function far(a: Id): Id;\nexport function far(a: unknown): unknown {BODY}\n"
        f"export abstract class Box<T> {{ abstract open(): T; shut(): void {BODY} }}\n"
        f"export const make = <T,>(value: T): T => {BODY};\nexport const NAMES = ['a', 'b'] as const;\n"
    )
    names = ("Id", "Point", "Kind", "far", "Box", "make", "NAMES")
    assert faults(f"{TYPED}{added}", *names, before=TYPED, path="a.ts") == []


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("function bye(a) { return 1; }", 'gives bye a body that is more than `throw new Error("not implemented")`'),
        (f"function bye() {{ log(); {BODY} }}", "gives bye a body that is more than"),
        ("function bye() { throw new Error('not implemented yet'); }", "gives bye a body that is more than"),
        ("const bye = () => greet();", "gives bye a body that is more than"),
        (f"function other() {BODY}", "adds other, which the task does not name"),
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
        ("function (", "cannot be parsed"),
        ("", "does not define farewell"),
    ],
)
def test_what_is_more_than_a_stub(added: str, said: str) -> None:
    found = faults(f"{SOURCE}{added}\n", "bye" if added else "farewell")
    assert any(said in fault for fault in found), found


def test_what_was_there_stays_as_it_was() -> None:
    def changed(old: str, new: str, *names: str) -> list[str]:
        assert old in SOURCE
        return faults(SOURCE.replace(old, new), *names)

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
    assert TOOLCHAIN.stub_faults({"a.js": ""}, {}, ())[0].what == "is gone"


@given(st.sampled_from(["greet", "shout", "Greeter", "api", "extra", "Greeter.polite", "pick"]))
def test_a_stubbed_file_is_a_stub_pass_of_its_symbols(name: str) -> None:
    text, _ = stubbed(name)
    assert faults(text, name) == []


@given(st.text(alphabet="function class{}()=>.`$'\";=\n a1", max_size=80))
def test_no_source_trips_the_readers(text: str) -> None:
    TOOLCHAIN.introduced({}, {"a.ts": text})
    TOOLCHAIN.stub_symbols({"a.js": text}, [Symbol("a.js", "a")])
    same = TOOLCHAIN.stub_faults({"a.js": text}, {"a.js": text}, ())
    assert [fault.what for fault in same] in ([], ["cannot be parsed"])
