"""What a fleet does under fire, as `bench/fleet.md` has it: `bench/fleet_chaos.py`.

    python -P bench/fleet_chaos.py [--seed 33] [--kills 40] [--lost 10] [--drivers 10] [--freezes 50] [--restarts 10]
        [--stalled 10] [--looks 3] [--thinks 1] [--seconds 900]

Machines are namespaces of this one (`tests/fleet/chaos.py`), agents are scripted, and Postgres and the hub are real.
It ends with 1 if anything was lost or done twice. Blows for which --seconds leave no time are left out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"kill": "kills", "lost": "lost", "driver": "drivers", "freeze": "freezes", "restart": "restarts"}


def report(fleet: Any) -> str:
    """Return the figures of a fleet whose fire is over."""
    dealt = Counter(one.kind for one in fleet.blows)
    orders = fleet.orders()
    lines = [", ".join(f"{dealt[kind]} {kind}" for kind in KINDS) + f"; {len(orders)} orders"]
    for kind, took in fleet.takeovers().items():
        if took:
            middle, most = statistics.median(took), max(took)
            late = sorted(took)[int(len(took) * 0.95)]
            lines.append(
                f"takeover after {kind}: {len(took)} times, median {middle:.1f} s, 95% {late:.1f} s, most {most:.1f} s"
            )
    twice = [fleet.paid_twice(one) for one in orders]
    lines.append(f"dispatches paid twice: {sum(one for one, _ in twice)} in {sum(one for _, one in twice)} takeovers")
    sizes = [fleet.kept(one.what) for one in orders]
    pushes, size = (statistics.median(one) for one in zip(*sizes, strict=True))
    lines.append(f"a run: {pushes:.0f} pushes, {size / 1000:.0f} kB in its last checkpoint (medians)")
    return "\n".join(lines)


def main() -> None:
    """Set a fleet on fire and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=33)
    for name, number in {"kills": 40, "lost": 10, "drivers": 10, "freezes": 50, "restarts": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    for name, seconds in {"stalled": 10.0, "looks": 3.0, "thinks": 1.0, "seconds": 900.0}.items():
        parser.add_argument(f"--{name}", type=float, default=seconds)
    said = vars(parser.parse_args())
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    chaos, postgres = import_module("fleet.chaos"), import_module("postgres")
    with tempfile.TemporaryDirectory(prefix="redfirst-fire-") as folder:
        Path(folder).chmod(0o755)
        server = postgres.Server(Path(folder) / "server")
        server.make()
        server.start()
        pace = chaos.Pace(said["stalled"], said["looks"], said["thinks"])
        fleet = chaos.ChaosFleet(Path(folder) / "place", server, 200, pace)
        try:
            fleet.place.mkdir()
            fleet.make(3)
            fleet.under_fire(said["seed"], {kind: said[name] for kind, name in KINDS.items()}, said["seconds"])
            fleet.rest()
            print(report(fleet))
            problems = fleet.problems()
        finally:
            fleet.end()
            server.stop()
    print("\n".join(problems) or "nothing was lost, and nothing was done twice")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
