"""Stories that were written for the scripted agent, as conversations of a model: a real agent plays them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from model_service.script import Report, Say, Use, conversation, quoted, read, run, write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from model_service.script import Conversation, Script, Turn

_KNOWN: Final = {"when", "files", "run", "report", "stdout"}


def from_answers(entries: Iterable[dict[str, Any]]) -> Script:
    """Return the conversations in which a real agent does what these answers of the scripted agent say.

    Each file is read and then written, since some products refuse to write over a file that was not looked at; a file
    that is not there yet costs an error that changes nothing. Then the command, then the report.

    Raises:
        ValueError: an entry asks for what only the scripted agent can do: an exit code, a sleep, a step.
    """
    return tuple(_played(entry) for entry in entries)


def _played(entry: dict[str, Any]) -> Conversation:
    when: dict[str, Any] = entry.get("when", {})
    if alien := (entry.keys() - _KNOWN) | (when.keys() & {"step"}):
        raise ValueError(f"no agent can be told this: {', '.join(sorted(alien))}")
    turns: list[Turn] = []
    for path, content in entry.get("files", {}).items():
        acts = (run(f"rm {quoted(path)}"),) if content is None else (read(path), write(path, content))
        turns += [Use(act) for act in acts]
    if "run" in entry:
        turns.append(Use(run(" ".join(quoted(word) for word in entry["run"]))))
    turns.append(Report(entry["report"]) if "report" in entry else Say(entry.get("stdout", "")))
    return conversation(*turns, **{key: str(value) if key == "task" else value for key, value in when.items()})
