"""Finds the agents that are installed here, for `doctor` and for a run that has none configured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends.discovery import Found, api_version, find_agents, find_servers, services, with_versions
from pipeline.app.doctor_document import AgentLine, LoginLine
from pipeline.app.init_config import Start, starts
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Box, BoxError, Command

if TYPE_CHECKING:
    from collections.abc import Mapping


_START_S: Final = 60.0
_HINT_S: Final = 3.0
_LAST: Final = 200
_NO_FOLDER: Final = Path("/tmp")  # noqa: S108  (of the box, which makes its own)


async def agent_lines(environ: Mapping[str, str], box: Box | None, *, thorough: bool) -> tuple[AgentLine, ...]:
    """Return what is here.

    Args:
        environ: The user's environment.
        box: Where the agents are started to see whether that works; None where no box works here.
        thorough: Also ask programs for their version, start them in the box, and look for servers on this machine.
    """
    agents = find_agents(environ)
    if thorough:
        agents = with_versions(agents, environ.get("PATH", os.defpath))
    servers, api = find_servers() if thorough else (), api_version()
    lines = {start.name: start for start in starts(agents, servers, api, environ, None)}
    found = [
        AgentLine(
            name=each.known.name,
            title=each.known.title,
            path=str(each.path),
            version=each.version,
            tested=each.known.program.tested,
            logins=tuple(LoginLine(path=str(login.path), private=login.private) for login in each.logins),
            variables=each.variables,
            box=await _tried(each, box) if thorough else None,
            config=_config(lines[each.known.name]),
        )
        for each in agents
    ]
    found += [
        AgentLine(
            name=server.name,
            title=server.title,
            path=server.url,
            models=server.models,
            config=_config(lines[server.name]),
        )
        for server in servers
    ]
    if "api" in lines:
        found.append(AgentLine(name="api", title="model API", version=api, config=_config(lines["api"])))
    return tuple(found)


def hinted(error: UserError, environ: Mapping[str, str], *, ask_versions: bool = True) -> UserError:
    """Return the error of a run without an agent with what is installed here, and how to use it.

    Args:
        error: What is said of the configuration.
        environ: The user's environment.
        ask_versions: Whether the agents that are installed are started for their versions.
    """
    agents = find_agents(environ)
    if ask_versions:
        agents = with_versions(agents, environ.get("PATH", os.defpath), _HINT_S)
    mine = [each for each in agents if each.known.name not in {"claude-acp", "codex-acp"}]
    if mine:
        said = "".join(
            f" {each.known.title}{f' {each.version}' if each.version else ''} is installed:"
            f" redfirst init --agent {each.known.name}."
            for each in mine
        )
    elif api_version() is not None and services(environ):
        said = " A key for a model service is set: redfirst init --agent api."
    else:
        said = (
            " No agent that redfirst knows is installed here. Install one (npm install -g @anthropic-ai/claude-code),"
            " then: redfirst init."
        )
    return UserError(
        error.message + said,
        Reason.CONFIG,
        path=error.path,
        pointer=error.pointer,
        details={**error.details, "installed": [each.known.name for each in mine]},
        actions=(*(f"redfirst init --agent {each.known.name}" for each in mine[:1]), *error.actions),
    )


def _config(start: Start) -> tuple[str, ...]:
    return tuple(str(line) for line in ("[agents]", *start.agents, *start.more) if str(line))


async def _tried(found: Found, box: Box | None) -> str:
    """Say whether the program starts in the box; a whole turn needs a model, and is not tried."""
    if box is None:
        return "not tried: no box works here"
    command = Command(
        argv=found.program.argv(found.known.asked),
        cwd=_NO_FOLDER if box.maps_paths else Path.cwd(),
        mounts=found.program.mounts,
        timeout_s=_START_S,
    )
    try:
        ended = await box.run(command)
    except BoxError as error:
        return f"does not start in the box: {visible(str(error)[-_LAST:])}"
    if ended.exit_code == 0:
        where = f"starts in the box ({box.name})" if box.name != "none" else "starts, without any box"
        return f"{where}; a whole turn: redfirst agents try"
    last = (ended.stderr + ended.stdout).decode(errors="replace").strip().splitlines()[-1:]
    why = "it did not end" if ended.timed_out else "".join(last)[-_LAST:] or f"exit code {ended.exit_code}"
    return f"does not start in the box: {visible(why)}"
