"""At a person's desk the same code is imported as in a measurement: the desk's, whatever is installed in place."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from toolchains.direct import TOOLCHAIN, write
from toolchains.test_pytest_environment import SITE, find, found, venv

from pipeline.dispatch.desk_tests import script_of
from pipeline.dispatch.request import Tools
from pipeline.process import Mount
from pipeline.steps.tools import Kit

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "src/core/__init__.py": "def answer():\n    return 41\n",
    "tests/test_it.py": "import core\n\ndef test_it():\n    assert core.answer() == 42\n",
    "tests/test_where.py": "def test_root(request):\n    assert (request.config.rootpath / 'src').is_dir()\n",
}
RIGHT = {**FILES, "src/core/__init__.py": "def answer():\n    return 42\n"}


@pytest.mark.parametrize("how", ["a path", "a finder", "nothing"])
def test_the_desk_is_tested_and_not_the_worktree_it_was_made_from(tmp_path: Path, how: str) -> None:
    tree = write(tmp_path / "tree", FILES)
    lines = {"a path": [str(tree / "src")], "a finder": ["import __editable___core_finder"], "nothing": []}[how]
    site = venv(tree / ".venv", SITE, *lines)
    finder = f"""\
        import sys
        from importlib.util import spec_from_file_location
        MAPPING = {{'core': {str(tree / "src/core")!r}}}
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name in MAPPING:
                    return spec_from_file_location(name, MAPPING[name] + "/__init__.py")
        sys.meta_path.append(Finder)
        """
    if how == "a finder":
        write(site, {"__editable___core_finder.py": finder})
    desk = write(tmp_path / "a desk", RIGHT)
    kit = Kit(((TOOLCHAIN, found(find(tree))),))
    text = script_of(kit.tools, desk)
    assert text is not None
    script = tmp_path / "run-tests"
    script.write_text(text)
    script.chmod(0o700)
    done = subprocess.run([script], check=False, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done
    one = subprocess.run([script, "tests/test_where.py::test_root"], check=False, capture_output=True, text=True)
    assert "1 passed" in one.stdout, one
    (desk / "src/core/__init__.py").write_text("def answer():\n    return 0\n")
    assert subprocess.run([script], check=False, capture_output=True).returncode == 1


def test_packages_that_the_tests_find_inside_the_checkout_are_linked_for_as_long_as_they_run(tmp_path: Path) -> None:
    packages = write(tmp_path / "worktree/node_modules", {"left/package.json": "{}"})
    desk = write(tmp_path / "desk", {"package.json": "{}"})

    def tools(mount: Mount) -> Tools:
        link = Mount(packages, mount.target / "node_modules")
        return Tools(env={"PATH": "/usr/bin:/bin"}, test_command=("ls", "node_modules"), links=(link,))

    text = script_of(tools, desk)
    assert text is not None
    done = subprocess.run(["sh", "-c", text], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "left\n"), done
    assert [path.name for path in desk.iterdir()] == ["package.json"]
    assert (packages / "left/package.json").exists()


def test_without_a_test_command_there_is_no_program(tmp_path: Path) -> None:
    assert script_of(lambda _: Tools(), tmp_path) is None
