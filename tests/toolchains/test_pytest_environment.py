"""Which interpreter runs a project's tests, and where editable installs make it look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import anyio
import pytest
from toolchains.direct import TOOLCHAIN, measure, write

from pipeline.process import Mount
from pipeline.toolchains.protocol import EditableRoot, Environment, Missing, View
from pipeline.toolchains.pytest.toolchain import editable_mounts

pytestmark = pytest.mark.slow


SITE = sysconfig.get_path("purelib")
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def find(
    worktree: Path, main: Path | None = None, command: tuple[str, ...] | None = None, search_path: str = "/nowhere"
) -> Environment | Missing:
    state = worktree.parent / "state"
    return anyio.run(TOOLCHAIN.find_environment, worktree, main or worktree, command, state, search_path)


def venv(place: Path, *lines: str) -> Path:
    """Make a small environment whose `.pth` file holds the lines; a line with our site-packages gives it pytest."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python*/site-packages"))
    (site / "extra.pth").write_text("".join(f"{line}\n" for line in lines))
    return site


def found(answer: Environment | Missing) -> Environment:
    assert isinstance(answer, Environment), answer
    return answer


def test_the_worktrees_environment_comes_before_that_of_the_main_checkout(tmp_path: Path) -> None:
    worktree, main = write(tmp_path / "tree", {"x.py": ""}), write(tmp_path / "main", {"x.py": ""})
    venv(main / ".venv", SITE)
    assert found(find(worktree, main)).prefix == main / ".venv"
    venv(worktree / "venv", SITE)
    env = found(find(worktree, main))
    assert env.command == (str(worktree / "venv/bin/python"), "-m", "pytest")
    assert Mount(worktree / "venv", worktree / "venv") in env.mounts
    assert Mount(Path(SITE), Path(SITE)) in env.mounts


def test_an_environment_without_pytest_is_passed_over_and_named(tmp_path: Path) -> None:
    venv(tmp_path / "tree" / ".venv")
    answer = find(tmp_path / "tree")
    assert isinstance(answer, Missing)
    assert str(tmp_path / "tree" / ".venv") in answer.sentence


def test_python_on_the_search_path_is_the_last_resort(tmp_path: Path) -> None:
    venv(tmp_path / "other", SITE)
    tree = write(tmp_path / "tree", {"x.py": ""})
    assert found(find(tree, search_path=str(tmp_path / "other" / "bin"))).prefix == tmp_path / "other"


def test_a_configured_wrapper_is_resolved_without_running_project_code(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree",
        {
            "tools/py": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
            "conftest.py": "open('was_here', 'w').close()\n",
        },
    )
    (tree / "tools/py").chmod(0o755)
    env = found(find(tree, command=("tools/py", "-m", "pytest", "-k", "x")))
    assert env.command == (sys.executable, "-m", "pytest", "-k", "x")
    assert not (tree / "was_here").exists()


@pytest.mark.parametrize("command", [("make", "test"), ("no-such-program", "-m", "pytest"), ("/bin/true", "pytest")])
def test_a_configured_command_that_does_not_lead_to_pytest_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    tree = write(tmp_path / "tree", {"x.py": ""})
    answer = find(tree, command=command, search_path=os.environ["PATH"])
    assert isinstance(answer, Missing)
    assert command[0] in answer.sentence


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_a_locked_project_gets_a_private_environment_and_keeps_its_checkout_clean(tmp_path: Path) -> None:
    major, minor = sys.version_info[:2]
    wants = f'requires-python = ">={major}.{minor}"'
    tree = write(
        tmp_path / "tree",
        {
            "pyproject.toml": f'[project]\nname = "pkg"\nversion = "1"\n{wants}\n[tool.uv]\npackage = false\n',
            "uv.lock": f"""
                version = 1
                {wants}

                [[package]]
                name = "pkg"
                version = "1"
                source = {{ virtual = "." }}
                """,
        },
    )
    assert UV is not None
    answer = find(tree, search_path=f"{Path(UV).parent}:{sys.base_prefix}/bin")
    assert isinstance(answer, Missing)
    assert "pytest is not in uv.lock" in answer.sentence
    assert (tmp_path / "state/venv/bin/python").exists()
    assert sorted(entry.name for entry in tree.iterdir()) == ["pyproject.toml", "uv.lock"]


def test_editable_installs_are_found_by_path_by_finder_and_by_record(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree",
        {"src/pkg/core.py": "", "python/other/core.py": "", "native/native.py": ""},
    )
    site = venv(tree / ".venv", SITE, str(tree / "src"), "import __editable___other_finder")
    write(
        site,
        {
            "__editable___other_finder.py": f"MAPPING = {{'other': {str(tree / 'python/other')!r}}}\n",
            "native-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: native\nVersion: 1\n",
            "native-1.dist-info/direct_url.json": json.dumps(
                {"url": f"file://{tree}/native", "dir_info": {"editable": True}}
            ),
        },
    )
    env = found(find(tree))
    assert env.editable_roots == (
        EditableRoot(tree / "native", "native"),
        EditableRoot(tree / "python/other", "python/other"),
        EditableRoot(tree / "src", "src"),
    )
    view = View(Mount(write(tmp_path / "view", {"src/pkg/core.py": ""}), tmp_path / "work", writable=True))
    assert editable_mounts(env, view) == (view.mount.below("src", tree / "src"),)


def test_an_editable_install_into_the_checkout_does_not_hide_the_view(tmp_path: Path) -> None:
    files = {
        "src/core.py": "def answer():\n    return 41\n",
        "tests/test_it.py": "import core\n\ndef test_it(): assert core.answer() == 42\n",
    }
    tree = write(tmp_path / "tree", files)
    venv(tree / ".venv", SITE, str(tree / "src"))
    env = found(find(tree))
    view = write(tmp_path / "view", {**files, "src/core.py": "def answer():\n    return 42\n"})
    observation = measure(view, env=env)
    assert observation.modules["core"] == "src/core.py"
    assert [record.outcome for record in observation.records.values()] == ["passed"]


def test_python_projects_are_recognised_and_others_are_not(tmp_path: Path) -> None:
    assert TOOLCHAIN.detect(write(tmp_path / "a", {"tests/unit/test_x.py": ""}))
    assert TOOLCHAIN.detect(write(tmp_path / "b", {"pyproject.toml": ""}))
    assert not TOOLCHAIN.detect(write(tmp_path / "c", {"main.c": ""}))


def test_files_that_control_tests_are_known_by_name() -> None:
    paths = (
        "tests/conftest.py",
        "pyproject.toml",
        "a/b.pth",
        "requirements-dev.txt",
        "tests/test_conftest.py",
        "src/a.py",
    )
    assert [TOOLCHAIN.is_control_path(path) for path in paths] == [True, True, True, True, False, False]


def test_the_secrets_of_another_project_that_is_imported_from_are_not_shown(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"pkg/__init__.py": ""})
    text = {"lib.py": "", ".env": "TOKEN=x", ".env.example": "TOKEN=", ".git/config": "[remote]", ".git/HEAD": "ref"}
    other = write(tmp_path / "other", text)
    venv(tree / ".venv", SITE, str(other))
    env = found(find(tree))
    nothing = {mount.target for mount in env.mounts if mount.source == Path("/dev/null")}
    assert nothing == {other / ".env", other / ".env.example", other / ".git/config"}
    assert Mount(other, other) in env.mounts
