"""How long the reading commands take, in seconds and in starts of Python: ten runs, fifty issues.

    python -P bench/reading.py [--rounds N] [--runs N]

The commands are started in turn, round after round; of each the quickest counts: a busy machine only adds. Seconds
of the processor are given as well, with those of the git processes that a command starts. `runs`, `issue ready` and
`show` are to answer within 0.4 s on an idle core, `runs` over 10,000 runs within 0.5 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from todo import FolderSource, NewIssue, Tracker, write_edits

REDFIRST = Path(sys.executable).with_name("redfirst")
ISSUES = 50


def made(place: Path, env: dict[str, str], runs: int) -> Path:
    """Return a repository with so many copies of a real run, and so many issues; copies have what lists read."""
    subprocess.run([REDFIRST, "demo", place / "demo"], env=env, capture_output=True, check=True)
    repository = place / "demo" / "shop"
    (first,) = (repository / ".workflow").glob("run-*")
    for number in range(2, runs + 1):
        copy = first.with_name(f"{first.name}@{number}")
        shutil.copytree(first, copy, ignore=_unread)
        record = json.loads((copy / "run.json").read_text(encoding="utf-8"))
        (copy / "run.json").write_text(json.dumps(record | {"run_id": copy.name}), encoding="utf-8")
    tracker = repository / "TODO"
    while len(Tracker(FolderSource(tracker)).issues()) < ISSUES:
        _, edits = Tracker(FolderSource(tracker)).create(NewIssue(title="Something to do"))
        write_edits(tracker, edits)
    return repository


def _unread(folder: str, names: list[str]) -> list[str]:
    """Return what of a folder is not copied."""
    inner = {name for name in names if (Path(folder) / name).is_dir() and "dispatches" in (Path(folder).name, name)}
    return [name for name in names if name not in {"run.json", "journal.jsonl", "recipe.json", "result.json", *inner}]


def taken(argv: list[str], repository: Path, env: dict[str, str]) -> tuple[float, float]:
    """Return the seconds that a command took, by the clock and of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, cwd=repository, env=env, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    rounds = options.rounds
    other = shutil.which("pre-commit")
    commands = {
        "python -I -c pass": [sys.executable, "-I", "-c", "pass"],
        "pre-commit --help" if other else "pip --version": [other, "--help"]
        if other
        else [sys.executable, "-m", "pip", "--version"],
        "redfirst --version": [str(REDFIRST), "--version"],
        "redfirst": [str(REDFIRST)],
        "redfirst runs": [str(REDFIRST), "runs"],
        "redfirst issue ready": [str(REDFIRST), "issue", "ready"],
        "redfirst show": [str(REDFIRST), "show"],
        "redfirst --help": [str(REDFIRST), "--help"],
    }
    with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
        env = {"PATH": os.environ["PATH"], "HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8"}
        repository = made(Path(place), env, options.runs)
        walls = dict.fromkeys(commands, float("inf"))
        useds = dict.fromkeys(commands, float("inf"))
        for number in range(rounds + 1):
            for name, argv in commands.items():
                wall, used = taken(argv, repository, env)
                if number:  # the first round folds the runs, for the index of those that have ended
                    walls[name], useds[name] = min(walls[name], wall), min(useds[name], used)
    bare = next(iter(walls.values()))
    print(f"{options.runs} runs, {ISSUES} issues; the quickest of {rounds} rounds")
    print(" clock s  processor s  starts of Python")
    for name in commands:
        print(f"{walls[name]:8.3f} {useds[name]:12.3f} {walls[name] / bare:17.1f}   {name}")


if __name__ == "__main__":
    main()
