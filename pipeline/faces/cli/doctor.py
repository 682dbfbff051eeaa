"""`redfirst doctor`: can a run be started here, and if not, what to do (contract 1)."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.characters import visible
from pipeline.faces.cli.arguments import AsDocument
from pipeline.faces.cli.status_line import Beating
from pipeline.faces.cli.text import print_text, terminal_width, wrapped
from pipeline.terminal import Colour, paint, print_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.app.documents import AgentLine, Check, DoctorDocument


_BLOCKED = 2
_ROLE: Final = "agent-"


_COLOURS: Final[Mapping[str, Colour]] = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    agents: Annotated[
        bool, typer.Option("--agents", help="Also start the agents that are installed: version, box, configuration.")
    ] = False,
    tests: Annotated[
        bool,
        typer.Option("--tests", help="Also run all tests of HEAD in the box, and what fails there outside of it."),
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Check whether a run can begin here: git, the sandbox, the tests, the configuration, the agents.

    Nothing is changed, and the network is not used. The tests of HEAD are collected in the box, for a minute at most.
    Nothing of a repository that asks for trust is started. The exit code is 2 when a run could not begin.

    With --tests all tests run in the box, with the setup and the time of a run. Those that fail there run once more on
    this machine, in a copy, with your variables and network. That is code of the repository: the flag is your word for
    it. A test that fails only in the box is named, with its first error.

    Examples:
      redfirst doctor

      redfirst doctor --agents

      redfirst doctor --tests
    """
    import anyio

    from pipeline.app.doctor import checkup

    check = partial(checkup, agents=agents)
    if not tests:
        document = anyio.run(check, Path.cwd(), os.environ)
    else:
        beating = Beating("doctor")
        document = anyio.run(beating.during, check, Path.cwd(), os.environ, beating)
    if as_document:
        print_document(document)
    else:
        print_text(checkup_text(document, agents=agents, width=terminal_width(sys.stdout)))
    if document.proceed == "block":
        raise typer.Exit(_BLOCKED)


def agent_text(agents: Sequence[AgentLine], *, thorough: bool) -> Iterator[str]:
    """Yield the same for a person, in lines."""
    for each in agents:
        yield f"  {visible(' '.join((each.title, _version_of(each))).strip())}: {visible(each.path or '-')}"
        yield from (f"      {visible(said)}" for said in _access(each))
        if thorough:
            yield from [f"      {each.box}"] if each.box else []
            yield from [f"      models: {', '.join(each.models)}"] if each.models else []
            yield from (f"        {visible(line)}" for line in each.config)


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


def checkup_text(document: DoctorDocument, *, agents: bool = False, width: int | None = None) -> str:
    """Return the same for a person; the advice stands below what it is about."""
    lines = [f"redfirst {document.version}", *check_lines(_told_once(document.checks), width)]
    if document.agents:
        more = "" if agents else " (versions, the box, how each is configured: redfirst doctor --agents)"
        lines += [f"Agents that are installed here{more}:", *agent_text(document.agents, thorough=agents)]
    said = {
        "true": "A run can be started.",
        "judge": "A run can be started. The warnings say how, or what to mend first.",
        "block": "A run cannot be started before what failed is mended.",
    }
    return "\n".join([*lines, said[document.proceed]])


def check_lines(told: Sequence[tuple[str, Check]], width: int | None) -> Iterator[str]:
    """Yield checks with their names in lines, their advice below each."""
    column = max(len(name) for name, _ in told)
    hang = column + 10  # below the messages
    for name, check in told:
        status = paint(f"{check.status:4}", _COLOURS[check.status])
        yield from wrapped(f"  {status}  {name:{column}}  {visible(check.message)}", width, hang=hang)
        if check.advice:
            yield from wrapped(f"{'':{hang}}-> {visible(check.advice)}", width)


def _told_once(checks: Sequence[Check]) -> list[tuple[str, Check]]:
    """Return the checks that are told with their names: roles that are played alike share a line."""
    alike: dict[tuple[str, str], list[Check]] = {}
    for check in checks:
        if check.id.startswith(_ROLE):
            alike.setdefault((check.status, check.same_as or check.message), []).append(check)
    for check in checks:  # a failure that several share is told by the first of them
        for other in alike.pop((check.status, check.id), ()):
            alike[check.status, check.message].append(other)
    told: list[tuple[str, Check]] = []
    for check in checks:
        if not check.id.startswith(_ROLE):
            told += [(check.id, check)] if check.same_as is None else []
            continue
        same = alike.get((check.status, check.message), ())
        if same and same[0] is check:
            roles = ", ".join(one.id.removeprefix(_ROLE) for one in same)
            told.append(("agents", check.model_copy(update={"message": f"{roles}: {check.message}"})))
    return told
