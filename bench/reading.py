"""How long the reading commands take beside the start of Python itself, as ratios: ten runs, fifty issues.

    python -P bench/reading.py [--rounds N] [--runs N]

The commands are started in turn, round after round; of each the quickest counts: a busy machine only adds. Seconds
of the processor are given as well, with those of the git processes that a command starts.
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


def seconds_of_the_list(repository: Path, env: dict[str, str], rounds: int) -> float:
    """Return what `runs` takes where nothing is kept but its index: the quickest of some rounds."""
    answers, found = Path(env["HOME"]) / ".local/state/redfirst/answers", float("inf")
    for _ in range(rounds):
        shutil.rmtree(answers, ignore_errors=True)
        found = min(found, taken([str(REDFIRST), "runs"], repository, env)[0])
    return found


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
        Path(place, "one").mkdir()
        of_one = seconds_of_the_list(made(Path(place, "one"), env, 1), env, rounds)
        of_all = seconds_of_the_list(repository, env, rounds + 1)  # the first time folds all of them
        walls = dict.fromkeys(commands, float("inf"))
        useds = dict.fromkeys(commands, float("inf"))
        for number in range(rounds + 1):
            for name, argv in commands.items():
                wall, used = taken(argv, repository, env)
                if number:  # the first round fills caches
                    walls[name], useds[name] = min(walls[name], wall), min(useds[name], used)
    bare, bare_used = next(iter(walls.values())), next(iter(useds.values()))
    print(f"{options.runs} runs, {ISSUES} issues; the quickest of {rounds} rounds, in starts of bare Python")
    print(f"   clock   processor   (1 = {bare * 1000:.0f} ms, {bare_used * 1000:.0f} ms)")
    for name in commands:
        print(f"{walls[name] / bare:8.1f} {useds[name] / bare_used:11.1f}   {name}")
    more = of_all - of_one
    print(f"{of_all / of_one:8.1f}               redfirst runs to that of one run, no answer kept: {more:+.2f} s")


if __name__ == "__main__":
    main()
