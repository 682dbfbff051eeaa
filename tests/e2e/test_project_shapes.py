"""Projects of many shapes go from issue to commits, each measured with its own code and its own settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import TRACKER, answers, install_editable, make_environment
from kit import FILES, GREET, GREET_DONE, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SRC_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "greet"
version = "1"

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/greet"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""
MARK = "\n\nCHECKOUT = 'start'\n"
SRC_FILES = {
    "src/greet/__init__.py": GREET + MARK,
    "tests/test_greet.py": "import greet\n\n\ndef test_the_code_is_that_of_the_start():\n"
    "    assert greet.CHECKOUT == 'start'\n",
    "pyproject.toml": SRC_PROJECT,
    ".gitignore": ".venv/\n*.egg-info/\n__pycache__/\n",
    **TRACKER,
}
SRC_TESTS = {
    "tests/test_greet.py": SRC_FILES["tests/test_greet.py"]
    + "\n\ndef test_an_empty_name_is_refused():\n    try:\n        greet.greet('')\n    except ValueError:\n"
    "        return\n    raise AssertionError('accepted')\n\n\n"
    "def test_a_farewell():\n    assert greet.farewell('Ada') == 'Bye, Ada!'\n",
}
FAREWELL = "\n\ndef farewell(name):\n    return f'Bye, {name}!'\n"
SRC_CODE = {"src/greet/__init__.py": GREET_DONE + FAREWELL + MARK}
CHECK = "import greet; assert greet.CHECKOUT == 'start'"
SYMBOLS = [{"path": "src/greet/__init__.py", "name": "farewell", "signature": "(name)", "new": True}]


def done(project: Project) -> dict[str, Any]:
    """Run GAL-1, which must come to its end; return the document."""
    result = project.run()
    assert result.get("outcome") == "completed", f"{result.get('error') or result['note']}\n{result['_stderr']}"
    assert project.git("status", "--porcelain") == ""
    return result


def evidence(project: Project, name: str) -> dict[str, Any]:
    return json.loads((project.run_folder() / "evidence" / name).read_text(encoding="utf-8"))


def make_log(project: Project) -> str:
    folder = next(iter(sorted(project.run_folder().glob("dispatches/*implement-make"))))
    return (folder / "stdout.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_in_a_linked_worktree_the_code_of_the_run_is_tested_not_the_installed_one(
    sandbox: str, tmp_path: Path
) -> None:
    main = make_project(tmp_path, SRC_FILES)
    install_editable(make_environment(main.root / ".venv"), main.root)
    main.git("switch", "--quiet", "main")
    worktree = Project(tmp_path / "linked tree ä", main.home)
    main.git("worktree", "add", "--quiet", str(worktree.root), "work")
    # Half of the result lies in the main checkout, uncommitted: importing it would make RED pass and GREEN fail.
    main.write({"src/greet/__init__.py": GREET_DONE + "\n\nCHECKOUT = 'main'\n"})
    worktree.use_script(
        answers(SRC_FILES, SRC_TESTS, SRC_CODE, symbols=SYMBOLS, run=["python", "-m", "pytest", "-q", "-rA"]),
        extra=f'sandbox = "{sandbox}"\n[checks]\ncommands = {json.dumps([["python", "-c", CHECK]])}\n',
    )

    done(worktree)

    before = evidence(worktree, "baseline.json")
    assert before["outcomes"] == {"tests/test_greet.py::test_the_code_is_that_of_the_start": "passed"}
    assert before["failing_checks"] == {}
    red = evidence(worktree, "task-1.json")["ledger"]["red"]
    assert sorted(entry["cls"] for entry in red.values()) == ["ASSERTION_MISMATCH", "MISSING_BEHAVIOR"]
    assert "3 passed" in make_log(worktree)  # the agent's own run, too
    assert (main.root / "src/greet/__init__.py").read_text().endswith("CHECKOUT = 'main'\n")


def test_in_the_main_checkout_the_environment_inside_it_tests_the_view(tmp_path: Path) -> None:
    project = make_project(tmp_path, SRC_FILES)
    install_editable(make_environment(project.root / ".venv"), project.root)
    where = "import greet, sys; print('SEEN', sys.prefix, greet.__file__, hasattr(greet, 'farewell'))"
    project.use_script(answers(SRC_FILES, SRC_TESTS, SRC_CODE, symbols=SYMBOLS, run=["python", "-c", where]))

    done(project)

    assert f"SEEN {project.root}/.venv " in make_log(project)
    assert make_log(project).strip().endswith("True")
    task = evidence(project, "task-1.json")
    assert sorted(task["ledger"]["red"]) == [
        "tests/test_greet.py::test_a_farewell", "tests/test_greet.py::test_an_empty_name_is_refused",
    ]  # fmt: skip
    assert not (project.root / "src" / "greet" / "__pycache__").exists()


ZOO_INI = """[tool.pytest.ini_options]
addopts = ["--doctest-modules", "--cov=zoo", "--cov-fail-under=99", "-q"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["."]
"""
ZOO = '''"""Zoo.

>>> 1 + 1
2
"""


def greet(name):
    """Greet.

    >>> greet("Ada")
    'Hello, Ada!'
    """
    return f"Hello, {name}!"


def never_called():
    return 1
'''
ZOO_FILES = {
    "zoo.py": ZOO,
    "pyproject.toml": ZOO_INI,
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef who():\n    return 'Ada'\n",
    "tests/inner/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef who(who):\n    return who + ' L.'\n",
    "tests/inner/test_inner.py": "from zoo import greet\n\n\ndef test_inner(who):\n"
    "    assert greet(who) == 'Hello, Ada L.!'\n",
    "tests/test_async.py": "import asyncio\n\n\nasync def test_waits():\n    await asyncio.sleep(0)\n",
    "tests/test_unit.py": "import unittest\n\nfrom zoo import greet\n\n\nclass TestZoo(unittest.TestCase):\n"
    "    def setUp(self):\n        self.name = 'Ada'\n\n"
    "    def test_greet(self):\n        for name in ('a', 'b'):\n            with self.subTest(name=name):\n"
    "                self.assertIn(name, greet(name))\n",
    "tests/test_loud.py": "import sys\n\n\ndef test_prints_a_lot(capfd):\n    with capfd.disabled():\n"
    "        for _ in range(60_000):\n            sys.stdout.write('x' * 99 + '\\n')\n",
    "tests/test_state.py": "import sys\n\n\ndef test_leaves_state():\n    sys.zoo = True\n\n\n"
    "def test_fails_after_the_other():\n    assert not hasattr(sys, 'zoo')\n",
    "tests/test_red.py": "def test_was_red_before():\n    assert 1 == 2\n",
    "tests/test_broken.py": "import there_is_no_such_module\n",
    **TRACKER,
}
ZOO_TESTS = {
    "tests/test_unit.py": ZOO_FILES["tests/test_unit.py"]
    + "\n    def test_nobody(self):\n        with self.assertRaises(ValueError):\n            greet('')\n",
    "tests/inner/test_nobody.py": "import pytest\n\nimport zoo\n\n\n@pytest.mark.parametrize('name', ['', ' ', 'Ada'])\n"
    "def test_blank(name, who):\n    if name == who[:3]:\n        assert zoo.greet(name)\n        return\n"
    "    with pytest.raises(ValueError):\n        zoo.greet(name)\n",
    "tests/test_async.py": ZOO_FILES["tests/test_async.py"]
    + "\n\nasync def test_nobody_waits():\n    import zoo\n    assert await zoo.later('Ada') == 'Hello, Ada!'\n",
}
ZOO_CODE = {
    "zoo.py": ZOO.replace("    return f", "    if not name.strip():\n        raise ValueError(name)\n    return f")
    + "\n\nasync def later(name):\n    return greet(name)\n"
}


def test_a_project_with_every_sort_of_test_and_a_red_baseline_goes_through(tmp_path: Path) -> None:
    project = make_project(tmp_path, ZOO_FILES)
    script = answers(ZOO_FILES, ZOO_TESTS, ZOO_CODE, symbols=[{"path": "zoo.py", "name": "later", "new": True}])
    guard = {"id": "tests/inner/test_nobody.py::test_blank[Ada]", "expected": "GUARD"}
    script[5]["report"]["tests"] = [guard]
    project.use_script(script)

    done(project)

    before = evidence(project, "baseline.json")
    assert before["failing"] == ["tests/test_broken.py", "tests/test_red.py::test_was_red_before"]
    assert before["flaky"] == ["tests/test_state.py::test_fails_after_the_other"]
    outcomes = before["outcomes"]
    assert outcomes["zoo.py::zoo.greet"] == "passed"
    assert outcomes["tests/test_loud.py::test_prints_a_lot"] == "passed"
    assert outcomes["tests/test_unit.py::TestZoo::test_greet"] == "passed"
    ledger = evidence(project, "task-1.json")["ledger"]
    assert sorted(ledger["red"]) == [
        "tests/inner/test_nobody.py::test_blank[ ]",
        "tests/inner/test_nobody.py::test_blank[]",
        "tests/test_async.py::test_nobody_waits",
        "tests/test_unit.py::TestZoo::test_nobody",
    ]
    assert list(ledger["guards"]) == [guard["id"]]
    assert not (project.root / ".coverage").exists()


@pytest.mark.parametrize("ini", ["", "[pytest]\ntestpaths = shop\naddopts = --doctest-modules\n"])
def test_tests_may_lie_beside_the_code(ini: str, tmp_path: Path) -> None:
    files = {
        "pytest.ini": ini or "[pytest]\n",
        "shop/__init__.py": "",
        "shop/greet.py": GREET,
        "shop/greet_test.py": "from shop.greet import greet\n\n\ndef test_greets():\n    assert greet('a')\n",
        **TRACKER,
    }
    tests = {
        "shop/greet_test.py": "import pytest\n\nfrom shop.greet import greet\n\n\ndef test_greets():\n"
        "    assert greet('a')\n\n\ndef test_nobody():\n    with pytest.raises(ValueError):\n        greet('')\n"
    }
    project = make_project(tmp_path, files)
    project.use_script(answers(files, tests, {"shop/greet.py": GREET_DONE}))

    done(project)

    assert project.git("diff", "--name-only", "HEAD~2", "HEAD~1").split() == ["shop/greet.py", "shop/greet_test.py"]


def test_a_project_without_any_test_gets_its_first(tmp_path: Path) -> None:
    files = {"greet.py": GREET, "pyproject.toml": "[project]\nname = 'greet'\nversion = '1'\n", **TRACKER}
    project = make_project(tmp_path, files)
    tests = {"tests/test_greet.py": "import pytest\n\nfrom greet import greet\n\n\ndef test_nobody():\n"
             "    with pytest.raises(ValueError):\n        greet('')\n"}  # fmt: skip
    project.use_script(answers(files, tests, {"greet.py": GREET_DONE}))

    done(project)

    assert evidence(project, "baseline.json")["outcomes"] == {}
    assert list(evidence(project, "task-1.json")["ledger"]["red"]) == ["tests/test_greet.py::test_nobody"]


def test_setup_needs_trust_and_runs_once_in_the_private_checkout(tmp_path: Path) -> None:
    counter = tmp_path / "setups.txt"
    setup = tmp_path / "setup.sh"
    setup.write_text(f'#!/bin/sh\npwd >> "{counter}"\ncp -a "{tmp_path}/made/.venv" .venv\n')
    setup.chmod(0o755)
    make_environment(tmp_path / "made" / ".venv")
    files = {
        **FILES,
        "redfirst.toml": f'[toolchains.pytest]\nsetup = ["{setup}"]\n',
        ".gitignore": ".venv/\n",
        "tests/test_where.py": "import sys\n\n\ndef test_the_environment_that_setup_made():\n"
        "    assert sys.prefix.endswith('/tree/.venv')\n",
    }
    project = make_project(tmp_path, files)
    test = "\n\nimport pytest\n\n\ndef test_nobody():\n    with pytest.raises(ValueError):\n        greet('')\n"
    tests = {"tests/test_greet.py": FILES["tests/test_greet.py"] + test}
    project.use_script(answers(files, tests, {"greet.py": GREET_DONE}))

    refused = project.run()
    assert (refused["_code"], refused["error"]["kind"]) == (2, "untrusted")
    assert not counter.exists()
    assert project.redfirst("trust", "--yes").returncode == 0

    done(project)

    (where,) = counter.read_text().splitlines()
    assert where.startswith(str(project.home / "state"))
    outcomes = evidence(project, "baseline.json")["outcomes"]
    assert outcomes["tests/test_where.py::test_the_environment_that_setup_made"] == "passed"


def test_with_a_uv_lock_the_environment_of_the_project_counts(tmp_path: Path) -> None:
    files = {
        **FILES,
        "uv.lock": 'version = 1\nrequires-python = ">=3.11"\n',
        ".gitignore": ".venv/\nvenv/\n",
        "tests/test_where.py": "import sys\n\n\ndef test_the_environment():\n    assert sys.prefix.endswith('/.venv')\n",
    }
    project = make_project(tmp_path, files)
    make_environment(project.root / ".venv")
    test = "\n\nimport pytest\n\n\ndef test_nobody():\n    with pytest.raises(ValueError):\n        greet('')\n"
    tests = {"tests/test_greet.py": FILES["tests/test_greet.py"] + test}
    project.use_script(answers(files, tests, {"greet.py": GREET_DONE}))

    done(project)

    assert evidence(project, "baseline.json")["outcomes"]["tests/test_where.py::test_the_environment"] == "passed"
