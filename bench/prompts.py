"""How much each dispatch is given to read: `python -P bench/prompts.py`.

Plays runs with scripted agents, and prints the characters of each prompt and of the artifacts beside it: a small one
without loops by the recipes `issue`, `quick` and `solo`, the demo, and a long one (the plan, the split and the tests
are sent back, a stuck @make is diagnosed, the final review wants a fix) on a project with some hundred parametrised
tests. A token is about four characters. Folders of runs as arguments are read instead. Characters are counted, not
time: the figures are the same on every machine, but for its paths.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
REDFIRST: Final = Path(sys.executable).with_name("redfirst")
CHARACTERS_OF_A_TOKEN: Final = 4
OLD_TESTS: Final = 400


@dataclass(frozen=True)
class Given:
    """What one dispatch is given to read, in characters; beside it `looked_up`, which it knows and can look up.

    `start` are those of the prompt that it has in common with the role's last one.
    """

    dispatch: str
    prompt: int
    artifacts: dict[str, int]
    start: int
    looked_up: int

    @property
    def whole(self) -> int:
        return self.prompt + sum(self.artifacts.values())


def given(run: Path) -> Iterator[Given]:
    """Yield what each dispatch of a run was given, in order."""
    last: dict[str, str] = {}
    for folder in sorted((run / "dispatches").iterdir()):
        prompt = (folder / "prompt.md").read_text(encoding="utf-8")
        role = folder.name.rpartition("-")[2]
        before = last.get(role, "")
        same = next((at for at, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b), 0)
        last[role] = prompt
        beside = folder / "artifacts"
        known = prompt.partition("\nTo look up, ")[2]
        sizes: dict[str, int] = {}
        looked_up = 0
        for file in sorted(beside.glob("*/*")):
            size = len(file.read_text(encoding="utf-8", errors="replace"))
            if f"/{file.parent.name}/{file.name}`" in known:
                looked_up += size
            else:
                sizes[file.parent.name] = sizes.get(file.parent.name, 0) + size
        yield Given(folder.name, len(prompt), sizes, same, looked_up)


def report(title: str, run: Path) -> None:
    """Print one run."""
    rows = list(given(run))
    print(f"{title}: {len(rows)} dispatches")
    print(
        f"  {'dispatch':32}{'prompt':>8}{'same as before':>16}{'artifacts':>11}{'known':>8}{'tokens':>8}  the largest"
    )
    for row in rows:
        largest = sorted(row.artifacts.items(), key=lambda entry: -entry[1])[:3]
        said = ", ".join(f"{name} {size}" for name, size in largest)
        beside = sum(row.artifacts.values())
        print(
            f"  {row.dispatch:32}{row.prompt:8}{row.start:16}{beside:11}{row.looked_up:8}"
            f"{row.whole // CHARACTERS_OF_A_TOKEN:8}  {said}"
        )
    prompts, all_ = sum(row.prompt for row in rows), sum(row.whole for row in rows)
    same, known = sum(row.start for row in rows), sum(row.looked_up for row in rows)
    print(
        f"  {'all':32}{prompts:8}{same:16}{all_ - prompts:11}{known:8}{all_ // CHARACTERS_OF_A_TOKEN:8}\n", flush=True
    )


def demo(folder: Path) -> Path:
    """Play the demo; return its run."""
    subprocess.run([REDFIRST, "demo", str(folder / "demo")], check=True, capture_output=True, cwd=folder)
    return next((folder / "demo").rglob("run-*/run.json")).parent


def small(folder: Path) -> Path:
    """Play a small issue, whose plan brings its one task along; return the run."""
    kit, lanes = test_kit()
    plan = {**kit.PLAN, "report": {**kit.PLAN["report"], "task": kit.TASK}}
    accepted = {**kit.PLAN_ACCEPTED, "report": {"verdict": "ACCEPTABLE", "answers": kit.ALL_WELL}}
    entries = [plan, accepted, kit.PLAN_SIMPLE, kit.TESTS, kit.MAKE, *kit.AFTER_MAKE]
    return completed(lanes.play(kit.make_project(folder), entries))


def quick(folder: Path) -> Path:
    """Play the small issue by the recipe `quick`; return the run."""
    kit, lanes = test_kit()
    both = {"when": {"kind": "plan-and-tasks"}, "report": {**kit.PLAN["report"], "tasks": [kit.TASK]}}
    entries = [both, kit.TESTS, kit.MAKE, kit.RESULT_ACCEPTED]
    return completed(lanes.play(kit.make_project(folder), entries, "--recipe", "quick"))


def solo(folder: Path) -> Path:
    """Play the small issue by the recipe `solo`; return the run."""
    kit, lanes = test_kit()
    files = {**kit.TESTS["files"], **kit.MAKE["files"]}
    built = {"when": {"kind": "build"}, "files": files, "report": {"result": "COMPLETE", "summary": "refused"}}
    return completed(lanes.play(kit.make_project(folder), [built, kit.RESULT_ACCEPTED], "--recipe", "solo"))


def test_kit() -> tuple[Any, Any]:
    """Return the modules with which our tests make projects and play runs."""
    sys.path[:0] = [str(ROOT / "tests")]
    return import_module("kit"), import_module("e2e.lanes")


def completed(played: Any) -> Path:
    """Return the folder of a run that has come to its end."""
    if played.document["outcome"] != "completed":
        sys.exit(played.document["_stderr"])
    return played.folder


def long(folder: Path) -> Path:
    """Play the long run; return it."""
    kit, lanes = test_kit()
    more = {
        "tests/test_many.py": "import pytest\n\nimport m1\n\n\n"
        f'@pytest.mark.parametrize("number", range({OLD_TESTS}))\n'
        "def test_value_1_is_below(number):\n    assert m1.value_1() <= number + 2\n"
    }
    finding = lanes.finding
    sent_back = [
        lanes.review("review-plan", "NEEDS WORK", finding("One caller is forgotten")),
        lanes.plan_for("m1.py", "m2.py", approach="Return the right ones, for the caller too."),
        lanes.review("review-plan", "ACCEPTABLE", prior=[{"id": "plan-1-01", "status": "resolved"}]),
        lanes.split_into(lanes.module_task(1)),
        lanes.review("review-split", "NEEDS WORK", finding("Value 2 is not covered")),
        lanes.split_into(lanes.module_task(1), lanes.module_task(2)),
        lanes.review("review-split", "ACCEPTABLE", prior=[{"id": "split-1-01", "status": "resolved"}]),
    ]
    simple = [kit.PLAN_SIMPLE, kit.PLAN_SIMPLE]
    cases = "".join(f"\n\ndef test_value_2_{n}():\n    assert value_2() == 2\n" for n in range(8))
    entries = [
        lanes.plan_for("m1.py", "m2.py"),
        *sent_back,
        *simple,
        lanes.writes(1, lanes.module_test(1).replace("== 1", "== one")),
        lanes.writes(1),
        lanes.makes(1, 5),
        lanes.diagnoses(1, "production_logic", "five is not one"),
        lanes.makes(1),
        lanes.writes(2, lanes.module_test(2, more=cases)),
        lanes.makes(2),
        lanes.review("review-result", "NEEDS WORK", finding("Nothing tests zero", concern="production")),
        kit.RESULT_SIMPLE,
        lanes.split_into({**lanes.module_task(2), "test_files": [{"path": "tests/test_fix.py", "action": "create"}]}),
        {
            "when": {"kind": "write-tests", "task": "fix-1"},
            "files": {"tests/test_fix.py": "import m2\n\n\ndef test_three():\n    assert m2.value_3() == 3\n"},
            "report": {"verdict": "TESTS_READY"},
        },
        {
            "when": {"kind": "implement", "task": "fix-1"},
            "files": {"m2.py": lanes.module(2, 2) + "\n\ndef value_3():\n    return 3\n"},
            "report": {"result": "COMPLETE"},
        },
        lanes.review("review-result", "ACCEPTABLE", prior=[{"id": "final-1-01", "status": "resolved"}]),
        kit.RESULT_SIMPLE,
    ]
    project = lanes.modules_project(folder, range(1, 3), more=more)
    project.probed = True
    return completed(lanes.play(project, entries))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN", help="folders of runs, such as .workflow/run-GAL-1"
    )
    asked = parser.parse_args()
    for run in asked.runs:
        report(run.name, run)
    if not asked.runs:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            for name in ("small", "quick", "solo", "long"):
                (place / name).mkdir()
            report("small run", small(place / "small"))
            report("the same by the recipe quick", quick(place / "quick"))
            report("the same by the recipe solo", solo(place / "solo"))
            report("demo", demo(place))
            report("long run", long(place / "long"))


if __name__ == "__main__":
    main()
