"""Code under test that has another program report in the place of the test process that was started (Rust, Go)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from languages import crates, modules
from languages.direct import write

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.runners import processes
from pipeline.testing.languages.runners.exec_guard import REPLACED

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.process import Box

pytestmark = pytest.mark.slow

RUST_FORGES: Final = r"""
use std::os::unix::process::CommandExt;
use std::process::Command;

fn words() -> String {
    let words = std::fs::read_to_string("/proc/self/cmdline").unwrap();
    let name = words.split('\0').skip_while(|word| *word != "--exact").nth(1).unwrap().to_string();
    let listed = Command::new(std::env::current_exe().unwrap()).args(["--list", "--format=terse"]).output().unwrap();
    let others = String::from_utf8(listed.stdout).unwrap().lines().count() - 1;
    let result = format!("1 passed; 0 failed; 0 ignored; 0 measured; {others} filtered out; finished in 0.00s");
    format!("\nrunning 1 test\ntest {name} ... ok\n\ntest result: ok. {result}\n\n")
}

pub fn forge() -> std::io::Error {
    Command::new("sh").args(["-c", "printf %s \"$1\"", "sh", &words()]).exec()
}
"""
RUST: Final = {
    "Cargo.toml": crates.MANIFEST,
    "src/lib.rs": RUST_FORGES
    + """
pub fn wanted() -> u32 { forge(); 0 }
pub fn beside() -> u32 { std::thread::spawn(forge).join().unwrap(); 0 }
pub fn leaves() -> u32 { print!("{}", words()); std::process::exit(0) }

#[cfg(test)]
mod tests {
    #[test]
    fn wanted() { assert_eq!(super::wanted(), 3); }
    #[test]
    fn beside() { assert_eq!(super::beside(), 3); }
    #[test]
    fn leaves() { assert_eq!(super::leaves(), 3); }
    #[test]
    fn fails() { assert_eq!(super::forge().kind(), std::io::ErrorKind::PermissionDenied); }
}
""",
}
GO_FORGES: Final = r"""
    package shop

    import (
        "os"
        "regexp"
        "runtime"
        "syscall"
    )

    func forge() error {
        line, _ := os.ReadFile("/proc/self/cmdline")
        name := regexp.MustCompile(`-test\.run=\^(\w+)\$`).FindSubmatch(line)[1]
        said := "=== RUN   " + string(name) + "\n--- PASS: " + string(name) + " (0.00s)\nPASS\n"
        return syscall.Exec("/bin/sh", []string{"sh", "-c", `printf %s "$1"`, "sh", said}, os.Environ())
    }

    func Wanted() int {
        forge()
        return 0
    }

    func Beside() int {
        done := make(chan bool)
        go func() {
            runtime.LockOSThread()
            forge()
            done <- true
        }()
        <-done
        return 0
    }
    """
GO: Final = {
    "go.mod": modules.MANIFEST,
    "code.go": GO_FORGES,
    "code_test.go": """
        package shop

        import (
            "syscall"
            "testing"
        )

        func TestWanted(t *testing.T) {
            if Wanted() != 3 {
                t.Fatal("not there")
            }
        }

        func TestBeside(t *testing.T) {
            if Beside() != 3 {
                t.Fatal("not there")
            }
        }

        func TestFails(t *testing.T) {
            if err := forge(); err != syscall.EPERM {
                t.Fatal(err)
            }
        }
        """,
}


@pytest.fixture(params=["bubblewrap", "none"])
def box(request: pytest.FixtureRequest) -> Box:
    bwrap = shutil.which("bwrap") or ""
    made = NoBox() if request.param == "none" else Bubblewrap(bwrap)
    if isinstance(made, Bubblewrap) and (not bwrap or not anyio.run(made.canary).ok):
        pytest.skip("this machine has no working bubblewrap")
    return made


def outcomes(seen: Observation) -> dict[str, Ended | None]:
    """Return how each test ended, by the last part of its name."""
    assert seen.state is RunState.COMPLETE, seen.detail
    return {entry.rpartition("::")[2].removeprefix("Test").lower(): one.outcome for entry, one in seen.records.items()}


STAYS: Final = {"wanted": Ended.FAILED, "beside": Ended.FAILED, "fails": Ended.PASSED}
"""The process goes on as what it is: nothing passes by it, and who expects the call to fail is right."""


@pytest.mark.broad(but_first=1)
@crates.needs_cargo
def test_no_other_program_speaks_for_a_rust_test(tmp_path: Path, box: Box) -> None:
    seen = crates.measure(write(tmp_path, RUST), box=box)
    assert outcomes(seen) == {**STAYS, "leaves": Ended.CRASHED}, seen.tail
    assert REPLACED in seen.records["greet::lib::tests::wanted"].reason


@pytest.mark.broad(but_first=1)
@modules.needs_go
def test_no_other_program_speaks_for_a_go_test(tmp_path: Path, box: Box) -> None:
    seen = modules.measure(write(tmp_path, GO), box=box)
    assert outcomes(seen) == STAYS, seen.tail
    assert REPLACED in seen.records[".::TestWanted"].reason


def ended(argv: list[str], cwd: Path, *, watched: bool = False) -> processes.Ended:
    out, err = processes.Tail(64_000), processes.Tail(64_000)
    return processes.run(argv, 60, out, err, str(cwd), watched=watched, ends=True)


@crates.needs_cargo
@pytest.mark.broad
def test_unwatched_it_does_for_rust(tmp_path: Path) -> None:
    env = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target")}
    built = subprocess.run(
        ["cargo", "test", "--no-run", "--offline", "--lib", "--message-format=json"],
        cwd=write(tmp_path / "project", RUST), env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (program,) = [found for line in built.stdout.splitlines() if (found := json.loads(line).get("executable"))]
    for name in ("wanted", "beside", "leaves"):
        argv = [program, "--exact", f"tests::{name}", "--nocapture"]
        forged, watched = ended(argv, tmp_path), ended(argv, tmp_path, watched=True)
        assert (forged.code, f"test tests::{name} ... ok" in forged.stdout) == (0, True)
        assert (watched.code != 0) is (name != "leaves")
        assert watched.watch.left_aside is (name == "leaves")


@modules.needs_go
@pytest.mark.broad
def test_unwatched_it_does_for_go(tmp_path: Path) -> None:
    program = str(tmp_path / "it.test")
    subprocess.run(["go", "test", "-c", "-o", program], cwd=write(tmp_path / "project", GO), check=True)
    for name in ("TestWanted", "TestBeside"):
        argv = [program, "-test.v=true", f"-test.run=^{name}$"]
        forged, watched = ended(argv, tmp_path), ended(argv, tmp_path, watched=True)
        assert (forged.code, forged.stdout.endswith(f"--- PASS: {name} (0.00s)\nPASS\n")) == (0, True)
        assert (watched.code, "--- PASS" in watched.stdout) == (1, False)
