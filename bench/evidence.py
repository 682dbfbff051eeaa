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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.agents_bare import tests_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
SDISTS: Final = ROOT / ".pytest_cache" / "d" / "sdists"
ISSUE: Final = "---\nid: B-1\ntitle: Change it\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# B-1\n"
TRACKER: Final = {"TODO/B-1.md": ISSUE, "TODO/README.md": "# Issues\n\n## All\n- [ ] [B-1](B-1.md) Change it\n"}
PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
CARGO: Final = ("cargo", "test", "--workspace", "--offline", "--quiet")
GOAL: Final = 1.05
STAGES: Final = ("baseline", "red", "green", "repeat", "revert", "mutants", "test runs")

Figures = dict[str, float]


@dataclass(frozen=True)
class Subject:
    """A project, and the change of its tests and of its code that settles the issue."""

    name: str
    files: Mapping[str, str]
    tests: tuple[str, str]
    code: tuple[str, str]
    floor: tuple[str, ...]
    symbols: tuple[Mapping[str, object], ...] = ()

    def script(self) -> list[dict[str, object]]:
        """Return instant answers for a run without any detour."""
        file = {"path": self.code[0], "action": "modify"}
        behaviours = [{"action": "do it", "outcome": "it is done"}]
        plan: dict[str, object] = {
            "problem": "It is wrong.",
            "approach": "The smallest change.",
            "files": [{**file, "why": "it is there"}],
            "test_design": {"behaviours": behaviours},
        }
        task = {
            "title": "Change it",
            "description": "Make it right.",
            "acceptance_criteria": ["it is right"],
            "files": [file],
            "test_files": [{"path": self.tests[0], "action": "modify"}],
            "symbols": list(self.symbols),
        }
        accepted = {"verdict": "ACCEPTABLE"}
        made = {"result": "COMPLETE", "summary": "done"}
        return [
            {"when": {"kind": "plan"}, "report": plan},
            {"when": {"kind": "review-plan"}, "report": accepted},
            {"when": {"kind": "split"}, "report": {"tasks": [task]}},
            {"when": {"kind": "review-split"}, "report": accepted},
            {"when": {"kind": "write-tests"}, "files": dict([self.tests]), "report": {"verdict": "TESTS_READY"}},
            {"when": {"kind": "implement"}, "files": dict([self.code]), "report": made},
            {"when": {"kind": "review-result"}, "report": accepted},
        ]


# --- subjects -------------------------------------------------------------------------------------------------------


def subject(name: str, sdists: Path) -> Subject:
    if name == "cargo":
        return _crate()
    if name == "small":
        return _small()
    packages = tests_module("e2e.packages")
    case = {"inflection": packages.CAMELIZE, "parse": packages.GET, "toolz": packages.TAIL}[name]
    with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
        sdists.mkdir(parents=True, exist_ok=True)
        tests_module("e2e.sdists").unpack(case.sdist, sdists, Path(place))
        files = {str(path.relative_to(place)): _text(path) for path in Path(place).rglob("*") if path.is_file()}
    changes = _edited(files, case.tests), _edited(files, case.code)
    return Subject(case.sdist.stem, files, *changes, PYTEST, tuple(case.symbols))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _edited(files: Mapping[str, str], edit: Any) -> tuple[str, str]:
    before = files[edit.path]
    return edit.path, before.replace(edit.old, edit.new, 1) if edit.old else before + edit.new


def _small() -> Subject:
    files = {"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'}
    for n in range(10):
        files[f"pkg/part{n}.py"] = f"def call(text):\n    return text + '{n}'\n"
        cases = "".join(f"def test_{m}():\n    assert part{n}.call('{m}') == '{m}{n}'\n\n\n" for m in range(10))
        files[f"tests/test_part{n}.py"] = f"from pkg import part{n}\n\n\n{cases}"
    new = "import pytest\n\n\ndef test_refuses():\n    with pytest.raises(ValueError):\n        part3.call('')\n"
    tests = ("tests/test_part3.py", files["tests/test_part3.py"] + new)
    code = "def call(text):\n    if not text:\n        raise ValueError('nothing')\n    return text + '3'\n"
    return Subject("small (generated)", files, tests, ("pkg/part3.py", code), PYTEST)


def _crate() -> Subject:
    files = {
        "Cargo.toml": '[package]\nname = "parts"\nversion = "0.1.0"\nedition = "2021"\n[lib]\ndoctest = false\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "parts"\nversion = "0.1.0"\n',
        ".gitignore": "target/\n",
        "src/lib.rs": "".join(f"pub mod part{n};\n" for n in range(8)),
    }  # fmt: skip
    for n in range(8):
        files[f"src/part{n}.rs"] = f"pub fn call(number: i64) -> Option<i64> {{\n    Some(number + {n})\n}}\n"
        cases = "".join(f"#[test]\nfn adds_{m}() {{ assert_eq!(call({m}), Some({m + n})); }}\n" for m in range(5))
        files[f"tests/part{n}.rs"] = f"use parts::part{n}::call;\n\n{cases}"
    tests = ("tests/part3.rs", files["tests/part3.rs"] + "#[test]\nfn refuses() { assert_eq!(call(-1), None); }\n")
    code = "pub fn call(number: i64) -> Option<i64> {\n    (number >= 0).then_some(number + 3)\n}\n"
    return Subject("cargo (generated)", files, tests, ("src/part3.rs", code), CARGO)


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


def report(subject: Subject, runs: Sequence[Figures], floors: Sequence[Figures]) -> dict[str, object]:
    """Print one subject's figures, and return them."""
    ratios = sorted(
        (ours["red"] + ours["green"]) / (bare["red"] + bare["green"]) for ours, bare in zip(runs, floors, strict=True)
    )
    print(f"\n{subject.name}, {len(ratios)} rounds")
    print(f"  bare   red {1000 * middle(floors, 'red'):7.0f} ms, green {1000 * middle(floors, 'green'):7.0f} ms")
    print(f"  ours   red {1000 * middle(runs, 'red'):7.0f} ms, green {1000 * middle(runs, 'green'):7.0f} ms")
    print(f"  ratio  {statistics.median(ratios):7.2f}    ({ratios[0]:.2f} to {ratios[-1]:.2f}), goal {GOAL}")
    print(f"  the run takes {middle(runs, 'run'):.1f} s; of it:")
    for stage in STAGES:
        share = statistics.median(one.get(stage, 0.0) / one["run"] for one in runs)
        calls = middle(runs, f"calls of {stage}")
        print(f"    {stage:<10} {1000 * middle(runs, stage):7.0f} ms {100 * share:4.0f} %  in {calls:.0f} calls")
    return {"subject": subject.name, "ratios": ratios, "runs": list(runs), "floors": list(floors)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--subjects", default="toolz,parse,inflection,cargo", help="these, or small (generated)")
    parser.add_argument("--sdists", type=Path, default=SDISTS, help="where archives of packages are kept")
    parser.add_argument("--config", default="", help="further lines of configuration")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    asked = parser.parse_args()
    figures: list[dict[str, object]] = []
    for name in asked.subjects.split(","):
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
