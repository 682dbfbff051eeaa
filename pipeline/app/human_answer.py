"""Hands in a person's answer: finds the desk that waits, and checks whether the answer can count."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pipeline.agents.backends.desk import Asked, Desk, desk_around, desks_gone, desks_of
from pipeline.agents.backends.layout import Difference, Manifest
from pipeline.agents.dispatch.desk_gate import DeskRules
from pipeline.agents.dispatch.prompt import request_part
from pipeline.app import human_report
from pipeline.characters import visible
from pipeline.config.user_folders import short, state_folder
from pipeline.errors import UserError
from pipeline.judge.policy.rights import without_asking
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.activity_file import read_now
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import load_run
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import issue_of, state_of_run
from pipeline.run.summary_facts import place_of

if TYPE_CHECKING:
    from pipeline.vocabulary import Role

SCHEMA: Final = "redfirst.hand-in/1"


_SHOWN: Final = 20
_FENCED: Final = re.compile(r"\n```.*?\n```\n", re.DOTALL)
"""An example of an agent's report: a person has a form."""
_ARTIFACT: Final = re.compile(r"^(\* `\w+`: `[^`\n]*`)\n  (?=\S)", re.MULTILINE)
_BULLET: Final = re.compile(r"\s*(?:(?:[*-]|\d+\.)\s+)?")
_ITEM: Final = re.compile(r"\s*([*|#-]|\d+\.)")


_ASK: Final = "If you need one of these files, say so in the report instead: its field `needs` asks for files."
_LONGEST: Final = 400
"""Characters of a path that is told; the start of a longer one is enough to find it."""


def waiting_desk(run: str | None, role: Role | None, command: str = "hand-in") -> tuple[Desk, Asked]:
    """Return the one desk that waits here, or at which a run waits, with what is asked there.

    Args:
        run: The run; None for any.
        role: Who is asked; None for any.
        command: What is wanted of it, for the message where several wait.

    Raises:
        UserError: none waits, or several do.
    """
    runs: list[RunPlace] = []
    here = desk_around(Path.cwd())
    of = here.asked() if here is not None else None
    names = {of.run_id, issue_of(of.run_id)} if of is not None and of.run_id else set[str | None]()
    if here is not None and (run is None or run in names) and (of is None or role in {None, of.role}):
        found = [_unanswered(here)]
    else:  # a desk is in no repository of the user's, but its run is
        roster = Roster(Repository.find(of.run_folder.parents[1] if of is not None and names else Path.cwd()))
        runs = roster.newest() if run is None else [roster.find(run)]
        state = state_folder(os.environ)
        found = [
            desk
            for each in runs
            for desk in desks_of(each.folder, state_of_run(state, roster.repository.at(each.worktree), each.name))
        ]
    waiting = [(desk, asked) for desk in found if (asked := desk.asked()) is not None]
    known = [(desk, asked) for desk, asked in waiting if role in {None, asked.role}]
    if len(known) == 1:
        return known[0]
    commands = tuple(f"redfirst {command} {asked.run_id} --role {asked.role}" for _, asked in known or waiting)
    if known:
        raise UserError(
            "More than one desk waits. Say which.", Reason.USAGE, details={"desks": commands}, actions=commands
        )
    if waiting:
        raise UserError(f"No desk waits for @{role} here.", Reason.USAGE, details={"desks": commands}, actions=commands)
    for place in runs:
        _refuse_gone(place)
    _refuse_at_work([place.folder for place in runs if FileLease.is_held(place.folder)])
    if runs:
        _refuse_interrupted(runs[0])
    raise UserError(
        "Nothing waits for a person here. A role is played by one where its backend is human.",
        Reason.USAGE,
        actions=("redfirst runs", "redfirst run ISSUE --agent ROLE=human"),
    )


def _refuse_gone(place: RunPlace) -> None:
    """Return when no desk is gone at which the run waits, or waited when it was stopped.

    Raises:
        UserError: one is.
    """
    gone = desks_gone(place.folder)
    if gone and _only_goes_on(place):
        raise UserError(
            f"The desk of {gone[0]} is gone. To have it laid out again, go on with the run; end a driver that "
            "still waits with Ctrl-C first.",
            Reason.USAGE,
            actions=(f"redfirst resume {place.name}",),
        )


def _refuse_interrupted(place: RunPlace) -> None:
    """Return when a run does not only have to go on.

    Raises:
        UserError: it does: its driver is gone, and what was handed in for it is kept.
    """
    if _only_goes_on(place):
        raise UserError(
            f"Nothing waits for a person here. {place.name} is to go on first: what was answered is kept.",
            Reason.USAGE,
            actions=(f"redfirst resume {place.name}",),
        )


def _only_goes_on(place: RunPlace) -> bool:
    return load_run(place.folder, driving=False).state.reason in {None, Reason.INTERRUPTED}


def _refuse_at_work(folders: list[Path]) -> None:
    """Return when none of these runs is driven by a process.

    Raises:
        UserError: one is: it measures, or asks somebody else, and may ask a person next.
    """
    if not folders:
        return
    raise UserError(
        f"Nobody is asked at the moment: {'; '.join(map(_at_work, folders))}. When a person is asked, show and the "
        "terminal of the run say so; ask again then.",
        Reason.USAGE,
        actions=tuple(f"redfirst desk {each.name}" for each in folders),
    )


def _at_work(folder: Path) -> str:
    """Return in words that a run is at work, at which step, and with what."""
    run = load_run(folder, driving=False)
    doing = [visible(one.what) for one in read_now(folder, run.journal.epoch)]
    place = [f"at {place_of(run)}"] if isinstance(run, Run) else []
    return ": ".join([" ".join([f"{folder.name} is at work", *place]), *doing])


def _unanswered(desk: Desk) -> Desk:
    """Return a desk at which somebody stands, if its dispatch is still to be answered.

    Raises:
        UserError: the run has taken the answer: whatever it asks now, it does not ask here.
    """
    asked = desk.asked()
    if asked is None or not (asked.run_folder / "dispatches" / asked.dispatch / "result.json").exists():
        return desk
    project = asked.run_folder.parents[1]
    raise UserError(
        f"{asked.dispatch} is answered: this desk is done. {asked.run_id} now asks at another desk, or is over.",
        Reason.USAGE,
        actions=(f"cd {shlex.quote(str(project))} && redfirst desk {asked.run_id}",),
    )


def request_of(desk: Desk) -> str:
    """Return what is asked at a desk, in the words that an agent would read, with the paths as they are from there."""
    text = request_part(desk.prompt.read_text(encoding="utf-8"))
    text = text.replace(f"Workspace: `{desk.files.name}`\n\n", "").replace(f"`{desk.files.name}/", "`")
    text = text.replace(f"`{desk.artifacts.name}/", f"`../{desk.artifacts.name}/")
    text = _ARTIFACT.sub(r"\1: ", _FENCED.sub("\n", text))
    return _flowing(text).replace("`A task` above", f"`A task` in `../{desk.prompt.name}`")


def _column(line: str) -> int:
    """Return where the text of a line begins, behind its bullet."""
    found = _BULLET.match(line)
    return found.end() if found else 0


def _flowing(text: str) -> str:
    """Return a text with each paragraph as one line: the terminal has another width than the page."""
    lines: list[str] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        before = lines[-1] if lines else ""
        goes_on = before.strip() and line.strip() and not _ITEM.match(line) and not before.startswith("#")
        if goes_on and indent == _column(before):
            lines[-1] = f"{before} {line.lstrip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def refuse_unseen(desk: Desk, asked: Asked) -> None:
    """Return when the person was shown what is asked: what they answer is never another question.

    Raises:
        UserError: they were not; it says what is asked.
    """
    if desk.is_shown(asked):
        return
    again = ", again, since the last answer did not count" if asked.reask is not None else ""
    raise UserError(
        f"Nothing was handed in: what is asked now was not shown to you yet. It is {asked.dispatch}: "
        f"{asked.request}{again}. Look at it, then hand in.",
        Reason.USAGE,
        actions=(f"redfirst desk {asked.run_id} --role {asked.role}" if asked.run_id else "redfirst desk",),
    )


def hand_in(desk: Desk, asked: Asked, content: dict[str, Any]) -> dict[str, Any]:
    """Put a report into a desk, and return what was handed in, as `hand-in --json` prints it.

    Raises:
        UserError: the report, or what was changed, cannot count; then nothing is handed in.
    """
    human_report.check(desk, asked, content)
    difference = checked_files(desk, asked)
    human_report.check_work(asked, content, difference)
    desk.put(desk.report, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return _document(desk, asked, content, difference)


def checked_files(desk: Desk, asked: Asked) -> Difference:
    """Return what was changed at a desk, when the gate takes it.

    Raises:
        UserError: it does not, or a file cannot be taken over; `details` lists each path with its rule.
    """
    difference = _difference(desk, asked)
    if asked.writable:
        _refuse_strange(difference, desk)
        _refuse_by_gate(difference, desk)
    return difference


def _difference(desk: Desk, asked: Asked) -> Difference:
    try:
        return Difference.at(desk.files, desk.manifest(), asked.named)
    except OSError as error:
        where = visible(short(Path(error.filename or desk.files), os.environ))
        shown = where if len(where) <= _LONGEST else f"{where[:_LONGEST]}..."
        raise UserError(
            f"Nothing was handed in. {shown} cannot be read: {error.strerror}. Mend or remove it, then try again.",
            Reason.USAGE,
            path=shown,
        ) from error


def _refuse_strange(difference: Difference, desk: Desk) -> None:
    if difference.strange:
        told = "; ".join(f"{visible(path)} ({what})" for path, what in list(difference.strange.items())[:_SHOWN])
        raise UserError(f"Nothing was handed in. The run cannot take over {told}.", Reason.USAGE, path=str(desk.files))


def _refuse_by_gate(difference: Difference, desk: Desk) -> None:
    """Refuse what the run's gate would: it takes all or nothing, and would use up the try."""
    try:
        rules = DeskRules.model_validate_json(desk.rules.read_bytes())
    except (OSError, ValidationError):  # laid out before there were rules: the run says it then
        return
    before = desk.manifest()
    found = rules.ruling(desk.files, before, difference).violations
    if not found:
        return
    refused = [
        {
            "path": one.path,
            "rule": one.rule,
            "why": without_asking(one.why)[0],
            "put_back": _put_back(one.path, before, desk.files),
        }
        for one in found
    ]
    ask = f" {_ASK}" if any(without_asking(one.why)[1] for one in found) else ""
    what = f"these {len(found)} changes" if len(found) > 1 else "this change"
    here = Path.cwd().is_relative_to(desk.files)
    raise UserError(
        f"Nothing was handed in, and no try is used up: the run's gate would refuse {what}. Put back, "
        f"{'here' if here else 'at the desk (redfirst desk goes there)'}, what is listed, and hand in again.{ask}",
        Reason.USAGE,
        path=str(desk.files),
        details={"refused": refused},
        actions=tuple(f"{one['put_back']}   # {one['rule']}: {one['why']}" for one in refused[:_SHOWN]),
    )


def _put_back(path: str, before: Manifest, files: Path) -> str:
    """Return the command, at the desk, that takes a change back."""
    known = path in before or any(one.startswith(f"{path}/") for one in before)
    if known:
        return f"git checkout -- {shlex.quote(path)}"
    return f"{'rm -r' if (files / path).is_dir() else 'rm'} {shlex.quote(path)}"


def _document(desk: Desk, asked: Asked, content: dict[str, Any], difference: Difference) -> dict[str, Any]:
    is_a_run = (asked.run_folder / "run.json").exists()
    changes = [{"path": path, "kind": "changed"} for path in difference.changed]
    changes += [{"path": path, "kind": "removed"} for path in difference.removed]
    return {
        "schema": SCHEMA,
        "ok": True,
        "run_id": asked.run_id,
        "dispatch": asked.dispatch,
        "role": asked.role.value,
        "kind": asked.kind,
        "desk": str(desk.files),
        "report": content,
        "changes": changes if asked.writable else [],
        "refused": [],
        "left_out": [] if asked.writable else [change["path"] for change in changes],
        "built": list(difference.left_out) if asked.writable else [],
        "remarks": human_report.remarks(asked, content),
        "waiting": FileLease.is_held(asked.run_folder) if is_a_run else None,
    }
