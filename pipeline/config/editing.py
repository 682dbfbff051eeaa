"""Sets one value in the text of a configuration file and keeps everything else, comments and order included."""

from __future__ import annotations

import tomllib
from typing import Any, cast

from pipeline.config.keys import KeyPath, dotted
from pipeline.toml_text import toml_table


def with_value(text: str, path: KeyPath, value: object) -> str:
    """Return *text* with the key at *path* set to *value*.

    Raises:
        tomllib.TOMLDecodeError: *text* is no TOML.
        ValueError: the file is written in a way in which the key cannot be set without changing something else.
    """
    import tomlkit  # noqa: PLC0415  (only who changes a file needs it)
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415  (the same)

    wanted = _set_in(toml_table(text), path, value)
    try:
        document = tomlkit.parse(text)
        table = cast("dict[str, Any]", document)
        for depth, word in enumerate(path[:-1], start=1):
            if word not in table:
                table[word] = tomlkit.table(is_super_table=depth < len(path) - 1)
                if depth == len(path) - 1:
                    table[word][path[-1]] = value
                    table[word].add(tomlkit.nl())  # between it and a table that follows
            table = table[word]
        table[path[-1]] = value
        changed = tomlkit.dumps(document).rstrip("\n") + "\n"
    except (TOMLKitError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    for candidate in (_above_comments(text, changed), changed):
        if _read(candidate) == wanted:
            return candidate
    raise ValueError(f"{dotted(path)} cannot be set: another value would change with it")


def _above_comments(old: str, changed: str) -> str:
    """Return *changed* with its new line moved above the comments before it, which belong to the next key."""
    before, after = old.splitlines(keepends=True), changed.splitlines(keepends=True)
    at = next((at for at, (was, now) in enumerate(zip(before, after, strict=False)) if was != now), len(before))
    if len(after) == len(before) + 2 and not after[at + 1].strip():
        del after[at + 1]
    if len(after) != len(before) + 1 or after[at + 1 :] != before[at:] or after[at].startswith("["):
        return changed
    top = at
    while top > 0 and (not after[top - 1].strip() or after[top - 1].lstrip().startswith("#")):
        top -= 1
    return "".join((*after[:top], after[at], *after[top:at], *after[at + 1 :])) if top else changed


def _read(text: str) -> object:
    try:
        return toml_table(text)
    except tomllib.TOMLDecodeError:
        return None


def _set_in(table: dict[str, Any], path: KeyPath, value: object) -> dict[str, Any]:
    """Return the table with *value* set at *path*."""
    here = table
    for word in path[:-1]:
        below = here.setdefault(word, {})
        if not isinstance(below, dict):
            raise ValueError(f"{word} is a value there, and no table")  # noqa: TRY004  (of the file, not of a caller)
        here = cast("dict[str, Any]", below)
    here[path[-1]] = value
    return table
