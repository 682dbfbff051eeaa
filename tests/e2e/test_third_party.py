"""Issues of real packages, taken to commits by a small program; a stranger finds RED and GREEN in the commits alone."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from e2e.sdists import INFLECTION, PARSE, TOOLZ, Sdist, unpack
from kit import Entry, Project, make_project

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

AGENTS = Path(__file__).with_name("agents")
Edit = tuple[str, str, str]


@dataclass(frozen=True)
class Case:
    """An issue of a package, and its known answer."""

    sdist: Sdist
    title: str
    why: str
    production: Edit
    tests: Edit
    new_ids: frozenset[str]
    symbols: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def issue(self) -> str:
        head = (
            "---\nid: GAL-1\ntitle: {0}\nstatus: Todo\nparent: null\nlabels: [bug]\ndepends-on: []\n---\n# GAL-1: {0}\n"
        )
        return f"{head.format(self.title)}\n{self.why}\n\n## Acceptance criteria\n- [ ] {self.title}\n"

    def answers(self) -> list[Entry]:
        """Return what the program answers to each question of a run without detours."""
        production, tests = self.production[0], self.tests[0]
        file = {"path": production, "action": "modify"}
        task = {
            "title": self.title,
            "description": self.why,
            "acceptance_criteria": [self.title],
            "files": [file],
            "test_files": [{"path": tests, "action": "modify"}],
            "symbols": self.symbols,
        }
        behaviour = {"action": self.why, "outcome": self.title}
        plan = {
            "problem": self.why,
            "approach": "The smallest change.",
            "files": [{**file, "why": "it is there"}],
            "test_design": {"behaviours": [behaviour]},
        }
        fine = {"verdict": "ACCEPTABLE"}
        simple = {"verdict": "JUSTIFIED COMPLEXITY"}
        return [
            {"when": {"kind": "plan"}, "report": plan},
            {"when": {"kind": "split"}, "report": {"tasks": [task]}},
            {"when": {"role": "check"}, "report": fine},
            {"when": {"role": "simplify"}, "report": simple},
            {"when": {"kind": "write-tests"}, "edits": [self.tests], "report": {"verdict": "TESTS_READY"}},
            {
                "when": {"kind": "implement"},
                "edits": [self.production],
                "report": {"result": "COMPLETE", "summary": self.title},
            },
        ]


CASES = [
    Case(
        INFLECTION,
        "Camelize an empty string",
        'camelize("", False) raises IndexError.',
        (
            "inflection/__init__.py",
            "        return string[0].lower() + camelize(string)[1:]",
            "        return string[:1].lower() + camelize(string)[1:]",
        ),
        (
            "test_inflection.py",
            "def test_camelize_with_underscores():",
            "@pytest.mark.parametrize('upper', [False])\n"
            "def test_camelize_of_nothing_is_nothing(upper):\n"
            "    assert '' == inflection.camelize('', upper)\n\n\n"
            "def test_camelize_with_underscores():",
        ),
        frozenset({"test_inflection.py::test_camelize_of_nothing_is_nothing[False]"}),
    ),
    Case(
        PARSE,
        "Give Result a get method",
        "A named field that may be missing takes a try statement to read.",
        (
            "parse.py",
            "    def __contains__(self, name):\n        return name in self.named\n",
            "    def __contains__(self, name):\n        return name in self.named\n\n"
            "    def get(self, name, default=None):\n"
            '        """Return the named field, or the default."""\n'
            "        return self.named.get(name, default)\n",
        ),
        (
            "tests/test_result.py",
            "",
            '\n\ndef test_get_reads_a_named_field():\n    r = parse.parse("{spam}", "ham")\n'
            '    assert r.get("spam") == "ham"\n\n\n'
            "def test_get_falls_back_to_the_default():\n"
            '    r = parse.Result((), {"spam": "ham"}, None)\n'
            '    assert r.get("eggs") is None\n    assert r.get("eggs", 3) == 3\n',
        ),
        frozenset(
            {
                "tests/test_result.py::test_get_reads_a_named_field",
                "tests/test_result.py::test_get_falls_back_to_the_default",
            }
        ),
        [{"path": "parse.py", "name": "Result.get", "signature": "(name, default=None)", "new": True}],
    ),
    Case(
        TOOLZ,
        "Return nothing for a tail of length zero",
        "tail(0, [1, 2]) returns [1, 2], for an iterator (1, 2) it returns ().",
        ("toolz/itertoolz.py", "        return seq[-n:]\n", "        return seq[-n:] if n else seq[:0]\n"),
        (
            "toolz/tests/test_itertoolz.py",
            "def test_drop():\n",
            "def test_tail_of_length_zero():\n"
            "    assert tail(0, [1, 2]) == []\n    assert tail(0, iter([1, 2])) == ()\n\n\n"
            "def test_drop():\n",
        ),
        frozenset({"toolz/tests/test_itertoolz.py::test_tail_of_length_zero"}),
    ),
]


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    return Path(pytestconfig.cache.mkdir("sdists")) if pytestconfig.cache else Path()


def prepare(case: Case, cache: Path, tmp_path: Path) -> Project:
    """Return a repository of the package with the issue, and the program configured for every role."""
    readme = f"# Issues\n\n## Core\n- [ ] [GAL-1](GAL-1.md) {case.title}\n"
    project = make_project(
        tmp_path, {"TODO/GAL-1.md": case.issue, "TODO/README.md": readme, ".gitignore": ".venv/\n*.egg-info/\n"}
    )
    unpack(case.sdist, cache, project.root)
    project.commit(case.sdist.stem)
    answers = project.home / "answers.json"
    answers.write_text(json.dumps(case.answers()), encoding="utf-8")
    argv = [sys.executable, str(AGENTS / "known_answer.py"), str(answers)]
    read = [str(AGENTS), str(answers)]
    project.configure(f'[agents]\nbackend = "command"\nargv = {json.dumps(argv)}\nread = {json.dumps(read)}\n')
    return project


def results(folder: Path, *argv: str) -> dict[str, str]:
    """Return how each test of a checkout ends, as plain pytest tells in its report file."""
    report = folder.parent / "report.xml"
    plain = ("-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *plain, *argv], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stdout[-2000:] + done.stderr
    ends: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest wrote it just now)
        worst = next((child.tag for child in case if child.tag in {"failure", "error", "skipped"}), "passed")
        ends[f"{case.attrib['file']}::{case.attrib['name']}"] = worst
    return ends


def trailers_of(project: Project, revision: str, clone: Path) -> dict[str, str]:
    lines = project.git("log", "-1", "--format=%(trailers:only,unfold)", revision, cwd=clone).splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def read_as_a_stranger(project: Project, case: Case, tmp_path: Path) -> None:
    """Clone the branch, and find RED and GREEN from its commits alone."""
    clone = tmp_path / "stranger" / "clone"
    clone.parent.mkdir()
    project.git("clone", "--quiet", "--branch", "work", str(project.root), str(clone), cwd=tmp_path)
    assert not (clone / ".workflow").exists()
    code, tracker = project.git("rev-list", "--reverse", "--grep=^Run-Id: run-GAL-1$", "HEAD", cwd=clone).split()
    said = trailers_of(project, code, clone)
    assert said["Issue"] == "GAL-1"
    assert said["Run-Id"] == "run-GAL-1"
    assert said["Task"] == "1"
    assert said["Red-Evidence"].startswith("sha256:")
    changed = project.git("diff", "--name-only", f"{code}^", code, cwd=clone).split()
    assert sorted(changed) == sorted([case.production[0], case.tests[0]])
    assert all(name.startswith("TODO/") for name in changes(project, clone, tracker))

    project.git("checkout", "--quiet", f"{code}^", cwd=clone)
    before = results(clone)
    project.git("checkout", "--quiet", code, "--", *(name for name in changed if "test_" in name), cwd=clone)
    red = results(clone)
    new = red.keys() - before.keys()
    assert new == case.new_ids
    assert {red[name] for name in new} == {"failure"}
    assert {name: red[name] for name in before} == before

    project.git("checkout", "--quiet", "--force", code, cwd=clone)
    green = results(clone)
    assert {green[name] for name in new} == {"passed"}
    assert {name: green[name] for name in before} == before
    assert "passed" in before.values()


def changes(project: Project, clone: Path, commit: str) -> Sequence[str]:
    return project.git("diff", "--name-only", f"{commit}^", commit, cwd=clone).split()


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.sdist.name)
def test_an_issue_of_a_real_package_becomes_commits_that_prove_themselves(
    case: Case, cache: Path, tmp_path: Path
) -> None:
    project = prepare(case, cache, tmp_path)

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    assert project.git("status", "--porcelain") == ""
    read_as_a_stranger(project, case, tmp_path)


def test_a_package_installed_in_its_own_environment_is_measured_there(cache: Path, tmp_path: Path) -> None:
    case = CASES[2]
    project = prepare(case, cache, tmp_path)
    subprocess.run([sys.executable, "-m", "venv", str(project.root / ".venv")], check=True)
    python = str(project.root / ".venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "pytest", "setuptools", "wheel"], check=True)
    editable = ["--no-deps", "--no-build-isolation", "--editable", str(project.root)]
    subprocess.run([*install, *editable], check=True)

    result = project.run()

    assert (result["outcome"], result["reason"]) == ("completed", "done"), result["_stderr"]
    assert project.git("status", "--porcelain") == ""
    read_as_a_stranger(project, case, tmp_path)
