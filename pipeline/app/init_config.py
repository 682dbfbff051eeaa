"""Says what `redfirst init` writes: for each agent the lines that it takes, with a word on each; and notices.

Which agents are here it finds for `doctor`, too, and for a run that has none configured.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends import discovery
from pipeline.agents.backends.discovery import KNOWN, Found, Known, Server
from pipeline.agents.backends.extras import install_command
from pipeline.app.documents import AgentLine, LoginLine
from pipeline.characters import visible
from pipeline.config.agents import Backend
from pipeline.config.providers import BUILTIN
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Box, BoxError, Command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


HUMAN: Final = "human"
COMMAND: Final = "command"
API: Final = "api"
_COLUMN: Final = 34
_TIERS: Final = "small, medium, large are its haiku, sonnet, opus; or a model's own name"
_NAMED: Final = "needed: a model's name, as the service has it"
_LISTED: Final[Mapping[str, str]] = {"opencode": f"{_NAMED}; opencode models PROVIDER lists them"}
_OWN: Final[Mapping[str, str]] = {
    "claude": "anthropic",
    "claude-acp": "anthropic",
    "codex": "openai",
    "codex-acp": "openai",
    "gemini": "google",
}
"""The service that each agent asks unless it is told another."""
EMAIL: Final = "email"
_FOR_PEOPLE: Final = ["run.parked", "run.finished", "landing.refused"]
_PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "desktop": {"command": ["notify-send", "--app-name=redfirst", "--", "{project}: {subject}", "{text}"]},
    "slack": {"url_env": "SLACK_WEBHOOK_URL", "form": "slack"},
}
NOTICES: Final = (*_PRESETS, EMAIL)
"""What `init --notify` takes."""


@dataclass(frozen=True)
class Line:
    """One line of the file; `off` leaves it to the user, as a comment."""

    text: str
    says: str = ""
    off: bool = False

    def __str__(self) -> str:
        text = f"# {self.text}" if self.off else self.text
        return f"{text:{_COLUMN}}  # {self.says}" if self.says else text


@dataclass(frozen=True)
class Start:
    """An agent to start with.

    Args:
        name: What `--agent` calls it.
        title: What it is called in sentences.
        agents: The lines of `[agents]`.
        more: Tables beside it.
        install: What to type first, None where everything is there.
    """

    name: str
    title: str
    agents: tuple[Line, ...]
    more: tuple[Line, ...] = ()
    install: str | None = None

    def lacks(self, key: str) -> bool:
        """Return whether the user has to write the value of a key before anything can be asked."""
        return any(line.off and line.text.startswith(f"{key} = ") for line in self.agents)


def starts(
    agents: Sequence[Found], servers: Sequence[Server], api: str | None, environ: Mapping[str, str], model: str | None
) -> tuple[Start, ...]:
    """Return what can be started with here, the best first; a person is always there, and last.

    Args:
        agents: The agents that are installed.
        servers: The model servers that answer on this machine.
        api: The version of the library behind the backend `api`, if it is installed.
        environ: The user's environment: which credentials are set.
        model: The model that the user names, if any.
    """
    found = [start_of(each.known, each, environ, model) for each in agents]
    able = next((each.known.name for each in agents if each.known.name == "opencode"), None)
    found += [_local(server, by=able if api is None else None, model=model, api=api) for server in servers]
    if api is not None and discovery.services(environ):
        found.append(_api(api, environ, model))
    return (*found, _PERSON)


def start_called(
    name: str,
    known: Iterable[Start],
    environ: Mapping[str, str],
    model: str | None,
    argv: Sequence[str] = (),
) -> Start | None:
    """Return the start of that name, also of an agent that is not installed; None if there is none of that name.

    Args:
        name: What the user calls it.
        known: What is here.
        environ: The user's environment.
        model: The model that the user names, if any.
        argv: The program that the user names, for `command`.
    """
    if name == COMMAND:
        return _command(argv)
    there = next((start for start in known if start.name == name), None)
    if there is not None:
        return there
    if name == API:
        return _api(None, environ, model)
    if name == "ollama":
        return _local(Server("ollama", "Ollama", "", ()), by=None, model=model, api=None)
    return next((start_of(each, None, environ, model) for each in KNOWN if each.name == name), None)


def names() -> tuple[str, ...]:
    """Return everything that `--agent` takes anywhere; a llama.cpp server only where one answers."""
    return (*(known.name for known in KNOWN), "ollama", "llamacpp", API, COMMAND, HUMAN)


def start_of(known: Known, found: Found | None, environ: Mapping[str, str], model: str | None) -> Start:
    """Return how an agent is started with."""
    lines = [Line(f'backend = "{known.backend}"', f"{known.title}, in the box")]
    if known.profile is not None:
        lines.append(Line(f'profile = "{known.profile}"', "which agent of the Agent Client Protocol"))
    own = _OWN.get(known.name)
    lines += _service(environ) if own is None else _access(known, found, own, environ)
    tiers = known.backend is Backend.CLAUDE or known.name == "claude-acp"
    lines.append(_model(model or ("medium" if tiers else None), _TIERS if tiers else _LISTED.get(known.name, _NAMED)))
    title = known.title if found is None or found.version is None else f"{known.title} {found.version}"
    return Start(known.name, title, tuple(lines), install=known.program.install if found is None else None)


def toml(start: Start) -> str:
    """Return the whole file."""
    lines = (
        f"# How redfirst works in this repository, begun for {start.title}. Every key and value: redfirst config show",
        "",
        "[agents]  # what every role inherits; [agents.make], [agents.check] ... say what is different for one role",
        *map(str, start.agents),
        *map(str, start.more),
        *([] if start.name in {HUMAN, COMMAND} else _examples(start)),
    )
    return "\n".join(lines) + "\n"


def _examples(start: Start) -> list[str]:
    larger = "large" if any(line.says == _TIERS for line in start.agents) else "NAME"
    return [
        "",
        "# [agents.check]",
        str(Line(f'model = "{larger}"', "for example: a larger model where judgement counts", off=True)),
        "",
        "# [budget]",
        str(Line("cost_usd = 5.0", "one run; it is parked when this is used up, and can go on with more", off=True)),
    ]


def _access(known: Known, found: Found | None, own: str, environ: Mapping[str, str]) -> list[Line]:
    """Return how the agent gets to its model: by the user's key through the gateway, else by its own login."""
    variable = BUILTIN[own].credential_env
    if variable is not None and environ.get(variable):
        return [Line(f'provider = "{own}"', f"{variable} stays outside the box: the gateway adds it")]
    if found is not None and found.logins:
        return [
            Line('network = "open"', f"with {known.title}'s own login; or set {variable} and leave both lines out"),
            Line("login = true", "its login file is shown in the box, read-only"),
        ]
    return [
        Line(f'provider = "{own}"', f"set {variable}, which stays outside the box; or log in with {known.title} first")
    ]


def _service(environ: Mapping[str, str]) -> list[Line]:
    there = discovery.services(environ)
    if there:
        variable = BUILTIN[there[0]].credential_env
        return [Line(f'provider = "{there[0]}"', f"{variable} stays outside the box: the gateway adds it")]
    return [Line('provider = "openai"', f"needed: one of {', '.join(BUILTIN)}, or your own [providers.NAME]", off=True)]


def _model(name: str | None, says: str) -> Line:
    return (
        Line('model = "NAME"', f"needed: {says.removeprefix('needed: ')}", off=True)
        if name is None
        else Line(f'model = "{name}"', says)
    )


def _local(server: Server, *, by: str | None, model: str | None, api: str | None) -> Start:
    """Return how a model server of this machine is started with: through opencode, or the loop of our own."""
    backend = [Line('backend = "acp"', "opencode, in the box"), Line('profile = "opencode"')]
    if by is None:
        backend = [Line('backend = "api"', "redfirst's own tool loop, no agent needed")]
    chosen = model or next(iter(server.models), None)
    others = f"the server has: {', '.join(server.models)}" if server.models else _NAMED
    more: tuple[Line, ...] = ()
    if server.name not in BUILTIN:
        url = Line(f'url = "{server.url}"', "a server of this machine needs no credential")
        more = (Line(""), Line(f"[providers.{server.name}]"), url)
    return Start(
        server.name,
        server.title,
        (*backend, Line(f'provider = "{server.name}"', f"{server.title} on this machine"), _model(chosen, others)),
        more,
        install=None if by is not None or api is not None else install_command("api"),
    )


def _api(version: str | None, environ: Mapping[str, str], model: str | None) -> Start:
    return Start(
        API,
        "the model API",
        (
            Line('backend = "api"', "redfirst's own tool loop, no agent needed"),
            *_service(environ),
            _model(model, _NAMED),
        ),
        install=None if version is not None else install_command("api"),
    )


_PERSON: Final = Start(
    HUMAN,
    "a person",
    (Line('backend = "human"', "you do the work at a desk, and hand it in: redfirst hand-in"),),
    (Line(""), Line("[agents.simplify]"), Line('backend = "off"', "its advice decides nothing")),
)


def _command(argv: Sequence[str]) -> Start:
    """Return how any program is started with; JSON's strings are TOML's."""
    says = "the program and its arguments; a name on PATH, or an absolute path"
    program = Line(f"argv = {json.dumps(list(argv), ensure_ascii=False)}", says)
    if not argv:
        program = Line('argv = ["PROGRAM", "ARGUMENT"]', f"needed: {says}", off=True)
    beside = [word for word in argv[1:] if Path(word).is_absolute() and Path(word).exists()]
    lines = (
        Line('backend = "command"', "a program of yours: one JSON document in, one report out"),
        program,
        Line(
            f"read = {json.dumps(beside, ensure_ascii=False)}",
            "what of the host is shown to it, read-only; add what else it needs",
            off=not beside,
        ),
        Line('network = "model"', "to reach a model through the gateway; then provider, too", off=True),
    )
    return Start(COMMAND, "a program", lines)


def preset(name: str, argv: Sequence[str]) -> dict[str, object]:
    """Return what `[notify.NAME]` holds of a preset; *argv* is the command that sends an e-mail.

    Raises:
        UserError: there is no such preset, or it lacks the command.
    """
    if name not in NOTICES:
        raise UserError(f"--notify {name} is no preset. Accepted: {', '.join(NOTICES)}.", Reason.USAGE)
    if (name == EMAIL) != bool(argv):
        raise UserError(
            "--notify email needs your command as --argv. The other presets take none.",
            Reason.USAGE,
            actions=("redfirst init --notify email --argv \"mail -s '{subject}: {text}' ada@example.org\"",),
        )
    return {"types": _FOR_PEOPLE, **({"command": list(argv)} if argv else _PRESETS[name])}


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
    agents = discovery.find_agents(environ)
    if thorough:
        agents = discovery.with_versions(agents, environ.get("PATH", os.defpath))
    servers, api = discovery.find_servers() if thorough else (), discovery.api_version()
    lines = {start.name: start for start in starts(agents, servers, api, environ, None)}
    found = [
        AgentLine.from_fields(
            each,
            each.known,
            path=str(each.path),
            tested=each.known.program.tested,
            logins=tuple(LoginLine(path=str(login.path), private=login.private) for login in each.logins),
            box=await _tried(each, box) if thorough else None,
            config=_config(lines[each.known.name]),
        )
        for each in agents
    ]
    found += [AgentLine.from_fields(one, path=one.url, config=_config(lines[one.name])) for one in servers]
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
    agents = discovery.find_agents(environ)
    if ask_versions:
        agents = discovery.with_versions(agents, environ.get("PATH", os.defpath), _HINT_S)
    mine = [each for each in agents if each.known.name not in {"claude-acp", "codex-acp"}]
    if mine:
        said = "".join(
            f" {each.known.title}{f' {each.version}' if each.version else ''} is installed:"
            f" redfirst init --agent {each.known.name}."
            for each in mine
        )
    elif discovery.api_version() is not None and discovery.services(environ):
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
