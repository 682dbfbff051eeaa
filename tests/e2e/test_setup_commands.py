"""`[toolchains.NAME] setup` and `outside`: what tests run with, and which fail in the box alone; no network is used."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import NOBODY, TRACKER, answers, done, evidence
from kit import FILES, GREET_DONE, HONEST, make_project
from languages.crates import MANIFEST, environment, needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project


pytestmark = pytest.mark.slow

USES = """import sys

import localdep


def test_the_package_that_setup_installed():
    assert localdep.ANSWER == 42
    assert sys.prefix.endswith("/tree/.venv")
"""
TESTS = {"tests/test_greet.py": FILES["tests/test_greet.py"] + NOBODY}


def wheel(folder: Path) -> None:
    """Make a wheel of one module, as a package index would hold it."""
    folder.mkdir()
    info = "localdep-1.0.dist-info"
    with zipfile.ZipFile(folder / "localdep-1.0-py3-none-any.whl", "w") as made:
        made.writestr("localdep.py", "ANSWER = 42\n")
        made.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: localdep\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", f"localdep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\nset -eu\n{text}")
    path.chmod(0o755)
    return path


def setup_of(name: str, *argv: str | Path) -> str:
    return f"[toolchains.{name}]\nsetup = {json.dumps([str(word) for word in argv])}\n"


@pytest.mark.broad
def test_tests_run_in_the_environment_that_setup_made_from_a_local_wheel(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels")
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    install = program(
        tmp_path / "install",
        f'echo "installing in $PWD"\n"{sys.executable}" -m venv .venv\n'
        f".venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index"
        f' --find-links "{tmp_path}/wheels" localdep\n'
        # pytest itself is ours: no index has it here
        f'echo "{sysconfig.get_path("purelib")}" > ".venv/{site}/ours.pth"\n',
    )
    files = {**FILES, ".gitignore": ".venv/\n", "tests/test_uses.py": USES}
    project = make_project(tmp_path, files)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}), setup_of("pytest", install))
    result = done(project)
    assert evidence(project, "baseline.json")["outcomes"] == {
        "tests/test_greet.py::test_greets_by_name": "passed",
        "tests/test_uses.py::test_the_package_that_setup_installed": "passed",
    }
    log = (project.run_folder() / "evidence/setup-pytest.log").read_text()
    assert log.count("installing in ") == 1
    assert str(project.home / "state") in log
    assert f"setup of pytest: {install}" in result["_stderr"]
    assert "setup of pytest: done (" in result["_stderr"]


def test_a_setup_that_fails_ends_the_run_before_any_agent_with_what_it_said(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    broken = program(tmp_path / "broken", "echo no such lock file >&2\nexit 3\n")
    project.use_script([], setup_of("pytest", broken))
    result = project.run()
    assert "ended with 3: no such lock file" in result["note"]
    assert not list(project.run_folder().glob("dispatches/*"))
    assert "no such lock file" in (project.run_folder() / "evidence/setup-pytest.log").read_text()


def test_what_a_setup_prints_is_kept_without_secrets_and_not_without_end(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.env["API_TOKEN"] = "tok-1234567890abcdef"
    noisy = program(tmp_path / "noisy", 'seq 1 400000\necho "token $API_TOKEN"\nexit 3\n')
    project.use_script([], setup_of("pytest", noisy))
    assert "tok-1234567890abcdef" not in json.dumps(project.run())
    log = (project.run_folder() / "evidence/setup-pytest.log").read_bytes()
    assert 900_000 < len(log) <= 1_000_100
    assert b"tok-1234567890abcdef" not in log
    assert b"400000" in log


def two_languages(tmp_path: Path) -> tuple[Project, dict[str, str]]:
    files = {
        **FILES,
        **TRACKER,
        ".gitignore": "target/\nCargo.lock\n",
        "rust/Cargo.toml": MANIFEST,
        "rust/src/lib.rs": "",
        "rust/tests/it.rs": "#[test]\nfn holds() {}\n",
    }
    project = make_project(tmp_path, files)
    project.env["PATH"] = f"{environment().prefix / 'bin'}:{project.environment()['PATH']}"
    return project, files


@needs_cargo
@pytest.mark.broad
def test_each_toolchain_has_its_own_setup_in_its_own_folder(tmp_path: Path) -> None:
    project, files = two_languages(tmp_path)
    where = tmp_path / "where"
    first = program(tmp_path / "first", f'echo "first $PWD" >> "{where}"\n')
    second = program(tmp_path / "second", f'echo "second $PWD" >> "{where}"\ncargo fetch --offline\n')
    setups = setup_of("pytest", first) + setup_of("cargo", second)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}), setups)
    done(project)
    assert [line.split("/tree")[-1] for line in where.read_text().splitlines()] == ["", "/rust"]
    assert evidence(project, "baseline.json")["outcomes"]["rust::greet::test/it::holds"] == "passed"


@needs_cargo
@pytest.mark.broad
def test_one_that_is_missing_is_left_out_and_said_until_a_task_needs_it(tmp_path: Path) -> None:
    project, files = two_languages(tmp_path)
    folder = tmp_path / "only"
    folder.mkdir()
    for name in ("git", "bwrap", "python3"):
        program(folder / name, f'exec "{sys.executable if name == "python3" else f"/usr/bin/{name}"}" "$@"\n')
    project.env["PATH"] = str(folder)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}))
    result = done(project)
    assert "cargo is left out, its tests are not measured: No rustc was found on PATH" in result["_stderr"]
    assert not any(entry.startswith("rust::") for entry in evidence(project, "baseline.json")["outcomes"])

    (tmp_path / "again").mkdir()
    other, files = two_languages(tmp_path / "again")
    other.env["PATH"] = str(folder)
    rust = {"rust/tests/new.rs": "#[test]\nfn fails() {\n    assert!(greet::no());\n}\n"}
    other.use_script(answers(files, rust, {"rust/src/lib.rs": "pub fn no() -> bool {\n    true\n}\n"}))
    refused = other.run()
    assert refused["_code"] != 0
    assert "rust/src/lib.rs is measured with cargo, which is missing here" in refused["_stderr"]
    assert not list(other.run_folder().glob("dispatches/*-test"))


# --- tests that fail in the box alone ---------------------------------------------------------------------------------

NEEDS = """import os
import pathlib

import pytest


@pytest.mark.parametrize("number", range({number}))
def test_needs_the_users_shell(number):
    mark = pathlib.Path({mark!r})
    mark.touch() if os.environ.get("SHOP_ENV") and mark.parent.is_dir() else None
    assert os.environ["SHOP_ENV"] == "test"


def test_fails_everywhere():
    assert 1 == 2
"""


def project_with(tmp_path: Path, number: int, extra: str) -> tuple[Project, Path]:
    mark = tmp_path / "ran-outside"
    project = make_project(tmp_path, {**FILES, "tests/test_needs.py": NEEDS.format(number=number, mark=str(mark))})
    project.env["SHOP_ENV"] = "test"
    project.use_script(HONEST, extra)
    return project, mark


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.broad
def test_a_few_that_differ_are_named_with_the_first_error(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 2, "[toolchains]\noutside = true\n")
    done = project.run()
    assert done["outcome"] == "completed", done["_stderr"]
    assert mark.exists()
    said = next(line for line in done["_stderr"].splitlines() if "sanity: OK" in line)
    first = "tests/test_needs.py::test_needs_the_users_shell[0]"
    assert f"2 tests fail in the box alone: {first}, " in said
    assert "KeyError" in said
    assert "SHOP_ENV" in said
    assert project.git("status", "--porcelain") == ""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.broad
def test_more_than_a_few_park_the_run_before_anybody_is_paid_and_resume_measures_again(tmp_path: Path) -> None:
    outside = "[toolchains]\noutside = true\n"
    project, _ = project_with(tmp_path, 4, outside)
    said = {check["id"]: check for check in project.document("doctor")["checks"]}["box"]
    assert (said["status"], said["message"][:36]) == ("fail", "4 tests fail in the box alone: tests")
    done = project.run()
    assert (done["outcome"], done["reason"]) == ("parked", "environment"), done["_stderr"]
    assert "4 tests fail in the box alone: " in done["note"]
    assert "[toolchains.NAME] env" in done["note"]
    assert "may_differ" in done["note"]
    assert not [line for line in project.journal() if line["kind"] == "dispatch"]
    again = project.document("resume", "run-GAL-1")
    assert (again["outcome"], again["reason"]) == ("parked", "environment"), "nothing was mended"
    mended = '[toolchains.pytest]\nenv = { SHOP_ENV = "test" }\nsetup = ["touch", "mended"]\n'
    project.use_script(HONEST, outside + mended)
    done = project.document("resume", "run-GAL-1")
    assert done["outcome"] == "completed", done["_stderr"]
    assert project.rows()[:2] == ["any/ENV_BROKEN", "any/ENV_BROKEN"]
    assert "setup of pytest: done" in done["_stderr"], "another setup is run, too"
    baseline = json.loads((project.run_folder() / "evidence" / "baseline.json").read_text())
    assert baseline["failing"] == ["tests/test_needs.py::test_fails_everywhere"]
    assert baseline["flaky"] == []


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_doctor_tests_runs_all_of_them_and_what_fails_outside_of_the_box(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 2, '[toolchains.pytest]\nsetup = ["touch", "made-by-setup"]\n')
    plain = {check["id"]: check for check in project.document("doctor")["checks"]}["collection"]
    assert "redfirst doctor --tests" in plain["advice"]
    assert not mark.exists()
    seen = project.document("doctor", "--tests")
    said = {check["id"]: check for check in seen["checks"]}
    assert "4 tests of HEAD in the box: 1 pass, 3 fail (" in said["collection"]["message"]
    assert (said["box"]["status"], seen["_code"]) == ("warn", 0)
    told = said["box"]["message"]
    assert told.startswith("2 tests fail in the box alone: tests/test_needs.py::test_needs_the_users_shell[0], ")
    assert "the first with builtins.KeyError: 'SHOP_ENV'" in told
    assert "; outside of it fails, too: tests/test_needs.py::test_fails_everywhere" in told
    assert mark.exists()
    assert "setup of pytest" in seen["_stderr"], "what is done is said while it lasts"
    assert project.git("status", "--porcelain") == ""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_doctor_tests_names_what_is_skipped_in_the_box_alone(tmp_path: Path) -> None:
    project, _ = project_with(tmp_path, 0, "")
    skips = "def test_shop():\n    if 'SHOP_ENV' not in os.environ:\n        pytest.skip('no shop')\n"
    project.write({"tests/test_needs.py": f"import os\n\nimport pytest\n\n\n{skips}"})
    project.commit()
    said = {check["id"]: check["message"] for check in project.document("doctor", "--tests")["checks"]}
    assert "2 tests of HEAD in the box: 1 pass, 0 fail, 1 skipped (" in said["collection"]
    assert said["box"] == (
        "1 test is skipped in the box alone: tests/test_needs.py::test_shop; the first with Skipped: no shop"
    )


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(("outside", "status"), [("", "warn"), ("[toolchains]\noutside = true\n", "fail")])
def test_doctor_tests_says_that_no_run_can_be_started_only_where_one_parks(
    tmp_path: Path, outside: str, status: str
) -> None:
    project, _ = project_with(tmp_path, 4, outside)
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["box"]["status"] == status, said["box"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_doctor_tests_runs_nothing_for_a_repository_that_is_not_trusted(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 1, "")
    project.write({"redfirst.toml": "[toolchains]\noutside = true\n"})
    project.commit()
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["trust"]["status"] == "fail"
    assert said["tests"]["same_as"] == "trust"
    assert "box" not in said
    assert not mark.exists()
    project.write({"redfirst.toml": '[agents]\nnetwork = "open"\n'})
    project.commit()
    said = {check["id"]: check for check in project.document("doctor", "--tests")["checks"]}
    assert said["box"]["message"] == "the tests of HEAD were not run: mend first what is said above"
    assert not mark.exists()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_nothing_runs_outside_unless_the_user_says_so(tmp_path: Path) -> None:
    project, mark = project_with(tmp_path, 4, "")
    assert "box" not in {check["id"] for check in project.document("doctor")["checks"]}
    assert project.run("--approve", "plan")["reason"] == "approval"
    assert not mark.exists()
    told = " ".join(project.redfirst("explain", "GAL-1", "-v").stdout.split())
    assert "fail in the box before any change" in told, "that they fail is said all the same, and how to know more"
    assert "[toolchains] outside = true" in told
    assert "redfirst doctor --tests" in told
