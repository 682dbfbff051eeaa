"""Finds the agents on this machine: looks them up by name and asks for their version, never for a secret.

A login is known by its file being there, a credential by its variable being set: neither is read. What is started is
started in a home folder of its own, with a time limit, and fetches nothing.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import json
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.agents.backends.acp_profiles import PRODUCTS
from pipeline.agents.backends.claude import CLAUDE
from pipeline.agents.backends.codex import CODEX
from pipeline.config.agents import Backend, Profile
from pipeline.config.providers import BUILTIN
from pipeline.config.user_folders import home
from pipeline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.agents.backends.products import Bundle, Native
    from pipeline.programs import Program

VERSION_S: Final = 10.0
"""The seconds that a program may take to print its version."""
_SERVER_S: Final = 2.0
_SERVER_BYTES: Final = 1_000_000
_MODELS: Final = 50
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")
_NOWHERE: Final = "http://127.0.0.1:9"
_WITHOUT_NETWORK: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE),
    **dict.fromkeys(("DISABLE_AUTOUPDATER", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH"), "1"),
    **dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "GEMINI_CLI_NO_RELAUNCH", "NO_COLOR"), "1"),
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


@dataclass(frozen=True)
class Known:
    """An agent that redfirst can run.

    Args:
        name: What `redfirst init --agent` calls it.
        title: What its makers call it.
        backend: How it is run.
        profile: Which agent of `acp`.
        program: How its program is found, and which version was tested.
        logins: Where its logins are, below the home folder; a variable in front names another folder.
        variables: What else it takes for a login.
        asked: The argument that it answers without a model or a login.
    """

    name: str
    title: str
    backend: Backend
    profile: Profile | None
    program: Native | Bundle
    logins: tuple[str, ...]
    variables: tuple[str, ...]
    asked: str = "--version"


_ANTHROPIC: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_OPENAI: Final = ("OPENAI_API_KEY", "CODEX_API_KEY")
_ANY: Final = tuple(table.credential_env for table in BUILTIN.values() if table.credential_env is not None)
_CLAUDE_LOGIN: Final = (".claude/.credentials.json",)
_CODEX_LOGIN: Final = ("$CODEX_HOME:.codex/auth.json",)
_GEMINI_LOGIN: Final = (".gemini/oauth_creds.json", ".gemini/gemini-credentials.json")
_OPENCODE_LOGIN: Final = ("$XDG_DATA_HOME:.local/share/opencode/auth.json",)


def _acp(name: str, title: str, profile: Profile, logins: tuple[str, ...], variables: tuple[str, ...]) -> Known:
    return Known(name, title, Backend.ACP, profile, PRODUCTS[profile].program, logins, variables)


KNOWN: Final = (
    Known("claude", "Claude Code", Backend.CLAUDE, None, CLAUDE, _CLAUDE_LOGIN, _ANTHROPIC),
    Known("codex", "Codex", Backend.CODEX, None, CODEX, _CODEX_LOGIN, _OPENAI),
    _acp("opencode", "opencode", Profile.OPENCODE, _OPENCODE_LOGIN, _ANY),
    _acp("gemini", "Gemini CLI", Profile.GEMINI, _GEMINI_LOGIN, ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    _acp("claude-acp", "Claude Code over ACP", Profile.CLAUDE, _CLAUDE_LOGIN, _ANTHROPIC),
    replace(_acp("codex-acp", "Codex over ACP", Profile.CODEX, _CODEX_LOGIN, _OPENAI), asked="--help"),
)
"""The agents that have a program of their own, in the order of preference."""


@dataclass(frozen=True)
class Login:
    """A file with a login. `private`: only its owner can read it."""

    path: Path
    private: bool


@dataclass(frozen=True)
class Found:
    """An installed agent.

    Args:
        known: What it is.
        program: Where it is.
        logins: The login files that are there.
        variables: The names of its variables that are set.
        version: What it says it is, None if it was not asked or did not say.
    """

    known: Known
    program: Program
    logins: tuple[Login, ...] = ()
    variables: tuple[str, ...] = ()
    version: str | None = None

    @property
    def path(self) -> Path:
        """Return the path of the program, or of the script that Node runs."""
        return Path(self.program.prefix[-1]) if self.program.prefix else self.program.path


@dataclass(frozen=True)
class Server:
    """A model server on this machine: its name as a provider, its URL, its models."""

    name: str
    title: str
    url: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The usual port of a model server, and the path that lists its models."""

    name: str
    title: str
    port: int
    path: str


PLACES: Final = (
    Place("ollama", "Ollama", 11434, "/api/tags"),
    Place("llamacpp", "llama.cpp", 8080, "/v1/models"),
)


def find_agents(environ: Mapping[str, str]) -> tuple[Found, ...]:
    """Return the installed agents; no program is started."""
    return tuple(found for known in KNOWN if (found := _found(known, environ)) is not None)


def with_versions(agents: Sequence[Found], search_path: str, timeout_s: float = VERSION_S) -> tuple[Found, ...]:
    """Return the agents with their versions, which all programs are asked for at once."""
    with ThreadPoolExecutor(max_workers=max(len(agents), 1)) as pool:
        versions = pool.map(partial(_version, search_path, timeout_s), agents)
        return tuple(replace(found, version=version) for found, version in zip(agents, versions, strict=True))


def find_servers(places: Sequence[Place] = PLACES) -> tuple[Server, ...]:
    """Return the model servers that answer on this machine."""
    return tuple(server for place in places if (server := _server(place)) is not None)


def api_version() -> str | None:
    """Return the version of the library behind the backend `api`, None if the extra is not installed."""
    try:
        return importlib.metadata.version("pydantic-ai-slim")
    except importlib.metadata.PackageNotFoundError:
        return None


def services(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the built-in model services whose credential is set."""
    return tuple(name for name, table in BUILTIN.items() if table.credential_env and environ.get(table.credential_env))


def _found(known: Known, environ: Mapping[str, str]) -> Found | None:
    try:
        program = known.program.program((), environ.get("PATH", os.defpath))
    except UserError:
        return None
    logins = tuple(_logins(known, environ))
    return Found(known, program, logins, tuple(name for name in known.variables if environ.get(name)))


def _logins(known: Known, environ: Mapping[str, str]) -> Iterator[Login]:
    for place in known.logins:
        path = _place(place, environ)
        with contextlib.suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield Login(path, private=not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _place(place: str, environ: Mapping[str, str]) -> Path:
    variable, _, below = place.rpartition(":")
    named = environ.get(variable.removeprefix("$"), "") if variable else ""
    if not named:
        return home(environ) / below
    # What the variable names stands for the folders before the product's own.
    return Path(named) / (Path(below).name if variable == "$CODEX_HOME" else Path(*Path(below).parts[2:]))


def _version(search_path: str, timeout_s: float, found: Found) -> str | None:
    said = _said(found, search_path, timeout_s) if found.known.asked == "--version" else ""
    match = _VERSION.search(said)
    return match[0] if match else _packaged(found.path.resolve())


def _said(found: Found, search_path: str, timeout_s: float) -> str:
    with tempfile.TemporaryDirectory(prefix="redfirst-version-", ignore_cleanup_errors=True) as folder:
        try:
            asked = subprocess.Popen(
                found.program.argv(found.known.asked),
                cwd=folder,
                env={**_WITHOUT_NETWORK, "PATH": search_path, "HOME": folder},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return ""
        with asked:
            try:
                return asked.communicate(timeout=timeout_s)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                return ""
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(asked.pid, signal.SIGKILL)  # a wrapper may have started the program itself


def _packaged(path: Path) -> str | None:
    """Return the version in the `package.json` above a program, None if there is none."""
    for folder in path.parents:
        with contextlib.suppress(OSError, ValueError):
            version = _table(json.loads((folder / "package.json").read_bytes())).get("version")
            if isinstance(version, str):
                return version
        if folder.name == "node_modules":
            return None
    return None


def _server(place: Place) -> Server | None:
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=_SERVER_S / 2)
    try:
        connection.request("GET", place.path, headers={"accept": "application/json"})
        answer = connection.getresponse()
        listed: Any = json.loads(_body(answer)) if answer.status == http.client.OK else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    models = _models(listed)
    return Server(place.name, place.title, f"http://127.0.0.1:{place.port}", models) if models is not None else None


def _body(answer: http.client.HTTPResponse) -> bytes:
    end, content = time.monotonic() + _SERVER_S, b""
    while chunk := answer.read1(65536):
        content += chunk
        if len(content) > _SERVER_BYTES or time.monotonic() > end:
            raise ValueError("more than a list of models")
    return content


def _models(listed: Any) -> tuple[str, ...] | None:
    """Return the model names in a server's list, None if it is no such list."""
    table = _table(listed)
    entries = table.get("models", table.get("data"))
    if not isinstance(entries, list):
        return None
    found = [_table(entry) for entry in cast("list[object]", entries)]
    names = [str(entry.get("name") or entry.get("id") or "") for entry in found]
    return tuple(name for name in names if _MODEL.fullmatch(name))[:_MODELS]


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
