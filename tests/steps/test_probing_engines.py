"""mutmut and cargo-mutants: the real mutmut where it is installed, and programs that behave like either one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from steps.probed import PYPROJECT, laboratory, repository, seen, tree_of

from pipeline.config.probes import Engine
from pipeline.measure.mutating import Allowance, Judges
from pipeline.steps.engines import engine_probe

if TYPE_CHECKING:
    from kit import Project

    from pipeline.measure.probe_evidence import MutationEvidence

pytestmark = pytest.mark.slow

OLD = "def old(n):\n    return n + 1\n"
CART = """

class Cart:
    def price(self, total):
        if total >= 100:
            return total - 10
        return total
"""
NEW = OLD + CART
TEST = "from shop import Cart\n\n\ndef test_price():\n    assert Cart().price(200) == 190\n"


def change(tmp_path: Path, more: dict[str, str] | None = None) -> Project:
    before = {"pyproject.toml": PYPROJECT, "shop.py": OLD, **(more or {})}
    return repository(tmp_path, before, {"shop.py": NEW, "tests/test_shop.py": TEST})


def probed(project: Project, engine: Engine, search_path: str | None = None, seconds: float = 120) -> MutationEvidence:
    with laboratory(project, search_path=search_path) as lab:
        green = seen(lab)
        judges = Judges(frozenset(green.records))
        base, tree = tree_of(lab, "main"), tree_of(lab, "HEAD")
        return anyio.run(engine_probe, lab, engine, base, tree, judges, green.layout, Allowance(20, seconds))


def program(tmp_path: Path, name: str, text: str) -> str:
    """Write a program of this name; return a PATH that begins with its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.broad
def test_the_real_mutmut(tmp_path: Path) -> None:
    if not Path(sys.executable).with_name("mutmut").exists():
        reason = "mutmut is not installed beside this Python"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    project = change(tmp_path, {"setup.cfg": "[metadata]\nname = shop\n"})
    found = probed(project, Engine.MUTMUT)
    assert found.trouble == ""
    assert found.killed >= 1
    assert {(survivor.path, survivor.line) for survivor in found.survivors} == {("shop.py", 7)}
    assert any(survivor.what.endswith("`if total > 100:`") for survivor in found.survivors)
    assert project.git("status", "--porcelain") == ""


MUTANTS = """
import pathlib, sys
words = sys.argv[1:]
assert words[0] == "mutants", words
out = pathlib.Path(words[words.index("--output") + 1], "mutants.out")
diff = pathlib.Path(words[words.index("--in-diff") + 1]).read_text()
assert "+class Cart:" in diff and "--in-place" in words
assert pathlib.Path("shop.py").exists()
out.mkdir()
(out / "caught.txt").write_text("shop.py:8:20: replace - with +\\nshop.py:9:1: a\\n")
(out / "timeout.txt").write_text("")
(out / "unviable.txt").write_text("shop.py:8:1: b\\n")
(out / "missed.txt").write_text("shop.py:7:18: replace >= with >\\nshop.py:2:1: not changed\\n../x:1:1: elsewhere\\n")
"""


def test_what_cargo_mutants_lists(tmp_path: Path) -> None:
    found = probed(change(tmp_path), Engine.CARGO_MUTANTS, program(tmp_path, "cargo-mutants", MUTANTS))
    assert (found.killed, found.unfit, found.not_tried, found.trouble) == (2, 1, None, "")
    (survivor,) = found.survivors  # only of lines that were changed
    assert (survivor.line, survivor.what, survivor.source) == (7, "replace >= with >", "if total >= 100:")


LIES = """
import os, sys
os.symlink("/etc", sys.argv[sys.argv.index("--output") + 1] + "/mutants.out")
print("done")
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.exit('no such toolchain')", "no such toolchain"),
        ("import time; time.sleep(60)", "it printed nothing"),
        (LIES, "done"),
    ],
)
@pytest.mark.broad
def test_an_engine_that_fails_hangs_or_lies(tmp_path: Path, text: str, said: str) -> None:
    found = probed(change(tmp_path), Engine.CARGO_MUTANTS, program(tmp_path, "cargo-mutants", text), seconds=5)
    assert (found.killed, found.survivors) == (0, ())
    assert said in found.trouble
    assert found.seconds < 30


@pytest.mark.broad
def test_an_engine_that_is_missing_is_said_and_nothing_is_done_in_its_place(tmp_path: Path) -> None:
    nowhere = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    found = probed(change(tmp_path), Engine.CARGO_MUTANTS, nowhere)
    assert found.trouble.startswith('[probes] engine = "cargo-mutants", and there is no cargo-mutants on PATH')
    assert (found.engine, found.tried, found.seconds) == ("cargo-mutants", 0, 0.0)
