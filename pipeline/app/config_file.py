"""Sets one value in a configuration file, after the whole configuration has been read with it (contract 4)."""

from __future__ import annotations

import stat
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.app.trust_requests import widening_in
from pipeline.config import keys, trust, user_folders
from pipeline.config.editing import with_value
from pipeline.config.layers import key_path, typed_value
from pipeline.config.load import Loaded, load
from pipeline.config.sources import (
    OWN_FILE,
    SHARED_FILE,
    SHARED_TABLE,
    Layer,
    Origin,
    RepositoryFile,
    file_content,
    parse_user,
    repository_file,
)
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.repo import Repository


@dataclass(frozen=True)
class SetValue:
    """What was set.

    Args:
        key: The key, with dots.
        value: Its value, as JSON has it.
        path: The file.
        needs_trust: Whether it counts only after `redfirst trust`.
        overruled_by: Where another layer says something else that counts instead; empty where none does.
    """

    key: str
    value: object
    path: Path
    needs_trust: bool
    overruled_by: str


def set_in_user_file(key: str, text: str, environ: Mapping[str, str], repository: Repository | None) -> SetValue:
    """Set a key in the user's own file.

    Raises:
        UserError: there is no such key, the configuration refuses the value, or the file cannot be written.
    """
    path = user_folders.config_folder(environ) / "config.toml"
    where = _path_and_value(key, text)
    content = _changed(path, where, ())
    here = repository.worktree if repository is not None else path.parent
    file = repository_file(repository.worktree, lambda _: None) if repository is not None else None
    loaded = load(here, environ=environ, repo_file=file, user_content=content)
    _write(path, content)
    return SetValue(key, where[1], path, needs_trust=False, overruled_by=_other(loaded, where[0], str(path)))


def set_in_repository(key: str, text: str, environ: Mapping[str, str], repository: Repository) -> SetValue:
    """Set a key in the repository's file, as it lies in the worktree: `redfirst.toml`, or our table in pyproject.toml.

    Raises:
        UserError: there is no such key, the configuration refuses the value, or the file cannot be written.
    """
    found = repository_file(repository.worktree, lambda _: None)
    name = found.name if found is not None else OWN_FILE
    path = repository.worktree / name
    if not path.resolve().is_relative_to(repository.worktree.resolve()):
        raise UserError(f"{name} is a link that leads out of the repository. Edit that file by hand.", Reason.CONFIG)
    where = _path_and_value(key, text)
    content = _changed(path, where, SHARED_TABLE if name == SHARED_FILE else ())
    loaded = load(repository.worktree, environ=environ, repo_file=RepositoryFile(name, content, tracked=False))
    widening = widening_in(repository, loaded, environ)
    asks = any(item.key == keys.dotted(where[0]) for item in widening)
    _write(path, content)
    return SetValue(
        key,
        where[1],
        path,
        needs_trust=asks and not trust.is_trusted(widening, repository.common_dir, environ),
        overruled_by=_other(loaded, where[0], name),
    )


def _path_and_value(key: str, text: str) -> tuple[keys.KeyPath, object]:
    path, origin = key_path(key), Origin(Layer.FLAG, f"config set {key}")
    return path, typed_value(path, text, origin)


def add_to_user_file(
    table: keys.KeyPath, values: Mapping[str, object], environ: Mapping[str, str], here: Path, *, write: bool
) -> tuple[Path, str]:
    """Add a table to the user's own file, if *write*; return the file, and the text of the table.

    Raises:
        UserError: the table is there, the configuration refuses a value, or the file cannot be written.
    """
    path = user_folders.config_folder(environ) / "config.toml"
    known = parse_user(path)
    if known is not None and any(key[: len(table)] == table for key in keys.flatten(known.table)):
        message = f"{path} has a [{keys.dotted(table)}] already. Nothing was written. Change it there."
        raise UserError(message, Reason.USAGE, path=str(path), actions=("redfirst config show",))
    text, alone = _text(path), ""
    for name, value in values.items():
        text, alone = (_with(path, each, (*table, name), value) for each in (text, alone))
    load(here, environ=environ, user_content=text.encode())
    if write:
        _write(path, text.encode())
    return path, alone


def _changed(path: Path, where: tuple[keys.KeyPath, object], above: keys.KeyPath) -> bytes:
    return _with(path, _text(path), (*above, *where[0]), where[1]).encode()


def _text(path: Path) -> str:
    try:
        return file_content(path).decode()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.", Reason.CONFIG, path=str(path)) from error


def _with(path: Path, text: str, key: keys.KeyPath, value: object) -> str:
    try:
        return with_value(text, key, value)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}.", Reason.CONFIG, path=str(path)) from error
    except ValueError as error:
        raise UserError(f"{path}: {error}. Edit the file by hand.", Reason.CONFIG, path=str(path)) from error


def _write(path: Path, content: bytes) -> None:
    target = path.resolve()  # who keeps the file elsewhere has a link here
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
    write_atomic(target, content, mode=mode)


def _other(loaded: Loaded, path: keys.KeyPath, file: str) -> str:
    """Return where the value that counts is written, if that is another file, a variable, or a general key."""
    general = (path[0], *path[2:]) if path[0] == "agents" and path[1] in keys.ROLES else path
    origin = loaded.origins.get(keys.dotted(path)) or loaded.origins.get(keys.dotted(general))
    return "" if origin is None or origin.source == file else str(origin)
