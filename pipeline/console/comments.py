"""Makes feedback of what somebody wrote in the form of a gate: their words, and comments with the lines they are on."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pipeline.console.patches import files_of
from pipeline.console.texts import clipped
from pipeline.errors import UserError
from pipeline.runs.recipe_run import load_run
from pipeline.service.packets import packet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipeline.console.patches import PatchFile
    from pipeline.git import Repository

_TEXT: Final = re.compile(r"comment (?P<file>.+) (?P<line>\d{1,9})")
"""The name of a field with a comment on a line of a text: the file, and the line's number."""
_CHANGE: Final = re.compile(r"comment (?P<file>\d{1,9})(?P<place>[+-]\d{1,9})")
"""The same of the changes: which of the files, and the line as `PatchLine.place` names it."""
_LONGEST: Final = 500


def words_of(here: Repository, folder: Path, fields: Mapping[str, str]) -> str:
    """Return all that somebody wrote in a form, so that it can be shown again; nothing where they wrote nothing."""
    return "\n\n".join(filter(None, [fields.get("answer", "").strip(), feedback_of(here, folder, fields)]))


def feedback_of(here: Repository, folder: Path, fields: Mapping[str, str]) -> str:
    """Return what somebody wrote, and below it their comments with the lines that these are on."""
    said = {name: text.strip() for name, text in fields.items() if name.startswith("comment ") and text.strip()}
    parts = [fields.get("feedback", "").strip(), *_on_texts(folder, said), *_on_changes(here, folder, said, fields)]
    return "\n\n".join(filter(None, parts))


def _on_texts(folder: Path, said: Mapping[str, str]) -> Iterator[str]:
    places = [(found, said[name]) for name in said if (found := _TEXT.fullmatch(name))]
    if not places:
        return
    run = load_run(folder, driving=False)
    for found, comment in places:
        if found["file"] not in run.artifacts:
            continue
        lines = (run.folder / found["file"]).read_text(encoding="utf-8", errors="replace").split("\n")
        number = int(found["line"])
        line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        yield f"{found['file']}, line {number}: {comment}\n\n> {clipped(line, _LONGEST)}"


def _on_changes(here: Repository, folder: Path, said: Mapping[str, str], fields: Mapping[str, str]) -> Iterator[str]:
    places = [(found, said[name]) for name in said if (found := _CHANGE.fullmatch(name))]
    files = _changes(here, folder, fields.get("gate")) if places else []
    for found, comment in places:
        number = int(found["file"])
        if number >= len(files):
            continue
        lines = {line.place: line for _, hunk in files[number].hunks for line in hunk}
        line = lines.get(found["place"])
        if line is not None:
            where = f"{files[number].path}, line {line.said}"
            yield f"{where}: {comment}\n\n> {clipped(line.sign + line.text, _LONGEST)}"


def _changes(here: Repository, folder: Path, gate: str | None) -> list[PatchFile]:
    with suppress(UserError):  # it was answered meanwhile: nothing is sent back
        diff = packet(here, folder, gate).diff
        return files_of(diff.files, diff.patch, ())[0] if diff is not None else []
    return []
