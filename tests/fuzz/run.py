"""Coverage-guided fuzzing: `python tests/fuzz/run.py [--seconds N] [TARGET ...]`. `make fuzz` runs all targets.

Each target runs in a process of its own (libFuzzer never returns) and works in a folder that goes away. What breaks a
target is printed as bytes to give to it again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LONGEST: Final = 24
"""Bytes per input; each spells a piece of text."""
_INPUTS: Final = re.compile(r"stat::number_of_executed_units: (\d+)")


def main() -> int:
    """Run the targets that the command line names, or all; return 1 if one of them broke."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return fuzz(options.targets[0], options.seconds)
    from fuzz.targets import TARGETS

    if unknown := sorted({*options.targets} - {*TARGETS}):
        parser.error(f"no such target: {', '.join(unknown)} (there are: {', '.join(TARGETS)})")
    broken = [name for name in options.targets or TARGETS if not survives(name, options.seconds)]
    return 1 if broken else 0


def survives(name: str, seconds: int) -> bool:
    """Return whether a target stands so many seconds of fuzzing, and say so."""
    with tempfile.TemporaryDirectory(prefix="redfirst-fuzz-") as folder:
        command = [sys.executable, str(Path(__file__)), "--inside", "--seconds", str(seconds), name]
        done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        inputs = "".join(_INPUTS.findall(done.stderr)[-1:]) or "no"
        print(f"{name}: {inputs} inputs, {'nothing broke' if done.returncode == 0 else 'BROKEN'}", flush=True)  # noqa: T201
        if done.returncode != 0:
            print(done.stderr)  # noqa: T201
            for crash in Path(folder).glob("*-*"):
                print(f"again with: targets.{name}({crash.read_bytes()!r})")  # noqa: T201
        return done.returncode == 0


def fuzz(name: str, seconds: int) -> int:
    """Fuzz one target in this process; it ends with libFuzzer's exit code."""
    atheris: Any = import_module("atheris")  # has no types, and is not there on every platform
    with atheris.instrument_imports(include=["pipeline.judge.policy", "pipeline.judge.reports", "todo"]):
        from fuzz.targets import TARGETS

    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *limits, "-verbosity=0", "-print_final_stats=1"], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
