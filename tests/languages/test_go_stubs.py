"""Stubs of Go symbols, what a change introduces, and what of a stub pass is no stub, from sources alone."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from languages.modules import MANIFEST, TOOLCHAIN, needs_go

from pipeline.judge.evidence.red_classes import Symbol

if TYPE_CHECKING:
    from pathlib import Path

STUB = 'panic("not implemented")'
PATH = "greet.go"
SOURCE = """// Package greet greets, “quoted”.
package greet

import "strings"

// Limit is the most.
const Limit = 3

var greeting = "Hello"

// Greet greets.
func Greet(name string) string {
	return greeting + ", " + strings.ToUpper(name)
}

type Greeter[T any] struct{ Loud T }

func (g *Greeter[T]) Polite() bool { return true }

func (g Greeter[T]) String() string {
	// says it
	return "x"
}

var Shout = func(name string) string { return name + "!" }

type Speaker interface {
	Say() string
}

func init() { greeting = "Hi" }
"""


def stubbed(*names: str, path: str = PATH) -> tuple[str, tuple[str, ...]]:
    done = TOOLCHAIN.stub_symbols({PATH: SOURCE}, [Symbol(path, name) for name in names])
    return done.files.get(PATH, SOURCE), tuple(symbol.name for symbol in done.unknown)


def test_a_function_panics_first_thing_and_every_other_byte_stays() -> None:
    assert stubbed("Greet") == (
        SOURCE.replace("string {\n\treturn greeting", f"string {{ {STUB};\n\treturn greeting"),
        (),
    )
    assert stubbed("greet.Greet") == stubbed("Greet")


def test_a_type_loses_all_its_methods_and_a_method_is_named_with_its_type() -> None:
    whole, _ = stubbed("Greeter")
    assert whole.count(STUB) == 2
    one = SOURCE.replace("bool { return", f"bool {{ {STUB}; return")
    assert stubbed("Greeter.Polite")[0] == stubbed("(*Greeter).Polite")[0] == one


def test_a_function_that_is_a_value_is_one() -> None:
    assert stubbed("Shout")[0] == SOURCE.replace("string { return name", f"string {{ {STUB}; return name")


def test_a_value_is_replaced_where_there_is_no_function() -> None:
    assert stubbed("Limit")[0] == SOURCE.replace("Limit = 3", f"Limit = {STUB}")
    assert "Limit = 3" in stubbed("Limit", "Greet")[0]


def test_what_is_unknown_is_said_and_test_files_are_left_alone() -> None:
    assert stubbed("Nobody") == (SOURCE, ("Nobody",))
    assert stubbed("Greet", path="other.go") == (SOURCE, ("Greet",))
    done = TOOLCHAIN.stub_symbols({"greet_test.go": SOURCE}, [Symbol("", "Greet")])
    assert (dict(done.files), [symbol.name for symbol in done.unknown]) == ({}, ["Greet"])


@pytest.mark.broad(but_first=1)
@needs_go
@pytest.mark.slow
@pytest.mark.parametrize("names", [("Greet",), ("Greeter", "Shout"), ("Greeter.Polite",)])
def test_stubbed_sources_compile(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "go.mod").write_text(MANIFEST)
    (tmp_path / PATH).write_text(stubbed(*names)[0], encoding="utf-8")
    go = shutil.which("go")
    assert go is not None
    built = subprocess.run([go, "build", "./..."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


def test_what_a_change_introduces() -> None:
    before = SOURCE.replace("Polite", "Rude").replace("Limit", "Most")
    found = TOOLCHAIN.introduced({PATH: before}, {PATH: SOURCE})
    assert found == (Symbol(PATH, "Limit"), Symbol(PATH, "Greeter.Polite"))
    everything = TOOLCHAIN.introduced({}, {PATH: SOURCE, "x_test.go": SOURCE})
    assert [symbol.name for symbol in everything] == [
        "Limit", "greeting", "Greet", "Greeter", "Greeter.Polite", "Greeter.String", "Shout", "Speaker",
    ]  # fmt: skip
    # what only moved to another file of its package is not new
    assert TOOLCHAIN.introduced({"old.go": SOURCE}, {PATH: SOURCE}) == ()


BEFORE = SOURCE
NEW = (Symbol(PATH, "Bye"),)
BYE = f"\n// Bye parts.\nfunc Bye(name string) (string, error) {{\n\t// TODO\n\t{STUB}\n}}\n"


def faults(after: str | None, *symbols: Symbol, before: str | None = BEFORE, path: str = PATH) -> list[str]:
    old = {} if before is None else {path: before}
    new = {} if after is None else {path: after}
    return [str(fault) for fault in TOOLCHAIN.stub_faults(old, new, symbols)]


@pytest.mark.parametrize(
    ("after", "symbols"),
    [
        (BEFORE + BYE, NEW),
        (BEFORE + "\n// only a comment\n", ()),
        (BEFORE.replace('import "strings"', 'import (\n\t"io"\n\t"strings"\n)\n\nvar _ io.Writer = (*Out)(nil)')
         + f"\ntype Out struct{{ N int }}\n\nfunc (o *Out) Write(p []byte) (int, error) {{ {STUB} }}\n",
         (Symbol(PATH, "Out"),)),
        (BEFORE + '\nvar ErrEmpty = errors.New("empty")\n', (Symbol(PATH, "ErrEmpty"),)),
        (BEFORE + "\ntype Color int\n\nconst (\n\tRed Color = 1 << iota\n\tBlue\n)\n",
         (Symbol(PATH, "Color"), Symbol(PATH, "Red"), Symbol(PATH, "Blue"))),
        (BEFORE + "\nvar Names = map[string]int{}\n", (Symbol(PATH, "Names"),)),
        (BEFORE + f"\nvar Bye = func() {{ {STUB} }}\n", NEW),
        # a signature changes: the body is what it was, or the stub
        (BEFORE.replace("Greet(name string) string {", "Greet(name string, loud bool) string {"),
         (Symbol(PATH, "Greet", new=False),)),
        (BEFORE.replace('\treturn greeting + ", " + strings.ToUpper(name)', f"\t{STUB}"),
         (Symbol(PATH, "Greet", new=False),)),
        # a member of a type that is there: a method, a field, a method of an interface
        (BEFORE + f"\nfunc (g Greeter[T]) Bye() {{ {STUB} }}\n", (Symbol(PATH, "Greeter.Bye"),)),
        (BEFORE.replace("struct{ Loud T }", "struct{ Loud T; Name string }"), (Symbol(PATH, "Greeter.Name"),)),
        (BEFORE.replace("\tSay() string\n", "\tSay() string\n\tHush()\n"), (Symbol(PATH, "Speaker.Hush"),)),
        # a new type comes with its named method
        (BEFORE + f"\ntype Bell struct{{}}\n\nfunc (b *Bell) Ring() {{ {STUB} }}\n", (Symbol(PATH, "Bell.Ring"),)),
    ],
)  # fmt: skip
def test_what_a_stub_pass_may_do(after: str, symbols: tuple[Symbol, ...]) -> None:
    assert faults(after, *symbols) == []


@pytest.mark.parametrize(
    ("after", "symbols", "said"),
    [
        (
            BEFORE + BYE.replace(STUB, 'return "Bye", nil'),
            NEW,
            f"greet.go:34 gives Bye a body that is more than `{STUB}`",
        ),
        (BEFORE + BYE.replace(STUB, f"println(name); {STUB}"), NEW, "gives Bye a body"),
        (BEFORE + BYE.replace(STUB, f"{STUB}; return name, nil"), NEW, "gives Bye a body"),
        (BEFORE + BYE.replace(STUB, 'panic("later")'), NEW, "gives Bye a body"),
        (BEFORE + "\nfunc Bye()\n", NEW, "gives Bye a body"),
        (BEFORE + BYE + f"\nfunc more() {{ {STUB} }}\n", NEW, "adds more, which the task does not name"),
        (BEFORE + BYE + f"\nfunc (g Greeter[T]) More() {{ {STUB} }}\n", NEW, "adds Greeter.More"),
        (BEFORE.replace('"x"', '"y"') + BYE, NEW, "changes Greeter.String, which the task does not name"),
        (BEFORE.replace('"Hi"', '"Hey"') + BYE, NEW, "changes init"),
        (BEFORE + BYE + "\nfunc init() {}\n", NEW, "adds init"),
        (BEFORE + BYE + "\nvar _ = register()\n", NEW, "adds _"),
        (BEFORE.replace("Limit = 3", "Limit = 4") + BYE, NEW, "changes Limit"),
        (BEFORE.replace("\nconst Limit = 3\n", "") + BYE, NEW, "Limit is gone"),
        (BEFORE.replace("struct{ Loud T }", "struct{ Loud, Low T }") + BYE, NEW, "adds Greeter.Low"),
        (BEFORE.replace("struct{ Loud T }", "struct{ Low T }"), (Symbol(PATH, "Greeter.Low"),), "Greeter.Loud is gone"),
        (
            BEFORE.replace("= 3", "= compute()"),
            (Symbol(PATH, "Limit", new=False),),
            "gives Limit a value that is computed",
        ),
        (BEFORE + "\nvar Bye = compute()\n", NEW, "gives Bye a value that is computed"),
        (BEFORE + '\nvar Bye = map[string]string{"a": "b"}\n', NEW, "gives Bye a value that is computed"),
        (BEFORE + '\nvar Bye = func() string { return "x" }\n', NEW, "gives Bye a value that is computed"),
        (BEFORE + "\n//go:embed x\nvar Bye string\n", NEW, "adds a statement, a macro or a directive"),
        ("//go:build ignore\n\n" + BEFORE + BYE, NEW, "adds a statement, a macro or a directive"),
        (BEFORE.replace("package greet\n", "package other\n") + BYE, NEW, "is of another package"),
        (
            BEFORE.replace('import "strings"', 'import "strings"\n\n// int f() { }\nimport "C"') + BYE,
            NEW,
            "adds a statement",
        ),
        (BEFORE + BYE + "\nfunc {\n", NEW, "cannot be parsed"),
        (BEFORE, NEW, "greet.go does not define Bye"),
        (
            BEFORE + BYE.replace("Bye(", "Polite("),
            (Symbol(PATH, "Bell.Polite"),),
            "greet.go does not define Bell.Polite",
        ),
        (None, NEW, "greet.go is gone"),
    ],
)
def test_what_is_more_than_a_stub(after: str | None, symbols: tuple[Symbol, ...], said: str) -> None:
    assert any(said in fault for fault in faults(after, *symbols)), faults(after, *symbols)


def test_new_files_and_files_of_others() -> None:
    new = f"package bell\n\ntype Bell struct{{}}\n\nfunc (b Bell) Ring() {{ {STUB} }}\n"
    symbols = (Symbol("bell/bell.go", "Bell"),)
    assert faults(new, *symbols, before=None, path="bell/bell.go") == []
    assert faults(new, Symbol("", "Bell"), before=None, path="bell/bell.go") == []
    assert faults("package x\n", before=None, path="x_test.go") == ["x_test.go is no Go source of production"]
    assert faults("module x\n", before=None, path="go.mod") == ["go.mod is no Go source of production"]


def test_the_count_of_constants_is_part_of_them() -> None:
    before = "package p\n\nconst (\n\tA = iota\n\tB\n)\n"
    last = before.replace("\tB\n", "\tB\n\tC\n")
    middle = before.replace("\tB\n", "\tC\n\tB\n")
    assert faults(last, Symbol(PATH, "C"), before=before) == []
    assert faults(middle, Symbol(PATH, "C"), before=before) == ["greet.go:6 changes B, which the task does not name"]
