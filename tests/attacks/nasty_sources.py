"""Sources that are small and hard to read: each entry makes one of a size, in bytes of a file of that language.

All of them are what a stranger can hand in; most are correct, some are not even sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Maker = "Callable[[int], bytes]"

_ANY: Final[Mapping[str, Callable[[int], str]]] = {
    "open brackets": lambda n: "(" * n,
    "open braces": lambda n: "{" * n,
    "open squares": lambda n: "[" * n,
    "closed braces": lambda n: "}" * n,
    "a quote that never ends": lambda n: 'x = "' + "a" * n,
    "one long line": lambda n: "x" * (20 * n),
    "many words": lambda n: "x " * (10 * n),
    "NUL": lambda n: "\0" * n,
    "lone surrogates": lambda n: "\ud800" * n,
    "fault_sites": lambda n: "<" * n,
    "escapes": lambda n: '"' + "\\" * n,
}


def _shapes(head: str, tail: str, shapes: Mapping[str, Callable[[int], str]]) -> dict[str, Callable[[int], str]]:
    """Return shapes of an expression or a statement within a file."""
    return {name: lambda n, make=make: f"{head}{make(n)}{tail}" for name, make in shapes.items()}


_TERMS: Final[Mapping[str, Callable[[int], str]]] = {
    "terms": lambda n: "+".join(["1"] * n),
    "brackets": lambda n: "(" * n + "1" + ")" * n,
    "minus signs": lambda n: "- " * n + "1",
    "members": lambda n: "a" + ".b" * n,
    "calls": lambda n: "f" + "()" * n,
    "calls in calls": lambda n: "f(" * n + "1" + ")" * n,
    "members and calls": lambda n: "a" + ".b(1)" * n,
    "indices": lambda n: "a" + "[0]" * n,
    "texts": lambda n: "+".join(['"ab"'] * n),
    "comparisons": lambda n: "==".join(["a"] * n),
}

PYTHON: Final[Mapping[str, Callable[[int], str]]] = {
    **_shapes("def f():\n    return ", "\n", _TERMS),
    **{f"{k}, asserted": v for k, v in _shapes("def test_f():\n    assert ", " == 1\n", _TERMS).items()},
    "lists": lambda n: "x = " + "[" * n + "]" * n + "\n",
    "lambdas": lambda n: "x = " + "lambda: " * n + "1\n",
    "conditions": lambda n: "x = " + "1 if a else " * n + "1\n",
    "else-if": lambda n: "def f():\n    if a: pass\n" + "    elif a: pass\n" * n,
    "blocks": lambda n: "".join(f"{' ' * at}if a:\n" for at in range(min(n, 99))) + " " * min(n, 99) + "pass\n",
    "decorators": lambda n: "@a\n" * n + "def test_f(): pass\n",
    "tests": lambda n: "".join(f"def test_{at}():\n    assert f({at}) == {at}\n" for at in range(n)),
    "names of names": lambda n: (
        "a0 = [1]\n"
        + "".join(f"a{at} = [a{at - 1}, a{at - 1}]\n" for at in range(1, n))
        + f"def test_x():\n    assert f() == a{n - 1}\n"
    ),
    "locals of locals": lambda n: (
        "def test_x():\n    a0 = g()\n"
        + "".join(f"    a{at} = a{at - 1} + a{at - 1}\n" for at in range(1, n))
        + f"    assert a{n - 1} == 1\n"
    ),
    "helpers of helpers": lambda n: (
        "def h0():\n    assert a == 1\n"
        + "".join(f"def h{at}():\n    h{at - 1}()\n    h{at - 1}()\n" for at in range(1, n))
        + f"def test_x():\n    h{n - 1}()\n"
    ),
    "cases": lambda n: (
        "import pytest\n" + "@pytest.mark.parametrize('a', [1, 2, 3, 4])\n" * n + "def test_x(a):\n    assert a == 1\n"
    ),
}

RUST: Final[Mapping[str, Callable[[int], str]]] = {
    **_shapes("fn f() -> i32 { ", " }\n", _TERMS),
    **{f"{k}, asserted": v for k, v in _shapes("#[test]\nfn t() { assert_eq!(", ", 1); }\n", _TERMS).items()},
    "generics": lambda n: "fn f(a: " + "A<" * n + "u8" + ">" * n + ") {}\n",
    "open generics": lambda n: "fn f(a: " + "A<" * n,
    "references": lambda n: "fn f(a: " + "&" * n + "u8) {}\n",
    "blocks": lambda n: "fn f() " + "{ " * n + "}" * n + "\n",
    "closures": lambda n: "fn f() { let a = " + "|| " * n + "1; }\n",
    "else-if": lambda n: "fn f() { if a {} " + "else if a {} " * n + "}\n",
    "modules": lambda n: "mod a { " * n + "}" * n + "\n",
    "test modules": lambda n: "#[cfg(test)] mod a { " * n + "}" * n + "\n",
    "modules in a row": lambda n: "#[cfg(test)]\nmod a { #[test] fn t() {} }\n" * n,
    "attributes": lambda n: "#[a]\n" * n + "fn f() {}\n",
    "attributes in attributes": lambda n: "#[cfg(" + "all(" * n + "test" + ")" * n + ")]\nfn f() {}\n",
    "macros": lambda n: "fn f() { " + "m!(" * n + ")" * n + "; }\n",
    "comments": lambda n: "/*" * n + "*/" * n + "fn f() {}\n",
    "open comments": lambda n: "/*" * n,
    "raw text": lambda n: "const A: &str = r" + "#" * min(n, 250) + '"\n',
    "lifetimes": lambda n: "fn f() { " + "'a: " * n + "loop {} }\n",
    "questions": lambda n: "fn f() { a" + "?" * n + " }\n",
    "matches": lambda n: "fn f() { " + "match a { _ => " * n + "1" + " }" * n + " }\n",
    "functions": lambda n: "fn f() { " * n + "}" * n + "\n",
    "tests": lambda n: "".join(f"#[test]\nfn t{at}() {{ assert_eq!(f({at}), {at}); }}\n" for at in range(n)),
    "helpers of helpers": lambda n: (
        "fn h0() { assert!(a); }\n"
        + "".join(f"fn h{at}() {{ h{at - 1}(); h{at - 1}(); }}\n" for at in range(1, n))
        + f"#[test]\nfn t() {{ h{n - 1}(); }}\n"
    ),
    "locals of locals": lambda n: (
        "#[test]\nfn t() { let a0 = g();\n"
        + "".join(f"let a{at} = a{at - 1} + a{at - 1};\n" for at in range(1, n))
        + f"assert_eq!(a{n - 1}, 1); }}\n"
    ),
}

GO: Final[Mapping[str, Callable[[int], str]]] = {
    **_shapes("package a\nfunc f() int { return ", " }\n", _TERMS),
    **{
        f"{k}, asserted": v
        for k, v in _shapes("package a\nfunc TestA(t *testing.T) { if ", ' != 1 { t.Fatal("a") } }\n', _TERMS).items()
    },
    "pointers": lambda n: "package a\nfunc f(a " + "*" * n + "int) {}\n",
    "generics": lambda n: "package a\nfunc f(a " + "A[" * n + "int" + "]" * n + ") {}\n",
    "open generics": lambda n: "package a\nfunc f(a " + "A[" * n,
    "blocks": lambda n: "package a\nfunc f() " + "{ " * n + "}" * n + "\n",
    "closures": lambda n: "package a\nfunc f() { " + "a = func() { " * n + "}" * n + " }\n",
    "else-if": lambda n: "package a\nfunc f() { if a {} " + "else if a {} " * n + "}\n",
    "ifs": lambda n: "package a\nfunc TestA(t *testing.T) { " + "if a { " * n + "t.Fatal(1)" + " }" * n + " }\n",
    "fatal in a block": lambda n: "package a\nfunc TestA(t *testing.T) { " + "{ t.Fatal(1); " * n + "}" * n + " }\n",
    "literals": lambda n: "package a\nvar x = " + "A{" * n + "}" * n + "\n",
    "structs": lambda n: "package a\ntype A " + "struct { a " * n + "int" + " }" * n + "\n",
    "comments": lambda n: "package a\nfunc ExampleA() {\n" + "// a\n" * n + "}\n",
    "tests": lambda n: (
        "package a\n" + "".join(f"func TestA{at}(t *testing.T) {{ t.Fatal({at}) }}\n" for at in range(n))
    ),
    "subtests": lambda n: (
        "package a\nfunc TestA(t *testing.T) { " + 't.Run("a", func(t *testing.T) { ' * n + "})" * n + " }\n"
    ),
    "helpers of helpers": lambda n: (
        "package a\nfunc h0(t *testing.T) { t.Fatal(1) }\n"
        + "".join(f"func h{at}(t *testing.T) {{ h{at - 1}(t); h{at - 1}(t) }}\n" for at in range(1, n))
        + f"func TestA(t *testing.T) {{ h{n - 1}(t) }}\n"
    ),
}

JAVASCRIPT: Final[Mapping[str, Callable[[int], str]]] = {
    **_shapes("export function f() { return ", " }\n", _TERMS),
    **{f"{k}, asserted": v for k, v in _shapes('test("a", () => { expect(', ").toBe(1) })\n", _TERMS).items()},
    "arrows": lambda n: "const a = " + "() => " * n + "1\n",
    "functions": lambda n: "function f() { " * n + "}" * n + "\n",
    "arrows in calls": lambda n: "f(() => { " * n + "})" * n + "\n",
    "suites": lambda n: 'describe("a", () => { ' * n + 'test("b", () => {})' + " })" * n + "\n",
    "tests in tests": lambda n: 'test("a", () => { ' * n + "})" * n + "\n",
    "objects": lambda n: "const a = " + "{ a: " * n + "1" + " }" * n + "\n",
    "methods": lambda n: "const a = " + "{ a() { return " * n + "1" + " } }" * n + "\n",
    "arrays": lambda n: "const a = " + "[" * n + "]" * n + "\n",
    "blocks": lambda n: "{ " * n + "}" * n + "\n",
    "else-if": lambda n: "if (a) {} " + "else if (a) {} " * n + "\n",
    "conditions": lambda n: "const a = " + "a ? 1 : " * n + "1\n",
    "templates": lambda n: "const a = " + "`${" * n + "1" + "}`" * n + "\n",
    "classes": lambda n: "class A { static a = class " * 0 + "const a = " + "class { a = " * n + "1" + " }" * n + "\n",
    "extends": lambda n: "class A extends " + "f(" * n + "B" + ")" * n + " { constructor() {} }\n",
    "assignments": lambda n: "a = " * n + "1\n",
    "assigned members": lambda n: "module.exports" + ".a" * n + " = function () {}\n",
    "markup": lambda n: "const a = " + "<a>" * n + "</a>" * n + "\n",
    "open markup": lambda n: "const a = " + "<a>" * n,
    "open comments": lambda n: "/*" * n,
    "regular expressions": lambda n: "const a = /" + "(" * n + ")" * n + "/\n",
    "patterns": lambda n: "const " + "{ a: " * n + "b" + " }" * n + " = c\n",
    "awaits": lambda n: "const a = " + "await " * n + "b\n",
    "tests": lambda n: "".join(f'test("a{at}", () => {{ expect(f({at})).toBe({at}) }})\n' for at in range(n)),
    "constants of constants": lambda n: (
        "const a0 = [1]\n"
        + "".join(f"const a{at} = [...a{at - 1}, ...a{at - 1}]\n" for at in range(1, n))
        + f'test.each(a{n - 1})("a", () => {{ expect(1).toBe(1) }})\n'
    ),
    "helpers of helpers": lambda n: (
        "function h0() { expect(a).toBe(1) }\n"
        + "".join(f"function h{at}() {{ h{at - 1}(); h{at - 1}() }}\n" for at in range(1, n))
        + f'test("a", () => {{ h{n - 1}() }})\n'
    ),
}

TYPESCRIPT: Final[Mapping[str, Callable[[int], str]]] = {
    **JAVASCRIPT,
    "generics": lambda n: "let a: " + "A<" * n + "B" + ">" * n + "\n",
    "open generics": lambda n: "f" + "<A" * n,
    "called generics": lambda n: "a = " + "f<" * n + "(1)\n",
    "functions of functions": lambda n: "let a: " + "(a: " * n + "B" + ") => C" * n + "\n",
    "namespaces": lambda n: "namespace a { " * n + "}" * n + "\n",
    "assertions": lambda n: "const a = b" + " as A" * n + "\n",
    "types of types": lambda n: "type A = " + "{ a: " * n + "B" + " }" * n + "\n",
}

LANGUAGES: Final[Mapping[str, Mapping[str, Callable[[int], str]]]] = {
    "a.py": PYTHON,
    "a.rs": RUST,
    "a.go": GO,
    "a.js": JAVASCRIPT,
    "a.ts": TYPESCRIPT,
    "a.tsx": {},
}


def nasty(path: str, size: int) -> dict[str, bytes]:
    """Return the sources of the language of a file, by what is nasty about them."""
    makers = {**_ANY, **LANGUAGES[path]}
    return {name: make(size).encode("utf-8", "surrogatepass") for name, make in makers.items()}
