"""`redfirst mcp` as an agent's program meets it: the official client, over standard input and output."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kit import REDFIRST, make_project
from workflows.test_runs_of_recipes import LOOSE, RESEARCH, answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from kit import Project
    from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

OWN = (
    "name: {name}\nsteps:\n  - {{id: hang, agent: {agent}, prompt: Wait.{more}}}\noutput: '{{{{steps.hang.output}}}}'\n"
)


@asynccontextmanager
async def served(project: Project) -> AsyncGenerator[Client]:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(
        command=str(REDFIRST), args=["mcp"], env=project.environment(), cwd=str(project.root)
    )
    async with Client(server) as client:
        yield client


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    error = json.loads(getattr(result.content[0], "text", ""))["error"]
    return error["kind"], error["message"]


async def test_check_30_an_agent_runs_polls_and_cancels_and_cannot_approve(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    hang = {**answer("hang", "Late."), "sleep_s": 120}
    project.use_script([*RESEARCH, hang], LOOSE)
    async with served(project) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"list", "run", "status", "result", "cancel"}
        assert [one["name"] for one in (await done(client, "list"))["recipes"]] == ["builtin:research"]
        begun = await done(client, "run", recipe="builtin:research", inputs={"topic": "--json; $(touch x)"})
        assert begun["run"] == "run-research"
        (ended,) = (await done(client, "status", run="run-research", wait_s=45))["runs"]
        assert (ended["live"], ended["status"], {one["checkpoint"] for one in ended["steps"]}) == (
            False,
            "completed",
            {"ready"},
        )
        result = await done(client, "result", run="run-research")
        assert (result["output"], result["cut"]) == ("# Brief\n\nNames are not checked.\n", False)
        assert (await done(client, "result", run="run-research", step="angles"))["payload"] == ["callers", "checks"]
        for kind, why, arguments in (
            ("recipe_not_found", "no recipe that an agent may run", {"recipe": "issue", "inputs": {"issue": "GAL-1"}}),
            ("input_invalid", "'topic' is required", {"recipe": "builtin:research"}),
            ("recipe_invalid", "asks readers alone", {"spec": OWN.format(name="w", agent="make", more="")}),
            (
                "recipe_invalid",
                "chooses its model",
                {"spec": OWN.format(name="m", agent="check", more=", model: x")},
            ),
            ("recipe_invalid", "[unknown_role]", {"spec": OWN.format(name="m", agent="chek", more="")}),
            ("usage", "Either `recipe` or `spec`", {}),
            ("usage", "inputs", {"recipe": "builtin:research", "inputs": {"topic": "x" * 30_000}}),
        ):
            told = await refused(client, "run", **arguments)
            assert (told[0], why in told[1]) == (kind, True), told
        hung = await done(client, "run", spec=OWN.format(name="hung", agent="explore", more=""))
        assert (hung["run"], hung["live"], hung["status"]) == ("run-hung", True, "running")
        assert (await refused(client, "result", run="run-hung"))[0] == "locked"
    assert "run-hung" in project.redfirst("runs").stdout, "the server has ended, and the run goes on"
    assert json.loads((project.run_folder("run-hung") / "run.json").read_text())["trigger"] == "mcp"
    async with served(project) as client:
        listed = (await done(client, "status"))["runs"]
        assert {(one["run"], one["live"]) for one in listed} == {("run-hung", True), ("run-research", False)}
        stopped = await done(client, "cancel", run="run-hung")
        assert (stopped["live"], stopped["status"]) == (False, "paused")
        assert "no agent ends it" in (await refused(client, "cancel", run=mine(project)))[1]
    assert not project.git("status", "--porcelain")


def mine(project: Project) -> str:
    """Run a recipe as a person does; return the name of the run."""
    place = project.home / "mine.yaml"
    place.write_text(OWN.format(name="mine", agent="explore", more=""), encoding="utf-8")
    project.use_script([answer("hang", "Done.")], LOOSE)
    assert project.redfirst("run", str(place)).returncode == 0
    return "run-mine"


async def test_what_the_user_does_not_say_widens_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([], LOOSE + '[mcp]\nallow = ["triage", "nothing"]\n')
    async with served(project) as client:
        triage, nothing = (await done(client, "list"))["recipes"]
        assert (triage["problem"], triage["asks"]) == (None, ["explore"])
        assert 'no recipe "nothing"' in nothing["problem"]
        assert (await refused(client, "run", recipe="builtin:research"))[0] == "recipe_not_found"
    project.env["REDFIRST_DEPTH"] = "1"
    nested = project.redfirst("mcp")
    assert (nested.returncode, "inside one of its own agents" in nested.stderr) == (2, True)
    project.env = {"REDFIRST_MCP__ALLOW": '["issue"]'}
    assert "counts in your own configuration alone" in project.redfirst("mcp").stderr
    project.env = {}
    project.write({"redfirst.toml": '[mcp]\nallow = ["issue"]\n'})
    told = project.redfirst("mcp")
    assert (told.returncode, "redfirst.toml:2: mcp.allow counts in your own" in told.stderr) == (2, True)
