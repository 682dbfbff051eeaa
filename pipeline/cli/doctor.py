"""`redfirst doctor`: can a run be started here, and if not, what to do (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocument
from pipeline.cli.text import print_text
from pipeline.policy.characters import visible
from pipeline.terminal import paint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.service.doctor_document import AgentLine, DoctorDocument
    from pipeline.terminal import Colour


_BLOCKED = 2


_COLOURS: Final[Mapping[str, Colour]] = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    agents: Annotated[
        bool, typer.Option("--agents", help="Also start the agents that are installed: version, box, configuration.")
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Check git, the repository, the sandbox, the tests, configuration and agents; exit code 2 when a run is blocked.

    The tests of HEAD are collected as a run does it, in the box, for a minute at most, and only where nothing needs
    trust. Nothing is changed and the network is not used; with --agents, model servers are looked for on this machine.
    """
    import os  # noqa: PLC0415  (imports of the check-up are not on the path of --help)
    from functools import partial  # noqa: PLC0415  (the same)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.service.doctor import checkup  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = anyio.run(partial(checkup, agents=agents), Path.cwd(), os.environ)
    if as_document:
        print_document(document)
    else:
        print_text(checkup_text(document, agents=agents))
    if document.proceed == "block":
        raise typer.Exit(_BLOCKED)


def agent_text(agents: Sequence[AgentLine], *, thorough: bool) -> list[str]:
    """Return the same for a person."""
    lines: list[str] = []
    for each in agents:
        lines.append(f"  {visible(' '.join((each.title, _version_of(each))).strip())}: {visible(each.path or '-')}")
        lines += [f"      {visible(said)}" for said in _access(each)]
        if thorough:
            lines += [f"      {each.box}"] if each.box else []
            lines += [f"      models: {', '.join(each.models)}"] if each.models else []
            lines += [f"        {visible(line)}" for line in each.config]
    return lines


def _version_of(each: AgentLine) -> str:
    if each.version is None:
        return ""
    if each.tested is None or each.version == each.tested:
        return each.version
    return f"{each.version} (tested with {each.tested})"


def _access(each: AgentLine) -> list[str]:
    if each.tested is None:
        return []
    said = [f"{name} is set" for name in each.variables]
    said += [
        f"login file {login.path}{'' if login.private else ', which others can read: chmod 600'}"
        for login in each.logins
    ]
    return ["; ".join(said) if said else "not logged in, as far as can be seen without reading secrets"]


def checkup_text(document: DoctorDocument, *, agents: bool = False) -> str:
    """Return the same for a person; the advice stands below what it is about."""
    width = max(len(check.id) for check in document.checks)
    lines = [f"redfirst {document.version}"]
    for check in document.checks:
        lines.append(
            f"  {paint(f'{check.status:4}', _COLOURS[check.status])}  {check.id:{width}}  {visible(check.message)}"
        )
        if check.advice:
            lines.append(f"  {'':4}  {'':{width}}  -> {visible(check.advice)}")
    lines += _agents_text(document, thorough=agents)
    said = {
        "true": "A run can be started.",
        "judge": "A run can be started; look at the warnings first.",
        "block": "A run cannot be started before what failed is mended.",
    }
    return "\n".join([*lines, said[document.proceed]])


def _agents_text(document: DoctorDocument, *, thorough: bool) -> list[str]:
    if not document.agents:
        if not any(check.id.startswith("agent-") and check.status == "fail" for check in document.checks):
            return []  # whoever plays the roles needs no product
        return ["No agent that redfirst knows is installed here; what to do: redfirst init"]
    more = "" if thorough else " (versions, the box, how each is configured: redfirst doctor --agents)"
    return [f"Agents that are installed here{more}:", *agent_text(document.agents, thorough=thorough)]
