"""Decides which of a repository's settings need the user's trust, and stores that trust (contract 4).

A repository's file is written by whoever can push to it. So the keys that start a program on the host, open the box or
hand things into it count only after `redfirst trust`, which remembers the hash of exactly these values; another value
needs trust again. What other files of a repository bring about by being there is a value, too, with a hash of its own
(`app.trust_requests`): it may be gone and come back. A repository is known by its common git folder, so that its
worktrees share the word. A key that is set to its closed value (`network = "none"`) widens nothing. Nothing is ever
ignored in silence: without trust a run is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import Field, ValidationError

from pipeline.config.agents import TAKES_MODEL
from pipeline.config.keys import KeyPath, dotted
from pipeline.config.user_folders import state_folder
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.judge.policy.control_files import is_control
from pipeline.outcomes import Reason
from pipeline.testing.languages.table import LANGUAGES

VARIABLE: Final = "REDFIRST_TRUST"
_CREDENTIAL: Final = "this decides where your credential for a model is sent, and for what"
_WITH_A_MODEL: Final = frozenset(backend.value for backend in TAKES_MODEL)
_MOST_KEPT: Final = 64
_INSTALLED: Final = frozenset({".venv", "venv", "node_modules"})


@dataclass(frozen=True)
class Widening:
    """A setting of the repository that needs trust, and why.

    Args:
        key: The key of its configuration, or a file of it.
        value: What trust would be given to.
        why: What it brings about.
        is_file: It is no key, but what a file brings about by being there.
        instead: What a user can do who does not want it, in words; empty where that is only to leave it.
    """

    key: str
    value: object
    why: str
    is_file: bool = False
    instead: str = ""


class _Store(Frozen):
    """The content of `trust.json`: the trusted hashes by repository identity."""

    document: Literal["redfirst.trust-store/1"] = Field("redfirst.trust-store/1", alias="schema")
    repositories: Mapping[str, str] = {}


def widening_of(flat: Mapping[KeyPath, object]) -> tuple[Widening, ...]:
    """Return the settings of the repository's file that need trust, in the order of the file.

    Args:
        flat: What the file says, by path, as written (relative paths not resolved) and already validated.
    """
    return tuple(Widening(dotted(path), value, why) for path, value in flat.items() if (why := _why(path, value)))


def fingerprint(widening: tuple[Widening, ...]) -> str:
    """Return the sha256 of the settings that need trust, as canonical JSON."""
    values = {item.key: item.value for item in widening}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def is_trusted(widening: tuple[Widening, ...], common_dir: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the repository's settings are trusted: none needs it, the environment says so, or the user did.

    Raises:
        UserError: `REDFIRST_TRUST` is neither 0 nor 1, or the store cannot be read.
    """
    return not widening or _variable(environ) or is_recorded(widening, common_dir, environ)


def is_recorded(widening: tuple[Widening, ...], common_dir: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the user recorded trust in these settings of this repository; the environment does not count.

    Raises:
        UserError: the store cannot be read.
    """
    return _parts(widening) <= set(_allowed(_read(_store_path(environ)), common_dir))


def require_trust(widening: tuple[Widening, ...], common_dir: Path, environ: Mapping[str, str]) -> None:
    """Raise an error if a setting that needs trust is not trusted.

    Raises:
        UserError: reason `untrusted`: names the keys, their values and the command to run.
    """
    if is_trusted(widening, common_dir, environ):
        return
    asked = "; ".join(f"{item.key} = {json.dumps(item.value, default=str)}" for item in widening)
    raise UserError(
        " ".join(
            [
                f"This repository asks for more than it may take by itself: {asked}.",
                *(f"{each[0].upper()}{each[1:]}." for each in instead(widening)),
                f"Where nobody can be asked, as in CI: {VARIABLE}=1.",
            ]
        ),
        Reason.UNTRUSTED,
        path=str(common_dir),
        details={"widening": as_json(widening), "sha256": fingerprint(widening)},
        actions=("redfirst trust   # shows these values, and asks",),
    )


def grant(widening: tuple[Widening, ...], common_dir: Path, environ: Mapping[str, str]) -> None:
    """Record trust in these settings of this repository, beside those that were trusted before.

    Another branch or worktree may have the earlier ones, and nobody is asked for them again.
    """
    path = _store_path(environ)
    store, new = _read(path), sorted(_parts(widening))
    kept = [part for part in _allowed(store, common_dir) if part not in new][-_MOST_KEPT:]
    _write(path, {**store.repositories, _identity(common_dir): " ".join((*kept, *new))})


def _allowed(store: _Store, common_dir: Path) -> list[str]:
    return store.repositories.get(_identity(common_dir), "").split()


def revoke(common_dir: Path, environ: Mapping[str, str]) -> bool:
    """Remove the trust in this repository; return whether there was any."""
    path = _store_path(environ)
    known = dict(_read(path).repositories)
    if known.pop(_identity(common_dir), None) is None:
        return False
    _write(path, known)
    return True


def as_json(widening: tuple[Widening, ...]) -> list[dict[str, object]]:
    """Return the settings that need trust as JSON."""
    return [{"key": item.key, "value": item.value, "why": item.why} for item in widening]


def instead(widening: tuple[Widening, ...]) -> tuple[str, ...]:
    """Return the alternatives to trusting these settings, each once."""
    return tuple(dict.fromkeys(item.instead for item in widening if item.instead))


def _parts(widening: tuple[Widening, ...]) -> frozenset[str]:
    """Return the hashes that stand for these settings: one for all keys together, one for each file."""
    keys = tuple(item for item in widening if not item.is_file)
    each = [(item,) for item in widening if item.is_file]
    return frozenset(fingerprint(part) for part in ([keys] if keys else []) + each)


def _why(path: KeyPath, value: object) -> str | None:
    match path:
        case ("sandbox",) if value == "none":
            return "agents and tests may run without a box"
        case ("providers", *_):
            return _CREDENTIAL
        case ("notify" | "otel", *_):
            return "this decides what is told of your runs, to whom, and what is started for that"
        case ("triggers", *_):
            return "this decides who and what orders runs here, which cost money"
        case ("prices", *_):
            return "a price that is too low voids your budget"
        case ("agents" | "spares", *_):
            return _why_of_agent(path, value)
        case ("toolchains", *_):
            return _why_of_toolchain(path, value)
        case ("commits", "sign_off") if value:
            return "commits carry Signed-off-by, which certifies something in your name"
        case ("commits", "pattern"):
            return "this expression is matched on the host, and one can be made that never ends"
        case ("solo", "area") if any(map(is_control, cast("list[str]", value))):
            return "one writer may change these files, which control tests or builds"
        case ("checks", _) if any(map(_names_a_host_path, cast("list[object]", value))):
            return "these programs of the host are brought into the box"
        case _:
            return None


def _why_of_toolchain(path: KeyPath, value: object) -> str | None:
    match path:
        case ("toolchains", "outside") if value:
            return "tests that fail or are skipped in the box are run on this machine, outside of it"
        case ("toolchains", _, "env", _):
            return "this variable is handed to tests and agents"
        case ("toolchains", _, "setup") if value:
            return "this command prepares the checkout, outside the judged box"
        case ("toolchains", _, "command") if _names_a_host_path(value):
            return "this program of the host is brought into the box"
        case ("toolchains", name, "command") if not _starts_the_runner(name, cast("list[str]", value)):
            return "what comes before the test runner is run on the host, outside the box"
        case _:
            return None


def _why_of_agent(path: KeyPath, value: object) -> str | None:
    match path:
        case (*_, "env", _):
            return "this variable is handed to agents"
        case (*_, "backend") if value in _WITH_A_MODEL:
            return "this agent asks a model with your credential"
        case (*_, "network") if value != "none":
            return "agents may reach the network"
        case (*_, "provider"):
            return _CREDENTIAL
        case (*_, "login") if value:
            return "your login for this product is shown to agents"
        case (*_, "read") if value:
            return "agents may read these files and folders of the host"
        case (*_, "argv") if value:
            return "this program of the host is run as an agent"
        case (*_, "script"):
            return "this file of the host is read as an agent's answers"
        case _:
            return None


def _names_a_host_path(argv: object) -> bool:
    """Return whether the program is a path outside of the repository; a bare name is looked up on PATH."""
    words = cast("list[str]", argv)
    program = Path(words[0])
    return program.is_absolute() or ".." in program.parts or program.parts[:1] == ("~",)


def _starts_the_runner(toolchain: str, words: list[str]) -> bool:
    """Return whether a command begins with this toolchain's test runner; a word before it would run on the host.

    A file of the repository is not one of the runners, whatever it is called; what was installed beside it may be.
    """
    name, folders = Path(words[0]).name, Path(words[0]).parts[:-1]
    if folders and folders[0] not in _INSTALLED:
        return False
    return LANGUAGES[toolchain].starts_runner(name, words[1:])


def _variable(environ: Mapping[str, str]) -> bool:
    value = environ.get(VARIABLE, "")
    if value not in {"", "0", "1"}:
        raise UserError(f'{VARIABLE} is "{value}". Accepted: 0, 1.', Reason.USAGE, path=VARIABLE)
    return value == "1"


def _identity(common_dir: Path) -> str:
    return str(common_dir.resolve())


def _store_path(environ: Mapping[str, str]) -> Path:
    return state_folder(environ) / "trust.json"


def _read(path: Path) -> _Store:
    try:
        return _Store.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return _Store(schema="redfirst.trust-store/1")
    except (OSError, ValidationError) as error:
        raise UserError(
            f"The record of trusted repositories cannot be read. Look at {path} and remove it. Then run redfirst trust "
            "where it is needed.",
            Reason.CONFIG,
            path=str(path),
        ) from error


def _write(path: Path, repositories: Mapping[str, str]) -> None:
    store = _Store(schema="redfirst.trust-store/1", repositories=dict(sorted(repositories.items())))
    path.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp gives mode 0600; a rename in one folder is atomic, so a reader sees the old record or the new one.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(store.model_dump_json(by_alias=True, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
