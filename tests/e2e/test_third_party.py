"""Issues of real packages, taken to commits by a small program; a stranger finds RED and GREEN in the commits alone."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from e2e.packages import CAMELIZE, Case
from e2e.sdists import unpack
from e2e.shapes import changed, done
from kit import Project, make_project

pytestmark = [pytest.mark.slow, pytest.mark.broad]

AGENT = Path(__file__).with_name("agents") / "known_answer.py"


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    """Return where archives are kept between sessions; there are never more than the pinned ones."""
    return Path(pytestconfig.cache.mkdir("sdists"))


def prepare(case: Case, cache: Path, tmp_path: Path) -> Project:
    """Return a repository of the package with the issue, and the program configured for every role."""
    readme = f"# Issues\n\n## Core\n- [ ] [GAL-1](GAL-1.md) {case.title}\n"
    tracker = {"TODO/GAL-1.md": case.issue, "TODO/README.md": readme, ".gitignore": ".venv/\n*.egg-info/\n"}
    project = make_project(tmp_path, tracker)
    project.probed = True
    unpack(case.sdist, cache, project.root)
    project.commit(case.sdist.stem)
    answers = project.home / "answers.json"
    answers.write_text(json.dumps(case.answers()), encoding="utf-8")
    argv = [sys.executable, str(AGENT), str(answers)]
    read = [str(AGENT), str(answers)]
    project.configure(f'[agents]\nbackend = "command"\nargv = {json.dumps(argv)}\nread = {json.dumps(read)}\n')
    return project


def outcomes(folder: Path) -> dict[str, str]:
    """Return how each test of a checkout ends, as plain pytest tells in its report file."""
    report = folder.parent / "report.xml"
    plain = ("-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *plain], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stdout[-2000:] + done.stderr
    ends: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest wrote it just now)
        worst = next((child.tag for child in case if child.tag in {"failure", "error", "skipped"}), "passed")
        ends[f"{case.attrib['file']}::{case.attrib['name']}"] = worst
    return ends


def read_as_a_stranger(project: Project, case: Case, tmp_path: Path) -> None:
    """Clone the branch, and find RED and GREEN from its commits alone."""
    clone = tmp_path / "stranger" / "clone"
    clone.parent.mkdir()
    project.git("clone", "--quiet", "--branch", "work", str(project.root), str(clone), cwd=tmp_path)
    there = Project(clone, project.home)
    code, tracker = there.git("rev-list", "--reverse", "--grep=^Run-Id: run-GAL-1$", "HEAD").split()
    lines = there.git("log", "-1", "--format=%(trailers:only,unfold)", code).splitlines()
    trailers = dict(line.split(": ", 1) for line in lines if line)
    assert (trailers["Issue"], trailers["Task"]) == ("GAL-1", "1")
    assert trailers["Red-Evidence"].startswith("sha256:")
    assert sorted(changed(there, code)) == sorted([case.code.path, case.tests.path])
    assert all(name.startswith("TODO/") for name in changed(there, tracker))

    there.git("checkout", "--quiet", f"{code}~1")
    before = outcomes(clone)
    there.git("checkout", "--quiet", code, "--", *(name for name in changed(there, code) if "test_" in name))
    red = outcomes(clone)
    assert red.keys() - before.keys() == case.new_ids
    assert {red[name] for name in case.new_ids} == {"failure"}
    assert {name: red[name] for name in before} == before

    there.git("checkout", "--quiet", "--force", code)
    green = outcomes(clone)
    assert {green[name] for name in case.new_ids} == {"passed"}
    assert {name: green[name] for name in before} == before
    assert "passed" in before.values()


def test_an_issue_of_a_real_package_becomes_commits_that_prove_themselves(cache: Path, tmp_path: Path) -> None:
    project = prepare(CAMELIZE, cache, tmp_path)

    done(project)

    read_as_a_stranger(project, CAMELIZE, tmp_path)
