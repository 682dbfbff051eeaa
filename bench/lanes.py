"""How long a run of independent tasks takes with these side by side, as a ratio to one at a time: `bench/lanes.py`.

Each agent sleeps; measurements cost next to nothing (`tests/languages/sums`). Both runs of a round follow each other,
so that a busy machine slows both, and must come to the same tree. What is asked before and after the tasks is asked in
both: by the recipe `quick` one draft and one review, by `issue` four rounds before and one after. Where agents are all
that takes time, three tasks come to 0.50 and 0.64. Figures are medians.

With `--pytest` the tasks are of a small pytest project, which is measured and probed: measurements are made one at a
time, so that less is won.

With `--writers 8` it is a recipe of so many steps that write side by side, in the box that works here, as a ratio to
the same with one of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]


def answers(recipe: str, tasks: int, seconds: float) -> list[dict[str, Any]]:
    """Return the answers of agents that take so long each."""
    kit, play = import_module("kit"), import_module("workflows.side_by_side")
    entries = play.doubled(play.NAMES[:tasks])
    if recipe == "quick":
        plan, split = entries[0]["report"], entries[3]["report"]
        files = [{**file, "why": "it is there"} for file in plan["files"]]
        both = {"when": {"kind": "plan-and-tasks"}, "report": {**plan, "files": files, "tasks": split["tasks"]}}
        entries = [both, *entries[5:-2], kit.RESULT_ACCEPTED]
    return [{**entry, "sleep_s": seconds} for entry in entries]


def answers_of_pytest(tasks: int, seconds: float) -> list[dict[str, Any]]:
    """Return the answers of agents that take so long each, for modules whose tests pytest runs."""
    kit, play = import_module("kit"), import_module("e2e.lanes")
    drafts = [play.module_task(number) for number in range(1, tasks + 1)]
    plan, _, _, split, _ = play.until_tests(*drafts)
    report = {**plan["report"], "tasks": split["report"]["tasks"]}
    entries = [{"when": {"kind": "plan-and-tasks"}, "report": report}]
    entries += [write(number) for number in range(1, tasks + 1) for write in (play.writes, play.makes)]
    return [{**entry, "sleep_s": seconds} for entry in (*entries, kit.RESULT_ACCEPTED)]


def seconds_of(folder: Path, recipe: str, options: argparse.Namespace, parallel: int) -> tuple[float, str]:
    """Return how long a run takes, and its last commit."""
    play = import_module("workflows.side_by_side")
    folder.mkdir()
    if options.pytest:
        project = import_module("e2e.lanes").modules_project(folder, range(1, options.tasks + 1))
        project.probed = True
        del project.env["REDFIRST_LIMITS__PARALLEL"]
        project.use_script(answers_of_pytest(options.tasks, options.seconds))
    else:
        project = play.make(folder, options.tasks)
        project.use_script(answers(recipe, options.tasks, options.seconds))
    began = time.monotonic()
    done = project.redfirst("run", "GAL-1", "--recipe", recipe, "--parallel", str(parallel))
    took = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(done.stderr)
    return took, project.git("rev-parse", "HEAD^{tree}")


def measured(recipe: str, options: argparse.Namespace) -> None:
    """Print the figures of a recipe."""
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as place:
            one, tree = seconds_of(Path(place) / "one", recipe, options, 1)
            many, same = seconds_of(Path(place) / "many", recipe, options, options.tasks)
        if tree != same:
            sys.exit("the two runs came to different trees")
        alone.append(one)
        beside.append(many)
    ratios = [many / one for one, many in zip(alone, beside, strict=True)]
    print(
        f"{recipe}: {options.tasks} tasks, agents of {options.seconds:g} s: "
        f"one at a time {statistics.median(alone):.1f} s, side by side {statistics.median(beside):.1f} s, "
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


def seconds_of_writers(folder: Path, count: int, seconds: float) -> float:
    """Return how long a recipe takes of so many steps that each write a file of their own."""
    story = import_module("workflows.test_writers")
    folder.mkdir()
    steps = [{"id": f"w{number}", "agent": "make", "write_set": [f"docs/{number}.md"]} for number in range(count)]
    project = story.made(folder, *steps, max_concurrency=count)
    entries = [story.writes(f"w{number}", {f"docs/{number}.md": "x\n"}, sleep_s=seconds) for number in range(count)]
    project.use_script(entries)
    began = time.monotonic()
    done = project.redfirst("run", "r")
    took = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(done.stderr)
    return took


def measured_writers(options: argparse.Namespace) -> None:
    """Print the figures of writers side by side."""
    pairs: list[tuple[float, float]] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as place:
            one = seconds_of_writers(Path(place) / "one", 1, options.seconds)
            pairs.append((one, seconds_of_writers(Path(place) / "many", options.writers, options.seconds)))
    ratios = [pair[1] / pair[0] for pair in pairs]
    one, many = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
    print(
        f"{options.writers} writers of {options.seconds:g} s: {many:.1f} s, one {one:.1f} s, "
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=3, choices=range(2, 6))
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each agent takes")
    parser.add_argument("--recipes", default="quick,issue")
    parser.add_argument("--pytest", action="store_true", help="a pytest project, measured and probed; recipe quick")
    parser.add_argument("--writers", type=int, default=0, help="measure a recipe of so many writers instead")
    options = parser.parse_args(argv)
    sys.path[:0] = [str(ROOT / "tests")]
    if options.writers:
        measured_writers(options)
        return
    for recipe in ("quick",) if options.pytest else options.recipes.split(","):
        measured(recipe, options)


if __name__ == "__main__":
    main()
