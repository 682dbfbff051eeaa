"""What one run of a module shows: every way in which a Go test can end, and what it is for the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import by_name, context_of, expected, files_of, judged, write
from languages.modules import MANIFEST, TOOLCHAIN, measure, needs_go

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.judge.evidence.red_classes import RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_go]

MODULE = {
    "go.mod": MANIFEST,
    "greet.go": """
        // Package greet greets.
        package greet

        import (
            "errors"
            "fmt"
            "os"
            "syscall"
        )

        // ErrEmpty says that a name is missing.
        var ErrEmpty = errors.New("empty name")

        // Greet greets.
        func Greet(name string) string { return "Hello, " + name + "!" }

        // Greeter greets several times.
        type Greeter struct{ Names []string }

        // Later is not there yet.
        func (g *Greeter) Later() int { panic("not implemented") }

        // Part returns the first letter.
        func Part(name string) byte { return name[0] }

        // Leave leaves, and says that all is well.
        func Leave() {
            fmt.Println("--- PASS: TestLeaves (0.00s)")
            fmt.Println("PASS")
            os.Exit(0)
        }

        // Slip leaves in a way that testing does not notice.
        func Slip() { syscall.Exit(0) }

        // Background panics where nobody waits.
        func Background() {
            done := make(chan struct{})
            go func() {
                defer close(done)
                panic(fmt.Errorf("in the background\\nof %s", "it"))
            }()
            <-done
        }

        // Table is read from a file.
        func Table(path string) ([]byte, error) { return os.ReadFile(path) }
        """,
    "data.txt": "a\n",
    "testdata/golden.txt": "b\n",
    "greet_test.go": """
        package greet

        import (
            "errors"
            "fmt"
            "os"
            "os/exec"
            "runtime"
            "runtime/debug"
            "strings"
            "testing"
            "time"
        )

        func check(t *testing.T, got, want string) {
            t.Helper()
            if got != want {
                t.Fatalf("got %q, want %q", got, want)
            }
        }

        func TestPasses(t *testing.T) {
            t.Log("--- FAIL: TestOther (0.00s)")
            fmt.Print("no end of line")
            check(t, Greet("a"), "Hello, a!")
        }

        func TestAsserts(t *testing.T) {
            t.Log("first a note")
            if got := Greet("a"); got != "b" {
                t.Errorf("got %q,\\nwant %q", got, "b")
            }
            t.Log("then another")
        }

        func TestAssertsThroughAHelper(t *testing.T) { check(t, Greet("a"), "b") }

        func TestReachesAStub(t *testing.T) {
            t.Run("deep", func(t *testing.T) { new(Greeter).Later() })
        }

        func TestPanicsInProduction(t *testing.T) { Part("") }

        func TestSaysNothing(t *testing.T) { t.Fatal("not yet") }

        func TestSaysNothingQuietly(t *testing.T) { t.FailNow() }

        func TestLooksFirst(t *testing.T) {
            if Greet("a") != "" {
                t.Fail()
            }
        }

        func TestLooksAtLiterals(t *testing.T) {
            if true {
                t.Fatal("always")
            }
        }

        func TestPanicsItself(t *testing.T) {
            if err := ErrEmpty; err != nil {
                panic(err)
            }
        }

        func TestIsBrokenItself(t *testing.T) {
            var none []int
            _ = none[len(Greet(""))]
        }

        func TestNil(t *testing.T) {
            var g *Greeter
            _ = g.Names
        }

        func TestIsSkipped(t *testing.T) { t.Skip("not today") }

        func TestLeaves(t *testing.T) { Leave() }

        func TestSlips(t *testing.T) { Slip() }

        func TestExits(t *testing.T) { os.Exit(1) }

        func TestGoesAway(t *testing.T) { runtime.Goexit() }

        func TestHangs(t *testing.T) {
            for {
                time.Sleep(time.Minute)
            }
        }

        func TestWaitsForEver(t *testing.T) { select {} }

        func TestOverflows(t *testing.T) {
            debug.SetMaxStack(1 << 20)
            var deeper func(int) int
            deeper = func(n int) int { return deeper(n+1) + 1 }
            deeper(0)
        }

        func TestBackground(t *testing.T) { Background() }

        func TestCases(t *testing.T) {
            for _, c := range []struct{ name, want string }{
                {"a b", "Hello, a b!"},
                {"c", "Bye"},
                {"c", "Hello, c!"},
            } {
                c := c
                t.Run(c.name, func(t *testing.T) {
                    t.Parallel()
                    check(t, Greet(c.name), c.want)
                })
            }
            t.Run("skipped", func(t *testing.T) { t.Skip("no") })
        }

        func TestOpens(t *testing.T) {
            if _, err := Table("data.txt"); !errors.Is(err, ErrEmpty) {
                t.Error(err)
            }
        }

        func TestRuns(t *testing.T) {
            out, _ := exec.Command("go", "env", "GOPROXY").Output()
            check(t, strings.TrimSpace(string(out)), "on")
        }

        func ExampleGreet() {
            fmt.Println(Greet("a"))
            // Output: Bye
        }

        func ExampleGreeter() {
            fmt.Println("of no output")
        }

        func FuzzGreet(f *testing.F) {
            f.Add("a")
            f.Fuzz(func(t *testing.T, name string) {
                if len(Greet(name)) == 0 || name == "b" {
                    t.Fatal("fuzz")
                }
            })
        }

        func Testament(t *testing.T) {}

        func BenchmarkGreet(b *testing.B) {}
        """,
    "testdata/fuzz/FuzzGreet/one": 'go test fuzz v1\nstring("b")\n',
    "polite/polite.go": "package polite\n\nfunc Polite(name string) string { return name }\n",
    "polite/polite_test.go": """
        package polite_test

        import (
            "os"
            "testing"

            . "example.com/greet/polite"
        )

        func TestMain(m *testing.M) {
            os.Chdir("..")
            m.Run()
            os.Exit(0)
        }

        func TestPolite(t *testing.T) {
            if Polite("a") != "b" {
                t.Error("not polite")
            }
        }
        """,
}

EXPECTED = by_name(
    {
        (Ended.PASSED, None): "TestPasses, TestCases/c#01, FuzzGreet/seed#0",
        (Ended.FAILED, RedClass.ASSERTION_MISMATCH): (
            "TestAsserts, TestAssertsThroughAHelper, TestPanicsInProduction, TestLooksFirst, "
            "TestPanicsItself, TestLeaves, TestBackground, TestCases, TestCases/c, TestOpens, TestRuns, "
            "ExampleGreet, FuzzGreet/one"
        ),
        (Ended.FAILED, RedClass.MISSING_BEHAVIOR): "TestReachesAStub, TestReachesAStub/deep",
        (Ended.FAILED, RedClass.STRUCTURAL): "TestSaysNothing, TestSaysNothingQuietly, TestLooksAtLiterals",
        (Ended.FAILED, RedClass.TEST_BROKEN): "TestIsBrokenItself, TestNil, TestGoesAway",
        (Ended.SKIPPED, RedClass.SKIPPED): "TestIsSkipped",
        (Ended.CRASHED, RedClass.CRASHED): "TestSlips, TestExits, TestOverflows",
        (Ended.TIMED_OUT, RedClass.TEST_TIMEOUT): "TestHangs, TestWaitsForEver",
        (Ended.PASSED, RedClass.PASSED_UNMARKED): "TestCases/a_b",
        (Ended.SKIPPED, None): "TestCases/skipped",
        (Ended.FAILED, None): "FuzzGreet",
    }
)
"""How each test ends, and what a failure is for the judges."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("module"), MODULE)


@pytest.fixture(scope="module")
def seen(place: Path) -> Observation:
    return measure(place, trace=True, per_test_timeout_s=3)


def test_every_test_of_a_module_has_an_id_a_file_and_an_end(seen: Observation) -> None:
    assert seen.state is RunState.COMPLETE, seen.tail
    assert {entry: (record.outcome, record.path) for entry, record in seen.records.items()} == {
        **{f".::{name}": (outcome, "greet_test.go") for name, (outcome, _) in EXPECTED.items()},
        # a TestMain that ends with 0 whatever its tests did
        "polite::TestPolite": (Ended.FAILED, "polite/polite_test.go"),
    }
    reasons = {name: seen.records[f".::{name}"].reason for name in ("TestIsSkipped", "TestExits", "TestOverflows")}
    assert reasons == {
        "TestIsSkipped": "not today",
        "TestExits": "exited by itself with 1",
        "TestOverflows": "fatal error: stack overflow",
    }
    assert seen.records[".::TestCases/c"].function == ".::TestCases"


def test_what_a_failure_is_for_the_judges(place: Path, seen: Observation) -> None:
    context = context_of(seen, files_of(place), symbols=(Symbol("greet.go", "Greeter.Later"),))
    assert judged(seen, context, ".::", EXPECTED) == expected(EXPECTED)


def test_a_stub_counts_only_where_it_is_the_tasks(place: Path, seen: Observation) -> None:
    record = seen.records[".::TestReachesAStub"]
    own = classify(record, context_of(seen, files_of(place), symbols=(Symbol("greet.go", "Greeter.Later"),)))
    assert own.message == "Greeter.Later is not implemented yet"
    other = classify(record, context_of(seen, files_of(place), symbols=(Symbol("greet.go", "Part"),)))
    assert other.cls is RedClass.ASSERTION_MISMATCH


def test_what_a_failure_says_and_where(seen: Observation) -> None:
    fault = seen.records[".::TestAsserts"].fault
    assert fault is not None
    assert fault.raised.message == 'got "Hello, a!",\nwant "b"'
    assert [(frame.path, frame.line) for frame in fault.frames] == [("greet_test.go", 31)]
    background = seen.records[".::TestBackground"].fault
    assert background is not None
    assert background.raised.message == "in the background\nof it"
    assert background.last_own_frame is not None
    assert background.last_own_frame.function == "Background.func1"
    example = seen.records[".::ExampleGreet"].fault
    assert example is not None
    assert example.raised.message == "got:\nHello, a!\nwant:\nBye"


def test_what_a_test_reaches(seen: Observation) -> None:
    def reached(name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        reach = seen.records[f".::{name}"].reach
        assert reach is not None
        return reach.functions, reach.references, reach.doors

    assert reached("TestAsserts") == (("greet.go::Greet",), ("greet.go::Greet",), ())
    assert reached("TestReachesAStub")[0] == ("greet.go::Greeter.Later",)
    assert reached("TestSaysNothing") == ((), (), ())
    assert reached("TestOpens") == (
        ("greet.go::Table",), ("greet.go::ErrEmpty", "greet.go::Table"), ("data.txt",)
    )  # fmt: skip
    assert reached("TestRuns")[2] == ("process",)
    polite = seen.records["polite::TestPolite"].reach
    assert polite is not None
    assert polite.functions == ("polite/polite.go::Polite",)


def test_which_files_are_tests(seen: Observation) -> None:
    layout = seen.layout
    assert layout.is_test("new/folder/x_test.go")
    assert not layout.is_test("greet.go")
    assert layout.is_test_side("polite/testdata/golden.json")
    assert not layout.is_test_side("polite/polite.go")
    assert TOOLCHAIN.is_test_path("polite/testdata/golden.json", seen)
    assert not TOOLCHAIN.is_test_path("polite/polite.go", seen)
    assert {"greet_test.go", "testdata/golden.txt", "testdata/fuzz/FuzzGreet/one"} <= set(seen.files)
    controlled = ("a/go.mod", "go.work.sum", "vendor/x/y.go", ".golangci.yml", "a/go.go")
    assert [TOOLCHAIN.is_control_path(path) for path in controlled] == [True, True, True, True, False]


def test_what_people_read_has_no_stack_and_no_place_of_this_machine(place: Path, seen: Observation) -> None:
    assert "[running]" not in seen.tail
    assert str(place) not in seen.model_dump_json()
