"""How long a recipe of a thousand steps takes to be checked and planned, beside composing its YAML alone.

    python -P bench/recipes.py [--rounds N] [--steps N]

All three are measured in turn, round after round, in one process; of each the quickest counts: a busy machine only
adds. What is kept from one call to the next is forgotten before each.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.plan import Preview, preview
from pipeline.matrix.scheduling import patterns

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MS = 100
"""What planning a thousand steps may take."""


def recipe(steps: int) -> str:
    """Return a recipe of writers, some in each other's way, each behind one of those before."""
    lines: list[str] = []
    for n in range(steps):
        above = f"s{n - 7}" if n > 6 else ""
        lines.append(f"  - {{id: s{n}, agent: make, prompt: p, write_set: [src/m{n % 150}], depends_on: [{above}]}}")
    return "\n".join(["name: bench", "max_concurrency: 8", "steps:", *lines, ""])


def forget() -> None:
    """Forget what was compared before."""
    for kept in (patterns.fault, patterns.parsed):
        kept.cache_clear()


def quickest(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the milliseconds of each call."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            forget()
            began = time.process_time()
            call()
            best[name] = min(best[name], 1_000 * (time.process_time() - began))
    return best


def main() -> int:
    """Print the figures; 1 where planning takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1_000)
    options = parser.parse_args()
    text = recipe(options.steps)
    found, problems = checked(text)
    assert found is not None, problems
    assert isinstance(preview(found, {}), Preview)
    took = quickest(
        {
            "compose": lambda: yaml.compose(text, Loader=yaml.CSafeLoader),
            "check": lambda: checked(text),
            "plan": lambda: preview(found, {}),
        },
        options.rounds,
    )
    for name, each in took.items():
        print(f"{name:8} {each:7.1f} ms  ratio {each / took['compose']:5.2f}")
    return int(took["plan"] > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
