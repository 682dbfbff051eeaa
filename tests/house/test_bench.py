"""The benchmarks run, and their figures belong to runs that did what they should; how long it took is not judged."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from agent_clis import agents_folder, cli

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
SAID: Final = {
    "pipeline.py --rounds 1 --tasks 1 --files 5": (
        r"7 dispatches, \d+ measurements, 2 commits",
        r"ratio +\d+\.\d\d +\(",
        r"processes +\d+ +\d+\.\d",
    ),
    "dispatch.py --quick": (r"1000 files, 3 edited; plain execution takes",),
    "evidence.py --rounds 1 --subjects small": (
        r"^ +ratio +\d+\.\d\d +\(\d+\.\d\d to \d+\.\d\d\), goal 1\.2$",
        *(rf"^ +{stage} +\d+ ms .* in 1 calls$" for stage in ("baseline", "red", "green", "repeat", "revert")),
    ),
    "recipes.py --rounds 1 --steps 200": (r"^compose +[\d.]+ ms", r"^check +[\d.]+ ms", r"^plan +[\d.]+ ms"),
    "work.py --runs 3 --jobs 2 --against 1": (r", 0 failed\n", r"^ratio \d+\.\d\d$"),
    "agents.py --rounds 1 --agents codex": tuple(
        rf"^ +{title}( +-?\d+){{6}}  \(-?\d+ to -?\d+\)$" for title in ("bare", "ours, first", "our share, next")
    ),
}


@pytest.mark.slow
@pytest.mark.broad
@pytest.mark.parametrize("command", SAID)
def test_a_benchmark_measures_a_run_and_leaves_nothing(command: str, tmp_path: Path) -> None:
    done = start(command, tmp_path, needs_agent="codex" if "codex" in command else None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [said for said in SAID[command] if not re.search(said, done.stdout, re.MULTILINE)] == [], done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("agents.py --rounds 1 --agents claude", 0, "claude is left out, without claude; run scripts/agent-clis.sh"),
        ("evidence.py --rounds 1 --subjects cargo", 0, "cargo is left out: it is not installed"),
        ("evidence.py --subjects small,large", 2, "there is no subject 'large'"),
    ],
)
def test_a_benchmark_says_what_it_leaves_out(command: str, code: int, said: str, tmp_path: Path) -> None:
    done = start(command, tmp_path, path=str(tmp_path))
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize("name", [path.name for path in sorted((ROOT / "bench").glob("*.py"))])
def test_what_a_benchmark_takes_from_the_tests_is_there(name: str) -> None:
    tree = ast.parse((ROOT / "bench" / name).read_text(encoding="utf-8"))
    missing = [f"{module}.{attribute}" for module, attribute in _taken(tree) if attribute not in _defined(module)]
    assert missing == []


def _taken(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each module of the tests that is imported by its name, with each attribute that is used of it."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        named: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                (target,) = node.targets
                match target, node.value:
                    case ast.Tuple(elts=names), ast.Tuple(elts=values):
                        pairs = zip(names, values, strict=True)
                    case _:
                        pairs = iter([(target, node.value)])
                named |= {one.id: _module(value) for one, value in pairs if isinstance(one, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute):
                module = named.get(node.value.id, "") if isinstance(node.value, ast.Name) else _module(node.value)
                yield from [(module, node.attr)] if module else []


def _module(value: ast.expr) -> str:
    """Return which module of the tests an expression imports; empty if none."""
    match value:
        case ast.Call(func=ast.Name(id="import_module" | "tests_module"), args=[ast.Constant(value=str(name))]):
            return name
        case _:
            return ""


def _defined(module: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = (one for node in tree.body if isinstance(node, ast.Assign) for one in node.targets)
    typed = (node.target for node in tree.body if isinstance(node, ast.AnnAssign))
    imported = {one.asname or one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
    return defined | imported | {one.id for one in (*assigned, *typed) if isinstance(one, ast.Name)}


def start(
    command: str, home: Path, *, path: str = os.environ["PATH"], needs_agent: str | None = None
) -> subprocess.CompletedProcess[str]:
    script, *words = command.split()
    if needs_agent is not None:
        cli(needs_agent)
    agents = str(agents_folder() if needs_agent is not None else home)
    env = {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "REDFIRST_TEST_AGENTS": agents}
    argv = [sys.executable, "-P", str(ROOT / "bench" / script), *words]
    return subprocess.run(argv, cwd=home, env=env, capture_output=True, text=True, timeout=600, check=False)
