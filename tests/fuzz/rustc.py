"""The real compiler as a judge: what a Rust source means in a build that is no test build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

EDITIONS: Final = ("2015", "2018", "2021", "2024")

# Where an item stands, and how many were seen before it, is not what the item is.
_POSITIONS: Final = re.compile(rb"\S+:\d+:\d+: \d+:\d+")
_PLACES: Final = re.compile(rb"(?:no-location|\S+:\d+:\d+: \d+:\d+) \(#\d+\)|(?:NodeId|AttrId)\(\d+\)|#\d+\b")


def is_there() -> bool:
    """Return whether there is a compiler at all."""
    return shutil.which("rustc") is not None


def knows(edition: str) -> bool:
    """Return whether this compiler is new enough for an edition."""
    return production_syntax(b"", edition) is not None


def production_syntax(source: bytes, edition: str) -> bytes | None:
    """Return the syntax tree that is left after `cfg` and macros in a build without tests, None if it is no Rust."""
    tree = _compile(source, "--edition", edition, "-Zunpretty=ast-tree,expanded")
    return None if tree is None else _PLACES.sub(b"@", tree)


def syntax_with_tests(source: bytes, edition: str) -> bytes | None:
    """Return the same of a build with tests: what does not parse there cannot hide from a test run."""
    return _compile(source, "--edition", edition, "--cfg", "test", "-Zunpretty=ast-tree,expanded")


def production_code(source: bytes, edition: str) -> bytes | None:
    """Return what a whole compilation without tests makes of a source, None if it does not compile."""
    with tempfile.TemporaryDirectory(prefix="redfirst-fuzz-") as folder:
        output = Path(folder) / "a.mir"
        if _compile(source, "--edition", edition, "--emit=mir", "-o", str(output)) is None:
            return None
        return _POSITIONS.sub(b"@", output.read_bytes())


def _compile(source: bytes, *words: str) -> bytes | None:
    command = ["rustc", "-", "--crate-name", "a", "--crate-type", "lib", "--cap-lints", "allow", *words]
    # The syntax tree is asked for with an option that stable compilers keep behind this variable.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    done = subprocess.run(command, input=source, env=environment, capture_output=True, timeout=300, check=False)
    return done.stdout if done.returncode == 0 else None
