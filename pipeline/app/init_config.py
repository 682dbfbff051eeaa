"""Says what `redfirst init` writes: for each agent the lines that it takes, with a word on each; and notices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends.discovery import KNOWN, Found, Known, Server, services
from pipeline.agents.backends.extras import install_command
from pipeline.config.agents import Backend
from pipeline.config.providers import BUILTIN
from pipeline.errors import UserError
from pipeline.outcomes import Reason

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

    @property
    def lacks_program(self) -> bool:
        """Return whether the user has to write the program before anything can be asked."""
        return any(line.off and line.text.startswith("argv = ") for line in self.agents)

    @property
    def lacks_model(self) -> bool:
        """Return whether the user has to write a model's name before anything can be asked."""
        return any(line.off and line.text.startswith("model = ") for line in self.agents)


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
    if api is not None and services(environ):
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
    there = services(environ)
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
