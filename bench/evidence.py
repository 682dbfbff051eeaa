"""What RED and GREEN cost over two bare runs of the same tests, and what the probes of tests cost: `make bench`.

One issue with one task goes through a whole run with agents that answer at once. RED is everything between @test's
answer and the verdict, GREEN everything between @make's answer and the verdict, each in its own box and view. The floor
is what a person types instead: the project's runner over the whole suite, once when the tests are changed and once when
the code is, in a plain checkout whose caches are warm. Each round takes one run and one floor, one after the other, so
that a busy machine slows both; the ratio is that of a round. Figures are medians, with the spread of the ratios.

The probes (tests repeated, over the old code, and with faults put into the code) are shares of the run's wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.evidence_subjects import PYTEST, SUBJECTS, subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.evidence_subjects import Subject

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
SDISTS: Final = ROOT / ".pytest_cache" / "d" / "sdists"
ISSUE: Final = "---\nid: B-1\ntitle: Change it\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# B-1\n"
TRACKER: Final = {"TODO/B-1.md": ISSUE, "TODO/README.md": "# Issues\n\n## All\n- [ ] [B-1](B-1.md) Change it\n"}
GOAL: Final = 1.2
EXAMPLES: Final = """
examples:
  python -P bench/evidence.py                                    five rounds of all projects, some minutes
  python -P bench/evidence.py --rounds 1 --subjects small        a first look, without anything from a registry
  python -P bench/evidence.py --subjects cargo,toolz --json figures.json
  python -P bench/evidence.py --config '[probes]
  repeat = 1'                                                    what a run costs with other settings
"""
STAGES: Final = ("baseline", "red", "green", "repeat", "revert", "mutants", "test runs")

Figures = dict[str, float]


# --- one round ------------------------------------------------------------------------------------------------------


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def environment(home: Path) -> dict[str, str]:
    foreign = ("GIT_", "REDFIRST_", "XDG_", "PYTHONDONTWRITEBYTECODE")  # the last would compile everything each time
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    own = {"XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    return {**kept, **own, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def harness(subject: Subject, place: Path, extra: str) -> Figures:
    """Return what a run takes in all, and for evidence."""
    root, home = place / "project", place / "home"
    write(root, {**subject.files, **TRACKER})
    env = environment(home)
    for argv in (
        ("init", "--quiet", "--initial-branch=main"), ("config", "user.name", "bench"),
        ("config", "user.email", "bench@localhost"), ("add", "--all"), ("commit", "--quiet", "--message=start"),
        ("switch", "--quiet", "--create=work"),
    ):  # fmt: skip
        subprocess.run(["git", *argv], cwd=root, env=env, check=True)
    answers = home / "script.json"
    write(home, {"script.json": json.dumps(subject.script())})
    command = f"[toolchains.pytest]\ncommand = {json.dumps(PYTEST[:3])}\n" if subject.floor is PYTEST else ""
    config = f'[agents]\nbackend = "scripted"\nscript = "{answers}"\n[agents.simplify]\nbackend = "off"\n'
    write(home, {"config/redfirst/config.toml": f"{config}{command}[stub_first]\ncargo = false\n{extra}"})
    out = place / "figures.json"
    argv = [sys.executable, "-P", str(HERE / "evidence_run.py"), str(out), "run", "B-1"]
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{subject.name}: the run ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(out.read_text())


def floor(subject: Subject, place: Path) -> Figures:
    """Return what the bare runner takes over the changed tests and then over the changed code; it was run before."""
    root = place / "floor"
    env = environment(place / "home")
    write(root, subject.files)
    taken: Figures = {}
    for stage, change, code in (("warm", None, 0), ("red", subject.tests, None), ("green", subject.code, 0)):
        if change is not None:
            write(root, dict([change]))
        began = time.perf_counter()
        done = subprocess.run(
            subject.floor, cwd=root, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        taken[stage] = time.perf_counter() - began
        if (done.returncode == 0) is not (code == 0):
            raise SystemExit(f"{subject.name}, bare, {stage}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return taken


# --- the figures ----------------------------------------------------------------------------------------------------


def middle(rounds: Sequence[Figures], name: str) -> float:
    return statistics.median(one.get(name, 0.0) for one in rounds)


def ratios(runs: Sequence[Figures], floors: Sequence[Figures]) -> list[float]:
    """Return RED and GREEN over the two bare runs, round by round, in order of size."""
    return sorted(
        (ours["red"] + ours["green"]) / (bare["red"] + bare["green"]) for ours, bare in zip(runs, floors, strict=True)
    )


def shares(runs: Sequence[Figures], stage: str) -> list[float]:
    """Return which part of its run a stage takes, round by round, in order of size."""
    return sorted(one.get(stage, 0.0) / one["run"] for one in runs)


def report(subject: Subject, runs: Sequence[Figures], floors: Sequence[Figures]) -> dict[str, object]:
    """Print one subject's figures, and return them."""
    found = ratios(runs, floors)
    print(f"\n{subject.name}, {len(found)} round(s)")
    for who, rounds in (("bare", floors), ("ours", runs)):
        red, green = (1000 * middle(rounds, stage) for stage in ("red", "green"))
        print(f"  {who}   red {red:7.0f} ms, green {green:7.0f} ms")
    print(f"  ratio  {statistics.median(found):7.2f}    ({found[0]:.2f} to {found[-1]:.2f}), goal {GOAL}")
    print(f"  the run takes {middle(runs, 'run'):.1f} s; of it:")
    for stage in STAGES:
        part = shares(runs, stage)
        said = f"{100 * statistics.median(part):4.0f} % ({100 * part[0]:.0f} to {100 * part[-1]:.0f})"
        calls = middle(runs, f"calls of {stage}")
        print(f"    {stage:<10} {1000 * middle(runs, stage):7.0f} ms {said}  in {calls:.0f} calls", flush=True)
    return {
        "subject": subject.name,
        "goal": GOAL,
        "ratio": statistics.median(found),
        "shares": {stage: statistics.median(shares(runs, stage)) for stage in STAGES},
        "ratios": found,
        "runs": list(runs),
        "floors": list(floors),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each project, and bare runs as many")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"of {', '.join(SUBJECTS)}; some of them")
    parser.add_argument("--sdists", type=Path, default=SDISTS, help="where archives of packages are kept")
    parser.add_argument("--config", default="", help="further lines of configuration")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    asked = parser.parse_args()
    asked.subjects = asked.subjects.split(",")
    if unknown := [name for name in asked.subjects if name not in SUBJECTS]:
        parser.error(f"there is no subject {unknown[0]!r}; there are: {', '.join(SUBJECTS)}")
    if asked.rounds < 1:
        parser.error("at least one round is needed")
    return asked


def main() -> None:
    asked = arguments()
    figures: list[dict[str, object]] = []
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}: what else is at work shows in the spread")
    for name in asked.subjects:
        if name == "cargo" and shutil.which("cargo") is None:
            print("\ncargo is left out: it is not installed")
            continue
        chosen = subject(name, asked.sdists)
        runs: list[Figures] = []
        floors: list[Figures] = []
        for _ in range(asked.rounds):
            with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
                runs.append(harness(chosen, Path(place), asked.config))
                floors.append(floor(chosen, Path(place)))
        figures.append(report(chosen, runs, floors))
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
