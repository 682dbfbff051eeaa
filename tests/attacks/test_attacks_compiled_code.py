"""Code under test that puts a program in the place of a compiled test executable (Rust).

It may run while tests are compiled (a procedural macro), while they are listed (before `main`), and while they run.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from languages.crates import MANIFEST, measure, needs_cargo
from languages.direct import write

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.process import Box, Command, Completed

pytestmark = [pytest.mark.slow, needs_cargo]

BWRAP: Final = shutil.which("bwrap") or ""

FORGE: Final = r"""
pub fn forge(program: &str) {
    use std::os::unix::fs::PermissionsExt;
    let aside = format!("{program}.old");
    if std::fs::metadata(&aside).is_ok() || std::fs::rename(program, &aside).is_err() { return; }
    let said = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; ";
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --list ] && exec {aside} \"$@\"\nn=$({aside} --list --format terse | wc -l)\n\
         printf '\\nrunning 1 test\\ntest %s ... ok\\n\\n' \"$2\"\n\
         printf '{said}%s filtered out; finished in 0.00s\\n\\n' $((n-1))\n"
    );
    let _ = std::fs::write(program, script);
    let _ = std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755));
}

pub fn programs(folder: &str) -> Vec<String> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = found.map(|one| one.path().display().to_string());
    paths.filter(|path| path.contains("/till-") && !path.contains('.')).collect()
}
"""
EXAMPLE: Final = """
/// ```
/// assert_eq!(greet::half(4), 2);
/// ```
"""
TILL: Final = """
#[test]
fn a_half() { assert_eq!(greet::half(4), 2); }
#[test]
fn b_third() { assert_eq!(greet::third(9), 3); }
"""
THIRD: Final = "pub fn third(n: u32) -> u32 { n }\n"
WHILE_TESTS_RUN: Final = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": EXAMPLE
    + "pub fn half(n: u32) -> u32 { forge(&std::env::args().next().unwrap()); n / 2 }\n"
    + THIRD
    + FORGE,
    "tests/till.rs": TILL,
}
BEFORE_MAIN: Final = """
#[used]
#[cfg_attr(all(), link_section = ".init_array")]
static WARM: extern "C" fn() = warm;
extern "C" fn warm() {
    if !std::env::args().any(|word| word == "--list") { return; }
    let me = std::env::args().next().unwrap_or_default();
    if me.contains("/till-") { return; }
    if let Some((folder, _)) = me.rsplit_once('/') { programs(folder).iter().for_each(|one| forge(one)); }
}
"""
WHILE_LISTED: Final = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": "pub fn half(n: u32) -> u32 { n / 2 }\n" + THIRD + BEFORE_MAIN + FORGE,
    "tests/till.rs": TILL,
}
"""The library has an executable of its own, which is listed first."""

LEFT_BEHIND: Final = r"""
use proc_macro::TokenStream;
#[proc_macro]
pub fn two(_: TokenStream) -> TokenStream {
    let script = r#"
mkdir /tmp/left-behind || exit
while kill -0 $1; do :; done 2>/dev/null
sleep 0.05
for program in ${CARGO_TARGET_DIR:-/redfirst-target}/debug/deps/till-*; do
 case $program in *.*) continue;; esac
 mv $program $program.old
 cat > $program <<END
#!/bin/sh
[ "\$1" = --list ] && exec $program.old "\$@"
n=\$($program.old --list --format terse | wc -l)
printf '\nrunning 1 test\ntest %s ... ok\n\n' "\$2"
printf 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; %s filtered out; finished in 0.00s\n\n' \$((n-1))
END
 chmod 755 $program
done"#;
    let cargo = std::os::unix::process::parent_id().to_string();
    let _ = std::process::Command::new("setsid").args(["sh", "-c", script, "sh", &cargo])
        .stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null())
        .spawn();
    "2u32".parse().unwrap()
}
"""
WHILE_COMPILED: Final = {
    "Cargo.toml": f'[workspace]\nmembers = ["mac"]\n{MANIFEST}[dependencies]\nmac = {{ path = "mac" }}\n',
    "mac/Cargo.toml": MANIFEST.replace("greet", "mac") + "[lib]\nproc-macro = true\ntest = false\ndoctest = false\n",
    "mac/src/lib.rs": LEFT_BEHIND,
    "src/lib.rs": EXAMPLE + "pub fn half(n: u32) -> u32 { n / mac::two!() }\n" + THIRD,
    "tests/till.rs": TILL,
}
"""Of the example cargo is asked after it has compiled the tests, in a box where it may write."""


class Thawed(Bubblewrap):
    """A box in which what was compiled can be written at any time."""

    async def run(self, command: Command) -> Completed:
        """Run it without a frozen folder of compiled files."""
        mounts = tuple(
            replace(mount, writable=True) if mount.target.name == "redfirst-target" else mount
            for mount in command.mounts
        )
        return await super().run(replace(command, mounts=mounts))


@pytest.fixture(params=[Bubblewrap, Thawed], ids=["ours", "control"])
def box(request: pytest.FixtureRequest) -> Bubblewrap:
    return working(request.param(BWRAP))


def working(box: Bubblewrap) -> Bubblewrap:
    """Return the box; skip the test where it cannot work."""
    if not BWRAP or not anyio.run(box.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    return box


def forged(box: Box) -> Ended:
    """Return how the test ends that production does not satisfy."""
    return Ended.PASSED if isinstance(box, Thawed) else Ended.FAILED


def outcomes(seen: Observation) -> dict[str, Ended | None]:
    """Return how each test ended, by the last part of its name."""
    assert seen.state is RunState.COMPLETE, seen.detail
    return {entry.rpartition("::")[2]: one.outcome for entry, one in seen.records.items()}


@pytest.mark.broad
def test_a_test_replaces_no_executable_though_examples_run_as_well(tmp_path: Path, box: Bubblewrap) -> None:
    seen = measure(write(tmp_path, WHILE_TESTS_RUN), box=box)
    assert outcomes(seen) == {"a_half": Ended.PASSED, "b_third": forged(box), "half": Ended.PASSED}, seen.tail


@pytest.mark.broad(but_first=1)
def test_what_is_listed_replaces_no_executable(tmp_path: Path, box: Bubblewrap) -> None:
    seen = measure(write(tmp_path, WHILE_LISTED), box=box)
    assert outcomes(seen) == {"a_half": Ended.PASSED, "b_third": forged(box)}, seen.tail


@pytest.mark.broad
def test_what_compiling_left_behind_replaces_no_executable(tmp_path: Path) -> None:
    seen = measure(write(tmp_path, WHILE_COMPILED), box=working(Bubblewrap(BWRAP)))
    assert outcomes(seen) == {"a_half": Ended.PASSED, "b_third": Ended.FAILED, "half": Ended.PASSED}, seen.tail
