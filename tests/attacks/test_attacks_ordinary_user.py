"""The same driver as an ordinary user: whoever runs these tests as root, as CI often does, sees the other half here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from languages import crates, modules

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user"),
]

CHECKOUT = Path(__file__).parents[2]
USER = 61_234
CASES = ("FS-06", "OWN-OK-2", "FS-08", "FS-30", "RES-07", "OWN-01", "OWN-15", "OWN-22", "OWN-26", "OWN-51")
ENTER = """
set -eu
stage=$1; shift
number=0
for place in "$@"; do
  [ "$place" != -- ] || break
  number=$((number + 1)); mkdir "$stage/$number"; mount --bind "$place" "$stage/$number"
done
number=0
while [ "$1" != -- ]; do
  mkdir -p "$1"; number=$((number + 1)); closed=$1
  while [ "$closed" != / ]; do
    case $(stat -c %a "$closed") in *[1357]) ;; *) mount -t tmpfs -o mode=755 none "$closed" ;; esac
    closed=$(dirname "$closed")
  done
  mkdir -p "$1"; mount --bind "$stage/$number" "$1"; mount -o remount,bind,ro "$1"
  shift
done
shift
exec "$@"
"""
"""Shows the folders $2... read-only at their own paths, also below folders that are closed to others, and starts what
comes after `--`; $1 is an empty folder."""


@pytest.fixture
def place() -> Generator[Path]:
    """Return a folder of that user, outside of this test's own, which is closed to others."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        Path(folder).chmod(0o755)
        for name in ("stage", "home", "tests"):
            (Path(folder) / name).mkdir()
            os.chown(Path(folder) / name, USER, USER)
        yield Path(folder)


@pytest.mark.broad
def test_the_positive_control_and_the_key_attacks_end_the_same_for_an_ordinary_user(place: Path) -> None:
    chosen = ("tests/attacks/test_attacks_dispatch.py", "-k", " or ".join(CASES))
    said = as_the_user(place, chosen)
    whole = rf"^ +all +{len(CASES)} cases, +{len(CASES)} as expected$"
    assert re.search(whole, said, re.MULTILINE), f"no kernel box was attacked: {said}"


@crates.needs_cargo
@modules.needs_go
@pytest.mark.broad
def test_no_other_program_speaks_for_a_test_of_an_ordinary_user(place: Path) -> None:
    said = as_the_user(place, ("tests/attacks/test_attacks_other_program.py",), crates.environment().prefix)
    assert re.search(r"^6 passed in ", said, re.MULTILINE), said


@pytest.mark.broad
def test_what_tests_leave_and_say_ends_the_same_for_an_ordinary_user(place: Path) -> None:
    said = as_the_user(place, ("tests/attacks/test_attacks_measurements.py", "-k", "own-user or control"))
    assert re.search(r"^\d+ passed", said, re.MULTILINE), said


@pytest.mark.broad
def test_a_hostile_repository_and_its_control_end_the_same_for_an_ordinary_user(place: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    said = as_the_user(place, ("tests/attacks/test_attacks_untrusted_start.py", "-k", "whole or control_what"))
    assert "2 passed" in said, said


def as_the_user(place: Path, tests: Sequence[str], *programs: Path) -> str:
    """Run tests of this checkout as that user, who has these programs too; return what pytest printed."""
    if os.getuid() != 0:
        pytest.skip("all of these tests run as an ordinary user already")
    unshare, setpriv = shutil.which("unshare"), shutil.which("setpriv")
    assert unshare is not None, "util-linux is not installed"
    assert setpriv is not None, "util-linux is not installed"
    if subprocess.run([unshare, "--mount", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this root may not mount anything (a container)")
    shown = dict.fromkeys(str(path) for path in (CHECKOUT, Path(sys.prefix), Path(sys.base_prefix), *programs))
    user = (setpriv, f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--")
    suite = (
        *(sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider"),
        f"--basetemp={place / 'tests' / 'base'}",
    )
    done = subprocess.run(
        [
            *(unshare, "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"),
            *(place / "stage", *shown, "--", *user, *suite),
        ],
        cwd=CHECKOUT,
        env={
            "PATH": ":".join((*(f"{program}/bin" for program in programs), os.environ["PATH"])),
            "HOME": str(place / "home"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
