"""What the whole pipeline costs over the processes that it cannot do without: `make bench`.

A small repository, agents that answer at once, N tasks. Each round takes one run and one floor, one after the other, so
that a busy machine slows both, and the ratio is that of a round. The floor is a shell script's way to the same result:
one worktree, one agent process and `add, write-tree, diff-tree` for each dispatch, one bare pytest for each
measurement, one commit for each commit. Figures are medians. Where others are at work the load drifts within a round
too: look at the spread of the ratios, and to compare two versions take them in turns in one script.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
REDFIRST = Path(sys.executable).with_name("redfirst")
ISSUE = "---\nid: B-1\ntitle: Refuse nothing\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# B-1\n"

Entry = dict[str, object]
Figures = dict[str, float]


def script(tasks: int) -> list[Entry]:
    """Return instant answers for an issue of so many tasks, without any detour."""
    files = [f"pkg/part{n}.py" for n in range(1, tasks + 1)]
    behaviour = {"action": "call a part with nothing", "outcome": "ValueError is raised"}
    plan: Entry = {
        "problem": "Every part accepts nothing.",
        "approach": "Raise ValueError.",
        "files": [{"path": path, "action": "modify", "why": "the check belongs there"} for path in files],
        "test_design": {"behaviours": [behaviour]},
    }
    split: list[Entry] = [
        {
            "title": f"Refuse nothing in part {n}",
            "description": "It must refuse an empty text.",
            "acceptance_criteria": [f'`part{n}.call("")` raises ValueError'],
            "files": [{"path": path, "action": "modify"}],
            "test_files": [{"path": f"tests/test_part{n}.py", "action": "modify"}],
        }
        for n, path in enumerate(files, 1)
    ]
    accepted: Entry = {"verdict": "ACCEPTABLE"}
    questions = ("coverage", "overlap", "single_purpose", "contracts", "testable", "test_approach")
    answers = dict.fromkeys(questions, True)
    entries: list[Entry] = [
        {"when": {"kind": "plan"}, "report": plan},
        {"when": {"kind": "review-plan"}, "report": accepted},
        {"when": {"kind": "split"}, "report": {"tasks": split}},
        {
            "when": {"kind": "review-split"},
            "report": {**accepted, "answers": answers},
        },
    ]
    for n, path in enumerate(files, 1):
        tests = {f"tests/test_part{n}.py": suite(n) + refusal(n)}
        done = f'def call(text):\n    if not text:\n        raise ValueError("nothing")\n    return text + "{n}"\n'
        both: list[Entry] = [
            {"when": {"kind": "write-tests", "task": n}, "files": tests, "report": {"verdict": "TESTS_READY"}},
            {"when": {"kind": "implement", "task": n}, "files": {path: done}, "report": {"result": "COMPLETE"}},
        ]
        entries += both
    return [*entries, {"when": {"kind": "review-result"}, "report": accepted}]


def suite(n: int) -> str:
    return f'import pytest\n\nfrom pkg import part{n}\n\n\ndef test_call():\n    assert part{n}.call("a") == "a{n}"\n'


def refusal(n: int) -> str:
    return f'\n\ndef test_nothing_is_refused():\n    with pytest.raises(ValueError):\n        part{n}.call("")\n'


def project(folder: Path, tasks: int, files: int) -> None:
    """Make the repository, on a branch of its own, with *files* further files that nobody touches."""
    contents = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n',
        "pkg/__init__.py": "",
        "TODO/B-1.md": ISSUE,
        "TODO/README.md": "# Issues\n\n## All\n- [ ] [B-1](B-1.md) Refuse nothing\n",
    }
    for n in range(1, tasks + 1):
        contents[f"pkg/part{n}.py"] = f'def call(text):\n    return text + "{n}"\n'
        contents[f"tests/test_part{n}.py"] = suite(n)
    contents |= {f"data/{n % 50}/{n}.txt": f"{n}\n" * 40 for n in range(files)}
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "bench")
    git(folder, "config", "user.email", "bench@localhost")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=start")
    git(folder, "switch", "--quiet", "--create=work")


def environment(home: Path) -> dict[str, str]:
    foreign = ("GIT_", "REDFIRST_", "XDG_", "PYTHONDONTWRITEBYTECODE")  # the last would compile everything each time
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    own = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    return {**kept, **own, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def configure(home: Path, tasks: int) -> None:
    path = home / "config" / "redfirst" / "config.toml"
    path.parent.mkdir(parents=True)
    answers = home / "script.yaml"
    answers.write_text(json.dumps(script(tasks)))
    path.write_text(
        f'[agents]\nbackend = "scripted"\nscript = "{answers}"\n[agents.simplify]\nbackend = "off"\n'
        f'[toolchains.pytest]\ncommand = ["{sys.executable}", "-m", "pytest"]\n'
    )


def git(folder: Path, *argv: str, env: dict[str, str] | None = None) -> str:
    return subprocess.run(
        ["git", *argv], cwd=folder, env=env or environment(folder), check=True, capture_output=True, text=True
    ).stdout.strip()


def start(argv: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run a process to its good end, in silence."""
    subprocess.run(argv, cwd=cwd, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def one_run(repository: Path, home: Path) -> Figures:
    """Return the wall time of one run as a user starts it, with the breakdown that `breakdown.py` writes."""
    out = home / "breakdown.json"
    # -P: beside it lies this module, which has the name of our package
    argv = [sys.executable, "-P", str(HERE / "breakdown.py"), str(out), "run", "B-1"]
    env = {**environment(home), "BENCH_BEGAN": str(time.time())}
    wall = timed(lambda: start(argv, repository, env))
    return {"wall": wall, **json.loads(out.read_text())}


def floor(repository: Path, home: Path, counts: dict[str, int]) -> Figures:
    """Return what the bare processes take: git, agents, tests, in the numbers that the run needed of them."""
    env = environment(home)
    tree = home / "floor"
    git(repository, "switch", "--quiet", "work", env=env)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]

    def dispatches() -> None:
        git(repository, "worktree", "add", "--quiet", "--detach", str(tree), "main", env=env)
        before = git(tree, "write-tree", env=env)
        for n in range(counts["dispatches"]):
            (tree / "pkg" / "part1.py").write_text(f"# {n}\ndef call(text):\n    return text\n")
            git(tree, "add", "--all", env=env)
            after = git(tree, "write-tree", env=env)
            git(tree, "diff-tree", "-r", "-z", before, after, env=env)
            before = after
        for n in range(counts["commits"]):
            git(tree, "commit", "--quiet", "--allow-empty", f"--message={n}", env=env)

    def agents() -> None:
        for _ in range(counts["dispatches"]):
            start([sys.executable, "-I", "-S", "-c", "pass"])

    def tests() -> None:
        for _ in range(counts["measurements"]):
            start(pytest, repository, env)

    parts = {"git": timed(dispatches), "agents": timed(agents), "tests": timed(tests)}
    figures = {"wall": sum(parts.values()), **parts}
    git(repository, "worktree", "remove", "--force", str(tree), env=env)
    return figures


def medians(rounds: list[Figures]) -> Figures:
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: statistics.median(one.get(name, 0.0) for one in rounds) for name in names}


def start_up(rounds: int) -> None:
    """Print what the program's start costs over that of the interpreter."""
    python = [sys.executable, "-I", "-c", "pass"]
    commands = {
        name: [str(REDFIRST), *name.split()] for name in ("--version", "--help", "routes --help", "runs --help")
    }
    taken: dict[str, list[float]] = {name: [] for name in ("python -I -c pass", *commands)}
    for _ in range(rounds):
        for name, argv in (("python -I -c pass", python), *commands.items()):
            taken[name].append(timed(functools.partial(start, argv, None, environment(HERE))))
    base = statistics.median(taken["python -I -c pass"])
    print("\nstart-up                    ms   ratio")
    for name, values in taken.items():
        print(f"  {name:<20} {1000 * statistics.median(values):7.0f} {statistics.median(values) / base:7.1f}")


def report(runs: list[Figures], floors: list[Figures], counts: dict[str, int]) -> None:
    run, bare = medians(runs), medians(floors)
    dispatches, wall = counts["dispatches"], run["wall"]
    print(f"\n{dispatches} dispatches, {counts['measurements']} measurements, {counts['commits']} commits")
    shown = ", ".join(f"{name} {1000 * bare[name]:.0f}" for name in ("git", "agents", "tests"))
    ratios = sorted(one["wall"] / other["wall"] for one, other in zip(runs, floors, strict=True))
    print(f"  run   {1000 * wall:7.0f} ms")
    print(f"  floor {1000 * bare['wall']:7.0f} ms ({shown})")
    print(f"  ratio {statistics.median(ratios):7.2f}    ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    parts = {k.removeprefix("ms "): v for k, v in run.items() if k.startswith("ms ")}
    numbers = {k.removeprefix("n "): v for k, v in run.items() if k.startswith("n ")}
    tests = parts.get("measure: test process", 0.0)
    print(f"  share of what is not a test process: {100 * (1 - tests / 1000 / wall):.0f} %")
    print("\nwhere it goes                 ms    %   calls  per dispatch")
    for name, value in sorted(parts.items(), key=lambda item: -item[1]):
        calls = numbers.get(name, 0)
        print(f"  {name:<24} {value:7.0f} {value / 10 / wall:4.0f} {calls:7.0f} {calls / dispatches:8.1f}")
    for name in ("processes", "fsyncs"):
        print(f"  {name:<24} {'':12} {numbers[name]:7.0f} {numbers[name] / dispatches:8.1f}")
    for name, value in sorted(numbers.items(), key=lambda item: -item[1]):
        if name.startswith("git "):
            print(f"    {name:<22} {'':12} {value:7.0f} {value / dispatches:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--files", type=int, default=200, help="further files in the repository")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    runs: list[Figures] = []
    floors: list[Figures] = []
    counts: dict[str, int] = {}
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
            repository, home = Path(place) / "project", Path(place) / "home"
            repository.mkdir()
            configure(home, asked.tasks)
            project(repository, asked.tasks, asked.files)
            runs.append(one_run(repository, home))
            commits = int(git(repository, "rev-list", "--count", "main..work"))
            counts = {name: int(runs[-1][f"n {name}"]) for name in ("dispatches", "measurements")} | {
                "commits": commits
            }
            floors.append(floor(repository, home, counts))
    report(runs, floors, counts)
    start_up(3 * asked.rounds)


if __name__ == "__main__":
    main()
