"""Real tests of projects in folders: pytest, cargo and go, with the whole view around them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from languages import direct
from languages.direct import write

from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.projects.combined import Projects
from pipeline.testing.languages.projects.project import Project
from pipeline.testing.languages.protocol import Environment, Lookup, Measurement, Missing, PlacedFolder, Selection, View
from pipeline.testing.languages.table import LANGUAGES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

PYTEST = Projects([Project(LANGUAGES["pytest"].toolchain, "apps/api")])

MONOREPO = {
    "lib/shared.py": "def twice(x):\n    return 2 * x\n",
    "apps/api/core.py": "from shared import twice\n\ndef four():\n    return twice(2)\n",
    "apps/api/conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'lib'))\n",
    "apps/api/tests/test_core.py": """
        from core import four

        def test_four():
            assert four() == 4

        def test_five():
            assert four() == 5
        """,
    "apps/api/pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n',
}


def measure(toolchain: Projects, root: Path, env: Environment, selection: Selection | None = None) -> Observation:
    async def run() -> Observation:
        view = View(Mount(root, root, writable=True))
        return await toolchain.run_tests(Measurement(NoBox(), view, env, selection, timeout_s=120))

    return anyio.run(run)


@pytest.mark.broad
def test_tests_run_in_their_folder_and_import_from_a_sibling(tmp_path: Path) -> None:
    root = write(tmp_path / "view", MONOREPO)
    seen = measure(PYTEST, root, direct.environment())
    five = "apps/api/tests/test_core.py::test_five"
    assert {entry: record.outcome for entry, record in seen.records.items()} == {
        "apps/api/tests/test_core.py::test_four": Ended.PASSED,
        five: Ended.FAILED,
    }
    assert seen.files.keys() == {"apps/api/tests/test_core.py"}
    fault = seen.records[five].fault
    assert fault is not None
    assert fault.last_own_frame is not None
    assert fault.last_own_frame.path == "apps/api/tests/test_core.py"
    chosen = measure(PYTEST, root, direct.environment(), Selection(ids=frozenset({five})))
    assert [record.id for record in chosen.records.values() if record.ran] == [five]
    named = measure(PYTEST, root, direct.environment(), Selection(files=frozenset({"apps/api/tests/test_core.py"})))
    assert all(record.ran for record in named.records.values())


def test_a_tree_without_the_folder_has_no_tests(tmp_path: Path) -> None:
    seen = measure(PYTEST, write(tmp_path / "view", {"x.py": ""}), direct.environment())
    assert (seen.state, seen.records) == (RunState.COMPLETE, {})
    assert seen.environment_problem is None


@pytest.mark.parametrize("link", ["apps", "apps/api"])
def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = write(tmp_path / "outside", {"api/tests/test_a.py": "open('was_here', 'w')\n", "tests/test_a.py": ""})
    root = tmp_path / "view"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside)
    seen = measure(PYTEST, root, direct.environment())
    assert "is not a folder of the measured files" in (seen.environment_problem or "")
    assert not list(outside.rglob("was_here"))


def test_the_environment_is_that_of_the_folder(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"apps/api/pyproject.toml": ""})

    def find(toolchain: Projects, command: tuple[str, ...]) -> Environment | Missing:
        return direct.environments(toolchain, Lookup(tree, tree, command, tmp_path / "state", os.environ["PATH"]))

    (tree / "python").symlink_to(sys.executable)
    (tree / "apps/api/py").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tree / "apps/api/py").chmod(0o755)
    assert isinstance(find(PYTEST, ("./py", "-m", "pytest")), Environment)
    nowhere = find(Projects([Project(LANGUAGES["pytest"].toolchain, "gone")]), (sys.executable, "-m", "pytest"))
    assert isinstance(nowhere, Missing)
    assert "no folder gone" in nowhere.sentence


@pytest.mark.broad
def test_a_sibling_that_is_installed_in_place_is_taken_from_the_view(tmp_path: Path) -> None:
    from languages.test_pytest_environment import SITE, venv

    tree = write(tmp_path / "tree", {"lib/src/shared.py": "VALUE = 1\n", "apps/api/pyproject.toml": ""})
    venv(tree / "apps/api/.venv", SITE, str(tree / "lib/src"))
    env = direct.environments(PYTEST, Lookup(tree, tree, None, tmp_path / "state", "/nowhere"))
    assert isinstance(env, Environment), env
    assert PlacedFolder(tree / "lib/src", "../../lib/src") in env.editable_roots
    assert not any(mount.target == tree / "lib/src" for mount in env.mounts)
    view = write(
        tmp_path / "view",
        {
            "lib/src/shared.py": "VALUE = 2\n",
            "apps/api/tests/test_a.py": "import shared\n\ndef test_a():\n    assert shared.VALUE == 2\n",
        },
    )
    seen = measure(PYTEST, view, env)
    assert [record.outcome for record in seen.records.values()] == [Ended.PASSED], seen.tail
