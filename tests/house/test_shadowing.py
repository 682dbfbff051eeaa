"""A target repository with packages of our names does not replace ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REDFIRST = Path(sys.executable).with_name("redfirst")
OURS = ("pipeline", "todo", "agents")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a repository whose packages refuse to be imported."""
    folder = tmp_path / "target"
    for name in OURS:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('imported the {name} of the target')\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def start(target: Path, *argv: str, pythonpath: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(target.parent), "PYTHONPATH": pythonpath}
    return subprocess.run(argv, cwd=target, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("pythonpath", ["{target}", ".", ":{target}:", "../target", "{target}/../target"])
@pytest.mark.broad(but_first=1)
def test_a_target_on_pythonpath_does_not_replace_our_packages(target: Path, pythonpath: str) -> None:
    done = start(target, str(REDFIRST), "schema", "--json", pythonpath=pythonpath.format(target=target))
    assert done.returncode == 0, done.stderr
    assert '"redfirst.schemas/1"' in done.stdout


@pytest.mark.broad
def test_a_link_to_the_target_on_pythonpath_does_not_either(target: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target)
    done = start(target, str(REDFIRST), "schema", "--json", pythonpath=str(tmp_path / "link"))
    assert done.returncode == 0, done.stderr


def test_the_target_would_replace_them_otherwise(target: Path) -> None:
    done = start(target, sys.executable, "-c", "import pipeline", pythonpath=str(target))
    assert "imported the pipeline of the target" in done.stderr
