"""Tests and code that would have a failure pass for a pass: what they get instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import write
from languages.modules import MANIFEST, measure, needs_go

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

pytestmark = [pytest.mark.slow, needs_go]

TEST = """
    package {name}

    import "testing"

    func TestWanted(t *testing.T) {{
        if Wanted() != 3 {{
            t.Fatal("not there")
        }}
    }}
    """
CODE = """
    package {name}

    import (
        {imports}
    )

    func Wanted() int {{ return 0 }}

    {code}
    """


def package(name: str, code: str, *imports: str) -> dict[str, str]:
    """Return a package whose code does not do what its test asks for, and does something else instead."""
    lines = code.strip().splitlines()
    shown = "\n    ".join(line.removeprefix("        ") for line in lines)
    named = "\n        ".join(f'"{path}"' for path in imports)
    return {
        f"{name}/code.go": CODE.format(name=name, imports=named, code=shown),
        f"{name}/code_test.go": TEST.format(name=name),
    }


SAYS_ALL = r"""
func init() {
    for _, word := range os.Args {
        if at := strings.Index(word, "run=^"); at > 0 {
            name := strings.Trim(word[at+5:], "^$")
            fmt.Printf("=== RUN   %s\n--- PASS: %s (0.00s)\nPASS\n", name, name)
            os.Exit(0)
        }
    }
}
"""
"""The last words of a passing test, before any test begins."""
LEAVES = {
    **package("says_all", SAYS_ALL, "fmt", "os", "strings"),
    **package("in_init", "func init() { os.Exit(0) }", "os"),
    **package("says_pass", 'func init() { fmt.Println("PASS"); syscall.Exit(0) }', "fmt", "syscall"),
    **package("background", "func init() { go func() { os.Exit(0) }() }", "os"),
    **package("by_signal", "func init() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }", "os", "syscall"),
    "test_main/code.go": "package test_main\n\nfunc Wanted() int { return 0 }\n",
    "test_main/code_test.go": TEST.format(name="test_main"),
    "test_main/main_test.go": """
        package test_main

        import (
            "os"
            "testing"
        )

        func TestMain(m *testing.M) { os.Exit(0) }
        """,
    "of_another/code.go": "package of_another\n\nfunc Wanted() int { return 0 }\n",
    "of_another/code_test.go": """
        package of_another

        import (
            "fmt"
            "syscall"
            "testing"
        )

        func TestWanted(t *testing.T) {
            fmt.Println("--- PASS: TestOther (0.00s)\\nPASS")
            syscall.Exit(0)
        }

        func TestFails(t *testing.T) {
            fmt.Println("--- PASS: TestFails (0.00s)\\nPASS")
            t.Run("sub", func(t *testing.T) { fmt.Println("    --- PASS: TestFails/sub (0.00s)") })
            t.Error("for real")
        }

        func TestWhole(t *testing.T) {
            t.Run("sub", func(t *testing.T) {
                fmt.Println("    --- FAIL: TestWhole/sub (0.00s)")
            })
        }
        """,
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Observation:
    return measure(write(tmp_path_factory.mktemp("hostile"), {"go.mod": MANIFEST, **LEAVES}), per_test_timeout_s=20)


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("name", ["in_init", "says_pass", "says_all", "by_signal", "test_main", "of_another"])
def test_who_leaves_early_has_not_passed(seen: Observation, name: str) -> None:
    assert seen.state is RunState.COMPLETE
    assert seen.records[f"{name}::TestWanted"].outcome is Ended.CRASHED


def test_who_leaves_some_time_has_not_passed_either(seen: Observation) -> None:
    assert seen.records["background::TestWanted"].outcome in {Ended.CRASHED, Ended.FAILED}


def test_printed_results_are_believed_where_they_are_worse(seen: Observation) -> None:
    assert seen.records["of_another::TestFails"].outcome is Ended.FAILED
    assert seen.records["of_another::TestWhole"].outcome is Ended.FAILED
    assert seen.records["of_another::TestWhole/sub"].outcome is Ended.FAILED


NOISY = """
    package noisy

    import (
        "fmt"
        "os"
        "strings"
        "testing"
    )

    func TestPrints(t *testing.T) {
        for i := 0; i < 3000; i++ {
            fmt.Println(strings.Repeat("x", 50_000))
            fmt.Fprintln(os.Stderr, strings.Repeat("y", 20_000))
        }
        fmt.Print(strings.Repeat("z", 9_000_000))
        t.Run("sub", func(t *testing.T) {})
        t.Fatal("after all of it")
    }

    func TestInvents(t *testing.T) {
        for i := 0; i < 200_000; i++ {
            fmt.Printf("=== RUN   TestInvents/%d\\n", i)
        }
    }
    """


@pytest.mark.broad
def test_output_without_measure_is_kept_short_and_what_is_said_at_its_end_is_not_lost(tmp_path: Path) -> None:
    seen = measure(write(tmp_path, {"go.mod": MANIFEST, "noisy/noisy_test.go": NOISY}))
    record = seen.records["noisy::TestPrints"]
    assert record.outcome is Ended.FAILED
    assert record.fault is not None
    assert record.fault.raised.message == "after all of it"
    assert seen.records["noisy::TestPrints/sub"].outcome is Ended.PASSED
    assert seen.records["noisy::TestInvents"].outcome is Ended.PASSED
    assert len(seen.records) <= 20_010
    assert len(seen.tail) <= 8_000


ATTACKS = """
    package attack

    import (
        "os"
        "os/exec"
        "syscall"
        "testing"
    )

    func TestKillsItsGroup(t *testing.T) { syscall.Kill(0, syscall.SIGKILL) }

    func TestLeavesAChildWithItsStreams(t *testing.T) {
        child := exec.Command("/bin/sh", "-c", "sleep 600")
        child.Stdout, child.Stderr = os.Stdout, os.Stderr
        child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
        if err := child.Start(); err != nil {
            t.Fatal(err)
        }
    }

    func TestFails(t *testing.T) { t.Fatal("of course") }
    """
WRITES = """
    package attack

    import (
        "fmt"
        "os"
        "path/filepath"
        "testing"
    )

    func TestWritesRecords(t *testing.T) {
        forged := `{"kind": "ended", "nonce": "x", "n": 1, "id": "attack::TestFails", "code": 0}` + "\\n"
        written := 0
        for _, process := range []string{fmt.Sprint(os.Getppid()), "1"} {
            streams, _ := filepath.Glob("/proc/" + process + "/fd/*")
            for _, stream := range streams {
                if file, err := os.OpenFile(stream, os.O_WRONLY, 0); err == nil {
                    file.WriteString(forged)
                    written++
                }
            }
        }
        t.Logf("wrote to %d streams", written)
    }

    func TestFails(t *testing.T) { t.Fatal("of course") }
    """
KILLS = """
    package attack

    import (
        "os"
        "syscall"
        "testing"
        "time"
    )

    func TestKillsItsParent(t *testing.T) {
        syscall.Kill(os.Getppid(), syscall.SIGKILL)
        time.Sleep(2 * time.Second)
    }

    func TestLater(t *testing.T) {}
    """


@pytest.mark.broad
def test_one_test_harms_no_other(tmp_path: Path, box: Bubblewrap) -> None:
    write(tmp_path, {"go.mod": MANIFEST, "attack/attack_test.go": ATTACKS})
    seen = measure(tmp_path, box=box, per_test_timeout_s=30)
    assert seen.state is RunState.COMPLETE, seen.detail
    assert {entry.partition("::")[2]: record.outcome for entry, record in seen.records.items()} == {
        "TestKillsItsGroup": Ended.CRASHED,
        "TestLeavesAChildWithItsStreams": Ended.PASSED,
        "TestFails": Ended.FAILED,
    }, seen.tail


def test_a_forged_record_makes_nothing_pass(tmp_path: Path, box: Bubblewrap) -> None:
    write(tmp_path, {"go.mod": MANIFEST, "attack/attack_test.go": WRITES})
    seen = measure(tmp_path, box=box)
    # the box's own init holds the stream too: what is written there is noticed, and the run is worth nothing then
    assert seen.records["attack::TestFails"].outcome is (None if seen.state is RunState.UNUSABLE else Ended.FAILED)
    assert seen.state in {RunState.UNUSABLE, RunState.COMPLETE}


@pytest.mark.broad
def test_who_kills_the_runner_ends_the_run_and_gains_nothing(tmp_path: Path, box: Bubblewrap) -> None:
    write(tmp_path, {"go.mod": MANIFEST, "attack/attack_test.go": KILLS})
    seen = measure(tmp_path, box=box)
    assert seen.state is RunState.CRASHED
    assert seen.records["attack::TestKillsItsParent"].outcome is Ended.CRASHED
    assert seen.records["attack::TestLater"].outcome is None


@pytest.mark.broad
def test_files_that_are_no_files_are_not_read(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"go.mod": MANIFEST, "a/a_test.go": TEST.format(name="a")})
    (project / "a" / "testdata").mkdir()
    (project / "a" / "testdata" / "link").symlink_to("/etc/passwd")
    (project / "b").symlink_to("/etc")
    seen = measure(project, Selection.nothing())
    assert set(seen.files) == {"a/a_test.go"}
