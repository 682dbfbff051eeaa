"""What is started on the host has a process group of its own: the terminal's signal is for the driver."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IN_A_BOX = (
    "pipeline/agents/backends/script_player.py",
    "pipeline/sandbox/boxes/supervisor.py",
    "pipeline/testing/languages/javascript/runner.py",
    "pipeline/testing/languages/runners/",
    "pipeline/testing/languages/rust/runner.py",
)
"""Programs of ours that run in a box, which is a session of its own."""
FOR_THE_TERMINAL = ("pipeline/faces/cli/desk.py", "pipeline/faces/cli/editor.py")
"""The user's shell and editor, which have the terminal while they run."""
STARTS = {"run", "Popen", "call", "check_call", "check_output", "open_process", "run_process", "posix_spawn"}
MODULES = {"subprocess", "anyio", "os"}
GROUPS = {"process_group", "start_new_session", "setpgroup"}


def started_in_the_drivers_group(text: str) -> list[int]:
    """Return the lines that start a process which the terminal's signal would reach."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in STARTS
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in MODULES
        and (call.func.value.id, call.func.attr) != ("anyio", "run")
        and not GROUPS & {keyword.arg for keyword in call.keywords}
    ]


@pytest.mark.slow
def test_every_process_on_the_host_has_a_group_of_its_own() -> None:
    found = {
        f"{name}:{line}"
        for path in (ROOT / "pipeline").rglob("*.py")
        if not (name := path.relative_to(ROOT).as_posix()).startswith((*IN_A_BOX, *FOR_THE_TERMINAL))
        for line in started_in_the_drivers_group(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize("text", ["subprocess.run(['x'])", "await_ = anyio.open_process(['x'])"])
def test_one_without_is_found(text: str) -> None:
    assert started_in_the_drivers_group(text) == [1]
