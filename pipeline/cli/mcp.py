"""`redfirst mcp`: recipes and runs as tools for agents of other programs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import UserError
from pipeline.outcomes import Reason


def mcp() -> None:
    """Serve recipes to an agent of another program, by the Model Context Protocol.

    The agent's program starts it in the repository and speaks to it (docs/how-to/mcp.md). It lists the recipes that
    you allow, runs them, and says how they stand. It approves nothing.

    Examples:
      redfirst mcp

      claude mcp add redfirst -- redfirst mcp
    """
    import anyio  # noqa: PLC0415  (only here)

    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.service.agent_runs import AgentRuns  # noqa: PLC0415  (the same)

    runs = AgentRuns(Repository.find(Path.cwd()), dict(os.environ))
    runs.allowed()  # a broken configuration is told now
    if find_spec("mcp") is None:
        from pipeline.backends.extras import install_command  # noqa: PLC0415  (only where it is missing)

        command = install_command("mcp")
        raise UserError("The tools need the extra `mcp`. Install it:", Reason.USAGE, actions=(command,))
    if sys.stdin.isatty():
        raise UserError(
            "An agent's program starts this, and speaks to it. Tell yours, for example: "
            "claude mcp add redfirst -- redfirst mcp",
            Reason.USAGE,
        )
    from pipeline.mcp.server import serve  # noqa: PLC0415  (the same)

    anyio.run(serve, runs)
