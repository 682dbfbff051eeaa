"""The same measurement in the kernel box, where paths differ and the records leave through a mount."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import anyio
import pytest
from languages.direct import TOOLCHAIN, measure, write

from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.testing.languages.protocol import Environment, Lookup

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BWRAP = shutil.which("bwrap") or ""


@pytest.fixture
def box() -> Bubblewrap:
    made = Bubblewrap(BWRAP)
    if not BWRAP or not anyio.run(made.canary).ok:
        pytest.skip("this machine has no working bubblewrap")
    return made


def test_a_measurement_in_the_box_equals_one_outside(tmp_path: Path, box: Bubblewrap) -> None:
    write(
        tmp_path,
        {
            "core.py": "def answer():\n    return 41\n",
            "test_it.py": """
                import os
                from core import answer

                def test_fails(tmp_path): assert answer() == 42
                def test_exits(): os._exit(0)
                def test_passes(): assert os.getcwd() != "/"
                """,
        },
    )
    inside, outside = measure(tmp_path, box=box), measure(tmp_path)
    assert inside.state is RunState.CRASHED
    assert [record.outcome for record in inside.records.values()] == [Ended.FAILED, Ended.CRASHED, Ended.PASSED]
    assert inside.records == outside.records
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["core.py", "test_it.py"]


@pytest.mark.parametrize("inside", ["src", "."])
@pytest.mark.broad
def test_the_view_is_shown_where_an_editable_install_points(tmp_path: Path, box: Bubblewrap, inside: str) -> None:
    module = f"{inside}/core.py"
    test = "import core\n\ndef test_it(): assert core.answer() == 42\n"
    config = "[pytest]\naddopts = --import-mode=importlib\n"
    files = {module: "def answer():\n    return 41\n", "tests/test_it.py": test, "pytest.ini": config}
    tree = write(tmp_path / "tree", files)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / ".venv"], check=True)
    site = next(tree.glob(".venv/lib/python*/site-packages"))
    (site / "it.pth").write_text(f"{sysconfig.get_path('purelib')}\n{tree / inside}\n")
    env = anyio.run(TOOLCHAIN.find_environment, Lookup(tree, tree, None, tmp_path / "state", "/nowhere"))
    assert isinstance(env, Environment)
    view = write(tmp_path / "view", {**files, module: "def answer():\n    return 42\n"})
    observation = measure(view, env=env, box=box)
    assert observation.modules["core"] == module.removeprefix("./")
    assert [record.outcome for record in observation.records.values()] == [Ended.PASSED], observation.tail
