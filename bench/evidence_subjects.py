"""The projects of `bench/evidence.py`: packages from the registry, and generated ones, each with an issue to settle."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.agents_bare import tests_module
from pipeline.judge.reports.reviews import SplitAnswers

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
CARGO: Final = ("cargo", "test", "--workspace", "--offline", "--quiet", "--no-fail-fast")
SUBJECTS: Final = ("toolz", "parse", "inflection", "cargo", "long", "small", "apart")
_TEST: Final = "def test_refuses():\n    with pytest.raises(ValueError):\n        part3.call('')\n"


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
            "test_files": [{"path": self.tests[0], "action": "modify" if self.tests[0] in self.files else "create"}],
            "symbols": list(self.symbols),
        }
        accepted = {"verdict": "ACCEPTABLE"}
        answers = dict.fromkeys(SplitAnswers.model_fields, True)
        made = {"result": "COMPLETE", "summary": "done"}
        return [
            {"when": {"kind": "plan"}, "report": plan},
            {"when": {"kind": "review-plan"}, "report": accepted},
            {"when": {"kind": "split"}, "report": {"tasks": [task]}},
            {"when": {"kind": "review-split"}, "report": {**accepted, "answers": answers}},
            {"when": {"kind": "write-tests"}, "files": dict([self.tests]), "report": {"verdict": "TESTS_READY"}},
            {"when": {"kind": "implement"}, "files": dict([self.code]), "report": made},
            {"when": {"kind": "review-result"}, "report": accepted},
        ]


def subject(name: str, sdists: Path) -> Subject:
    """Return one of `SUBJECTS`; archives that are not in the folder yet are fetched."""
    if name == "cargo":
        return _crate()
    if name == "small":
        return _parts("small (generated)", "")
    if name == "apart":  # no file of old tests changes, so that these need not be measured as they were
        small = _parts("apart (generated)", "")
        return replace(small, tests=("tests/test_refusals.py", f"from pkg import part3\nimport pytest\n\n\n{_TEST}"))
    if name == "long":  # ten seconds and more of tests, as the projects have that people wait for
        return _parts("long (generated)", "    sum(n * n for n in range(2_000_000))\n")
    case = tests_module("e2e.packages").CASES[name]
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


def _parts(name: str, work: str) -> Subject:
    """Return a hundred tests in ten files; each does the work."""
    files = {"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'}
    for n in range(10):
        files[f"pkg/part{n}.py"] = f"def call(text):\n    return text + '{n}'\n"
        cases = "".join(f"def test_{m}():\n{work}    assert part{n}.call('{m}') == '{m}{n}'\n\n\n" for m in range(10))
        files[f"tests/test_part{n}.py"] = f"from pkg import part{n}\n\n\n{cases}"
    tests = ("tests/test_part3.py", files["tests/test_part3.py"] + f"import pytest\n\n\n{_TEST}")
    code = "def call(text):\n    if not text:\n        raise ValueError('nothing')\n    return text + '3'\n"
    return Subject(name, files, tests, ("pkg/part3.py", code), PYTEST)


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
