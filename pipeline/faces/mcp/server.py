"""Serves the tools over standard input and output with the official SDK; each call is answered in time, errors too."""

from __future__ import annotations

import json
import sys
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from pipeline import VERSION
from pipeline.errors import UserError
from pipeline.faces.mcp.tools import TOOLS, called
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from mcp import types

    from pipeline.app.agent_runs import AgentRuns

ANSWERED_S: Final = 50
"""The longest that a call may take: clients give up after a minute."""
_SPARE_S: Final = 2
_SAYS: Final = """\
Recipes are workflows in files, whose steps ask agents within limits. `list` says which may be run, `run` \
begins one and returns its name, `status` with `wait_s` waits for its end, `result` returns what it gave."""


async def serve(runs: AgentRuns) -> None:
    """Answer the calls of a client until it closes the connection."""
    from mcp import types  # noqa: PLC0415  (an extra)
    from mcp.server.lowlevel import Server  # noqa: PLC0415  (the same)
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  (the same)

    beginning = anyio.Lock()

    async def list_tools(_ctx: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.description,
                    input_schema=tool.takes.model_json_schema(),
                    output_schema=tool.gives.model_json_schema(mode="serialization"),
                    annotations=types.ToolAnnotations(read_only_hint=tool.only_reads, open_world_hint=False),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(called, runs, params.name, params.arguments or {})
        try:
            with anyio.fail_after(ANSWERED_S - _SPARE_S):
                if params.name == "run":  # one after the other, so that what is counted is there
                    async with beginning:
                        answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
                else:
                    answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            return _failed(UserError(f"{params.name} took too long; ask `status` how it stands.", Reason.LOCKED).facts)
        except UserError as error:
            return _failed(error.facts)
        except Exception as error:  # noqa: BLE001  (a bug of ours ends this call, and not the others)
            traceback.print_exc(file=sys.stderr)
            return _failed({"kind": "internal", "message": f"This is a bug in redfirst: {error!r}"})
        value = answer.model_dump(mode="json")
        return types.CallToolResult(content=[_text(value)], structured_content=value)

    def _failed(facts: dict[str, object]) -> types.CallToolResult:
        return types.CallToolResult(content=[_text({"error": facts})], is_error=True)

    def _text(value: object) -> types.TextContent:
        return types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False, default=str))

    server = Server("redfirst", version=VERSION, instructions=_SAYS, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
