"""What does not compile: which tests it hides, and whether the task, the test or the machine is at fault."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, write
from languages.modules import MANIFEST, check_types, measure, needs_go

from pipeline.judge.evidence.classify import classify_collection
from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_go]

CODE = 'package greet\n\nfunc Greet(name string) string { return "Hello, " + name }\n\ntype Greeter struct{}\n'
START = {
    "go.mod": MANIFEST,
    "greet.go": CODE,
    "greet_test.go": """
        package greet

        import "testing"

        func TestOld(t *testing.T) {
            if Greet("a") != "Hello, a" {
                t.Fatal("old")
            }
        }
        """,
    "other/other.go": "package other\n\nfunc One() int { return 1 }\n",
    "other/other_test.go": """
        package other

        import "testing"

        func TestOne(t *testing.T) {
            if One() != 1 {
                t.Fatal("one")
            }
        }
        """,
}
SYMBOLS = (Symbol("greet.go", "Part"), Symbol("greet.go", "Greeter.Polite"), Symbol("polite/polite.go", "Bye"))


def broken(body: str, *imports: str) -> str:
    named = "".join(f'    "{path}"\n' for path in ("testing", "example.com/greet", *imports))
    return (
        f"package greet_test\n\nimport (\n{named})\n\nvar _ = greet.Greet\n\nfunc TestIt(t *testing.T) {{\n{body}\n}}\n"
    )


BROKEN = {
    "a/named_test.go": (broken('    t.Fatal(greet.Part("a"))'), RedClass.MISSING_BEHAVIOR),
    "b/method_test.go": (broken("    t.Fatal(greet.Greeter{}.Polite())"), RedClass.MISSING_BEHAVIOR),
    "c/interface_test.go": (
        broken("    var _ interface{ Polite() } = greet.Greeter{}"),
        RedClass.MISSING_BEHAVIOR,
    ),
    "d/package_test.go": (broken("    t.Fatal(polite.Bye())", "example.com/greet/polite"), RedClass.MISSING_BEHAVIOR),
    "e/typo_test.go": (broken("    t.Fatal(greet.Graet())"), RedClass.TEST_BROKEN),
    "f/field_test.go": (broken("    t.Fatal(greet.Greeter{}.Loud)"), RedClass.TEST_BROKEN),
    "g/literal_test.go": (broken("    t.Fatal(greet.Greeter{Loud: true})"), RedClass.TEST_BROKEN),
    "h/kinds_test.go": (broken("    var n int = greet.Greet(`a`)\n    _ = n"), RedClass.TEST_BROKEN),
    "i/syntax_test.go": (broken("    if {"), RedClass.TEST_BROKEN),
    "j/unused_test.go": (broken("    n := 1", "os"), RedClass.TEST_BROKEN),
    "k/foreign_test.go": (broken("    t.Fatal(y.Z())", "github.com/x/y"), RedClass.ENV_BROKEN),
    "l/no_such_test.go": (broken("    t.Fatal(nostd.X())", "nostd"), RedClass.TEST_BROKEN),
    "m/others_test.go": (broken("    t.Fatal(strings.Part())", "strings"), RedClass.TEST_BROKEN),
    "n/signature_test.go": (broken("    t.Fatal(greet.Greet(`a`, 1))"), RedClass.TEST_BROKEN),
}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("module") / "start", START)


@pytest.fixture(scope="module")
def before(start: Path) -> Observation:
    return measure(start)


@pytest.mark.broad
def test_each_broken_file_has_its_own_reason_and_other_packages_run(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    red = write(shutil.copytree(start, tmp_path / "red"), {path: source for path, (source, _) in BROKEN.items()})
    seen = measure(red)
    assert seen.state is RunState.COMPLETE, seen.detail
    context = context_of(seen, files_of(start), symbols=SYMBOLS)
    found = {error.path: classify_collection(error, context).cls for error in seen.collection_errors}
    assert found == {path: cls for path, (_, cls) in BROKEN.items()}, seen.tail
    assert {entry for entry, record in seen.records.items() if record.ran} == set(before.records)
    checked = check_types(red)
    assert [error.path for error in checked.collection_errors] == sorted(BROKEN)
    assert not any(record.ran for record in checked.records.values())


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "body",
    [
        '    var s string\n    s, err := Greet("a")\n    t.Fatal(s, err)',
        '    t.Fatal(Greet("a", 1))',
        "    t.Fatal(Greet(1))",
    ],
)
def test_a_changed_signature_is_a_missing_behaviour_of_a_symbol_that_the_task_changes(
    start: Path, tmp_path: Path, body: str
) -> None:
    new = {"other/new_test.go": f'package other\n\nimport (\n    . "example.com/greet"\n    "testing"\n)\n\n'
           f"func TestNew(t *testing.T) {{\n{body}\n}}\n"}  # fmt: skip
    # what the compiler quotes is not taken for its own word
    quote = {"quote/quote_test.go": 'package quote\n\nvar n int = "x: module lookup disabled by GOPROXY=off"\n'}
    seen = measure(write(shutil.copytree(start, tmp_path / "red"), new | quote), Selection.nothing())
    assert seen.environment_problem is None
    errors = {error.path: error for error in seen.collection_errors}
    assert errors.keys() == {"other/new_test.go", "quote/quote_test.go"}
    context = context_of(seen, files_of(start), symbols=(Symbol("greet.go", "Greet", new=False),))
    assert classify_collection(errors["other/new_test.go"], context).cls is RedClass.MISSING_BEHAVIOR, errors


@pytest.mark.broad
def test_what_a_new_file_hides_of_its_package_is_judged_again_at_green(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    new = {"part_test.go": 'package greet\n\nimport "testing"\n\nfunc TestPart(t *testing.T) {\n'
           '    if Part("ab") != "a" {\n        t.Fatal("part")\n    }\n}\n'}  # fmt: skip
    red = write(shutil.copytree(start, tmp_path / "red"), new)
    seen = measure(red, Selection(files=frozenset(new)))
    context = context_of(seen, files_of(start), symbols=SYMBOLS)
    verdict = judge_red(before, seen, None, context, task="1", tree="red")
    assert verdict.legal, verdict
    assert seen.records[".::TestOld"].outcome is None
    worse = {"greet.go": CODE.replace("Hello", "Bye") + "\nfunc Part(name string) string { return name[:1] }\n"}
    assert judge_green(verdict.ledger, measure(write(red, worse)), expectations(before)).regressions == (".::TestOld",)


def test_an_existing_file_that_does_not_compile_hides_its_tests_and_those_beside_it(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    changed = {
        "greet_test.go": START["greet_test.go"] + "\n        func TestPart(t *testing.T) { t.Fatal(Part()) }\n",
        "more_test.go": 'package greet\n\nimport "testing"\n\nfunc TestMore(t *testing.T) { t.Fatal(Greet("")) }\n',
    }
    seen = measure(write(shutil.copytree(start, tmp_path / "red"), changed), Selection(files=frozenset(changed)))
    context = context_of(seen, files_of(start), symbols=SYMBOLS)
    verdict = judge_red(before, seen, None, context, task="1", tree="red")
    assert {refusal.id: refusal.cls for refusal in verdict.illegal} == {
        "greet_test.go": RedClass.IMPORT_HIDES_TESTS,
        ".::TestMore": RedClass.NOT_RUN,
    }
    told = {refusal.id: refusal.message for refusal in verdict.illegal}
    assert told[".::TestMore"].endswith("greet_test.go does not compile, and with it no test of its package")
    assert verdict.removed_old == ()


@pytest.mark.broad
def test_production_that_does_not_compile_is_not_green_and_loses_no_test(
    start: Path, before: Observation, tmp_path: Path
) -> None:
    code = {"greet.go": CODE.replace("name }", "nobody }")}
    seen = measure(write(shutil.copytree(start, tmp_path / "broken"), code))
    assert seen.environment_problem is None
    assert [error.path for error in seen.collection_errors] == ["greet.go"]
    assert "undefined: nobody" in seen.tail
    assert seen.records[".::TestOld"].outcome is None
    assert seen.records["other::TestOne"].outcome is Ended.PASSED
    assert judge_green(None, seen, expectations(before)).regressions == (".::TestOld",)


def test_a_module_that_was_not_fetched_is_the_machines_fault(start: Path, tmp_path: Path) -> None:
    needy = {
        "go.mod": MANIFEST + "\nrequire github.com/x/y v1.0.0\n",
        "go.sum": "".join(f"github.com/x/y v1.0.0{what} h1:{'A' * 43}=\n" for what in ("", "/go.mod")),
        "greet.go": CODE.replace("greet\n", 'greet\n\nimport _ "github.com/x/y"\n', 1),
    }
    seen = measure(write(shutil.copytree(start, tmp_path / "needy"), needy), Selection.nothing())
    problem = seen.environment_problem or ""
    assert "module lookup disabled" in problem
    assert "`go mod download`" in problem


def test_a_go_that_is_too_old_is_the_machines_fault(start: Path, tmp_path: Path) -> None:
    newer = {"go.mod": "module example.com/greet\n\ngo 1.999.1\n"}
    seen = measure(write(shutil.copytree(start, tmp_path / "newer"), newer), Selection.nothing())
    assert "1.999.1" in (seen.environment_problem or "")


def test_a_broken_manifest_is_the_projects_fault(start: Path, tmp_path: Path) -> None:
    seen = measure(write(shutil.copytree(start, tmp_path / "odd"), {"go.mod": "modul x\n"}))
    assert seen.state is RunState.UNUSABLE
    assert seen.environment_problem is None
    assert [error.path for error in seen.collection_errors] == ["go.mod"]
