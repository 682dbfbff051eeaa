"""What is read from sources and from what programs print, without running any."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.direct import write

from pipeline.judge.evidence.observation import Frame
from pipeline.process import Answer
from pipeline.testing.languages.go import output, project, sources
from pipeline.testing.languages.go import output as go_output
from pipeline.testing.languages.go.project import ADAPTER
from pipeline.testing.languages.go.runner import Frames
from pipeline.testing.languages.go.sources import TestFunction, read_folder
from pipeline.testing.languages.runners.processes import Ends
from pipeline.testing.languages.runners.sessions import read_session
from pipeline.trees import Files

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.text(string.ascii_letters + string.digits + "_#", min_size=1, max_size=8)
BYTES = st.lists(st.binary(max_size=400), max_size=20)


def kinds(source: str) -> dict[str, str]:
    top = sources.parse(f"package p\n\n{source}\n".encode())
    return {item.name: sources.test_kind(item.node) for item in sources.items(top) if item.kind == "func"}


def test_which_functions_are_tests_is_decided_as_go_does() -> None:
    assert kinds(
        """
        func TestA(t *testing.T) {}
        func TestB(x *T) {}
        func Test(t *testing.T) {}
        func Test_c(t *check.T) {}
        func TestÄ(t *testing.T) {}
        func Testify(t *testing.T) {}
        func TestD() {}
        func TestE(t testing.T) {}
        func TestF(t *testing.T, n int) {}
        func TestG(t, u *testing.T) {}
        func TestH(t *testing.T) error { return nil }
        func TestMain(m *testing.M) {}
        func FuzzA(f *testing.F) {}
        func FuzzB(t *testing.T) {}
        func BenchmarkA(b *testing.B) {}
        func helper(t *testing.T) {}
        """
    ) == {
        "TestA": "Test", "TestB": "Test", "Test": "Test", "Test_c": "Test", "TestÄ": "Test", "Testify": "",
        "TestD": "", "TestE": "", "TestF": "", "TestG": "", "TestH": "", "TestMain": "",
        "FuzzA": "Fuzz", "FuzzB": "", "BenchmarkA": "", "helper": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        ("f()\n    // Output: x", True),
        ("f()\n    // Unordered output:\n    // x\n    // y", True),
        ("f()\n    /* output: x */", True),
        ("f()\n    // OUTPUT:", True),
        ("// Output: x\n    f()\n\n    // a word at the end", False),
        ("f()", False),
        ("f() // prints Output: x", False),
    ],
)
def test_which_examples_run(body: str, *, runs: bool) -> None:
    assert kinds(f"func ExampleA() {{\n    {body}\n}}") == {"ExampleA": "Example" if runs else ""}


def test_what_states_failure_without_looking() -> None:
    source = """package p
func TestA(t *testing.T) {
    t.Fatal("no")
    t.Run("a", func(t *testing.T) { t.Errorf("no") })
    if true { t.Fail() }
    assert.True(t, false)
    require.Equal(t, 1, 2)
    panic("no")
    if got := F(); got != 1 { t.Fatal(got) }
    for _, c := range cases { t.Error(c) }
    assert.Equal(t, 1, F())
    is.True(ok)
    message := err.Error()
    switch { case x: t.Fatal() }
}
"""
    function = next(item.node for item in sources.items(sources.parse(source.encode())))
    assert sorted(sources.bare_lines(function)) == [3, 4, 5, 6, 7, 8]


def test_what_runs_before_every_test_is_part_of_each(tmp_path: Path) -> None:
    one = "package p\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) {}\n"
    write(tmp_path, {"a_test.go": one, "helper_test.go": "package p\n\nfunc help() {}\n"})
    before = read_folder(Files(tmp_path), "", ["a_test.go", "helper_test.go"]).tests
    write(tmp_path, {"helper_test.go": "package p\n\nfunc help() { panic(1) }\n"})
    assert read_folder(Files(tmp_path), "", ["a_test.go", "helper_test.go"]).tests == before
    for common in ("func TestMain(m *testing.M) { m.Run() }", "func init() {}"):
        write(tmp_path, {"helper_test.go": f"package p\n\n{common}\n"})
        after = read_folder(Files(tmp_path), "", ["a_test.go", "helper_test.go"]).tests
        assert all(after[name].sha256 != before[name].sha256 for name in ("TestA", "TestB"))


def test_the_corpus_of_a_fuzz_test_is_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, {"a_test.go": "package p\n\nfunc FuzzA(f *testing.F) {}\n\nfunc TestA(t *testing.T) {}\n"})
    before = read_folder(Files(tmp_path), "", ["a_test.go"]).tests
    write(tmp_path, {"testdata/fuzz/FuzzA/one": "x"})
    after = read_folder(Files(tmp_path), "", ["a_test.go"]).tests
    assert after["TestA"] == before["TestA"]
    assert after["FuzzA"].sha256 != before["FuzzA"].sha256


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("example.com/greet.(*Greeter).Later(...)", ("example.com/greet", "Greeter.Later")),
        ("example.com/greet.Greeter.Later(0x1, {0x2, 0x3})", ("example.com/greet", "Greeter.Later")),
        ("example.com/greet_test.TestX.func1(0x0?)", ("example.com/greet_test", "TestX.func1")),
        ("gopkg.in/yaml%2ev3.Unmarshal(...)", ("gopkg.in/yaml.v3", "Unmarshal")),
        ("example.com/a.Map[...](...)", ("example.com/a", "Map")),
        ("example.com/a.(*List[...]).Push(0xc0)", ("example.com/a", "List.Push")),
        ("example.com/a.(*T).M-fm()", ("example.com/a", "T.M")),
        ("panic({0x1, 0x2})", ("panic", "")),
        ("main.main()", ("main", "main")),
    ],
)
def test_names_of_functions_in_stacks(name: str, expected: tuple[str, str]) -> None:
    assert output.split_name(name) == expected


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("panic: boom\n\ngoroutine 1 [running]:\nmain.f()\n\t/w/a.go:3 +0x1\n", "boom"),
        ("panic: boom [recovered]\n\tpanic: boom\n\ngoroutine 6 [running]:\nmain.f()\n\t/w/a.go:3 +0x1\n", "boom"),
        ("panic: boom [recovered, repanicked]\n\ngoroutine 6 [running]:\nmain.f()\n\t/w/a.go:3 +0x1\n", "boom"),
        ("panic: a\n\tb\n\ngoroutine 6 gp=0x1 m=0 [running]:\nmain.f()\n\t/w/a.go:3 +0x1\n", "a\nb"),
        ("panic: nil\n[signal SIGSEGV: x]\n\ngoroutine 6 [running]:\nmain.f()\n\t/w/a.go:3 +0x1 fp=0x1\n", "nil"),
        ("panic: logged only\n\nmore\npanic: boom\n\ngoroutine 1 [running]:\nmain.f()\n\t/w/a.go:3\n", "boom"),
    ],
)
def test_panics_as_several_versions_print_them(stderr: str, said: str) -> None:
    assert go_output.read_panic(stderr) == go_output.Panic(said, (go_output.Call("main.f()", "/w/a.go", 3),))


def test_what_a_table_of_an_assertion_library_says(tmp_path: Path) -> None:
    printed = (
        "=== RUN   TestX\n    a_test.go:9: \n"
        "        \tError Trace:\t/w/a_test.go:9\n        \tError:      \tNot equal: \n"
        "        \t            \texpected: 1\n        \tTest:       \tTestX\n--- FAIL: TestX (0.00s)\nFAIL\n"
    )
    test = TestFunction("TestX", "Test", "p/a_test.go", 8, "", frozenset(), frozenset())
    measured = Files(write(tmp_path, {"p/a_test.go": "package p\n"}))
    whole = project.Project(measured, "/w", (), (), (), project.Workspace({}, {}))
    fault = output.of_failure("TestX", go_output.read_output(printed, "TestX"), test, whole)
    assert fault.raised.message == "Error: Not equal:\nexpected: 1\nTest: TestX"
    assert fault.frames == (Frame(path="p/a_test.go", line=9, function="TestX"),)


@given(NAMES, st.lists(st.tuples(NAMES, st.sampled_from(["PASS", "FAIL", "SKIP"])), unique_by=lambda pair: pair[0]))
def test_results_are_read_back(test: str, subtests: list[tuple[str, str]]) -> None:
    lines = [f"=== RUN   {test}"]
    lines += [f"noise=== RUN   {test}/{name}\n    a_test.go:1: said" for name, _ in subtests]
    lines += [f"--- PASS: {test} (0.00s)", *(f"    --- {result}: {test}/{name} (1.25s)" for name, result in subtests)]
    found = go_output.read_output("\n".join([*lines, "PASS", ""]), test)
    assert found.results == {test: "PASS", **{f"{test}/{name}": result for name, result in subtests}}
    assert list(found.begun) == [test, *(f"{test}/{name}" for name, _ in subtests)]
    assert found.last_word == "PASS"


@given(st.text(max_size=2000), st.text(max_size=2000))
def test_no_output_is_too_odd(stdout: str, stderr: str) -> None:
    found = go_output.read_output(stdout, "TestX")
    assert all(name == "TestX" or name.startswith("TestX/") for name in (*found.results, *found.begun))
    go_output.read_panic(f"panic: {stderr}")
    go_output.read_race(f"WARNING: DATA RACE\n{stderr}")
    for refusal in project.refusals([("", stderr), (stdout, stderr)], "/w"):
        project.fault_of(refusal, project.Workspace({"m": "."}, {}))


@given(BYTES, st.integers(1, 300))
def test_the_ends_of_a_stream_are_its_ends(chunks: list[bytes], limit: int) -> None:
    ends, whole = Ends(limit), b"".join(chunks)
    for chunk in chunks:
        ends.feed(chunk)
    text = ends.text().encode("utf-8", "replace")
    if len(whole) <= limit:
        assert ends.text() == whole.decode("utf-8", "replace")
    assert len(text) <= 3 * (3 * limit + 10)


@given(BYTES)
def test_short_output_is_kept_as_it_is(chunks: list[bytes]) -> None:
    frames, whole = Frames(), b"".join(chunks)
    for chunk in chunks:
        frames.feed(chunk)
    if whole.count(b"\n") < 50:
        assert frames.text() == whole.decode("utf-8", "replace")


def test_errors_of_the_compiler_have_a_place_and_all_of_their_words() -> None:
    text = (
        "# example.com/greet [example.com/greet.test]\n./a_test.go:5:2: undefined: Bye\n"
        "polite/b_test.go:7:9: not enough arguments in call to Greet\n\thave ()\n\twant (string)\n"
        "/elsewhere/c.go:1:1: odd\n"
    )
    assert list(project.refusals([("", text), ("d_test.go:3:8", "no package\n\tgo get it")], "/w")) == [
        project.Refusal("a_test.go", 5, "undefined: Bye"),
        project.Refusal("polite/b_test.go", 7, "not enough arguments in call to Greet\nhave ()\nwant (string)"),
        project.Refusal("", 1, "odd"),
        project.Refusal("d_test.go", 3, "no package\ngo get it"),
    ]


def test_records_that_are_not_ours_are_not_believed() -> None:
    good = b'{"kind": "start", "nonce": "n", "n": 0, "id": "x"}\n{"kind": "end", "nonce": "n", "n": 1}\n'
    assert read_session(Answer(good), "n", ADAPTER).is_whole
    assert read_session(Answer(good), "other", ADAPTER).fault.endswith("was not written by the harness")
    assert read_session(Answer(good + good), "n", ADAPTER).fault
    assert read_session(Answer(good[:-5]), "n", ADAPTER).fault == ""
    assert not read_session(Answer(good[:-5]), "n", ADAPTER).is_whole
