"""Saves what a person made of a draft on a page, where an edit of it counts: it is checked before it is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pipeline.app.answer import check_edits, config_of, refuse_removal
from pipeline.app.open_gates import require_gate
from pipeline.app.packets import Packet, packet_of, require_seen
from pipeline.app.ports import context_of
from pipeline.characters import HIDDEN
from pipeline.errors import UserError
from pipeline.matrix.engine.run import sha256_hex
from pipeline.outcomes import Reason
from pipeline.run.drafts import PLAN, open_drafts, task_file
from pipeline.run.files import write_atomic
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.steps.context import Context

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

_KEPT: Final = frozenset("\n\t")
"""What is hidden, and a text field of a page keeps all the same."""


def draft_to_edit(repository: Repository, folder: Path, name: str) -> tuple[Packet, str]:
    r"""Return what a run waits for, and the text of a draft in it of which an edit counts, with `\n` between its lines.

    Raises:
        UserError: no edit of it counts, or a page cannot show its text so that it comes back as it was.
    """
    run = Run.load(folder, driving=False)
    _require_open(run, name)
    shown = packet_of(repository, run)
    return shown, _editable(run, shown, name).replace("\r\n", "\n")


def save_edit(repository: Repository, folder: Path, name: str, text: str, seen: str) -> None:
    """Write a draft down as a person edited it; it counts when its gate is approved, as any edit there.

    Args:
        repository: As seen from the worktree that keeps the run.
        folder: Of the run.
        name: Of the draft.
        text: What it is to be; its lines end as those of the file do now.
        seen: The digest of the packet that was looked at.

    Raises:
        UserError: no edit of it counts now; something else lies there than was seen (`stale`); what lies there can
            not be edited on a page; what it says cannot be used, with the lines; another process drives the run. Then
            nothing is written.
    """
    lease = FileLease.take(folder)
    try:
        run = Run.load(folder, driving=False)
        ctx = context_of(Context, repository, run, config_of(run), NoBox(), dict(os.environ), lambda _: None)
        _require_open(run, name)
        require_gate(run, None)
        refuse_removal(ctx)
        ending = "\r\n" if "\r\n" in _editable(run, require_seen(repository, run, None, seen), name) else "\n"
        whole = text if text.endswith("\n") or not text else f"{text}\n"
        written = whole.replace("\n", ending)
        _check(ctx, name, written)
        require_seen(repository, run, None, seen)  # an editor may have saved it while it was checked
        write_atomic(folder / name, written.encode(), below=folder.parents[1])
    finally:
        lease.release()


def _check(ctx: Context, name: str, text: str) -> None:
    texts = {each: ctx.read(each) for each in open_drafts(ctx.state)} | {name: text}
    ids = () if name == PLAN else ctx.state.queue
    check_edits(ctx, texts, {task_id: ctx.task_in(task_file(task_id), texts[task_file(task_id)]) for task_id in ids})


def _require_open(run: Run, name: str) -> None:
    if name not in open_drafts(run.state) or run.state.outcome is None:
        raise UserError(
            f"No edit of {name} counts now: {run.info.run_id} does not wait for one. plan.md is edited at approval "
            "point plan, the tasks at approval point split.",
            Reason.STALE,
            actions=(f"redfirst show {run.info.run_id}",),
        )


def _editable(run: Run, shown: Packet, name: str) -> str:
    """Return the text of a draft in a packet, as its lines end there.

    Raises:
        UserError: it would not come back from a page as it was.
    """
    found = next((file for file in shown.files if file.name == name), None)
    path = run.folder / name
    if found is None or sha256_hex(found.text.encode()) != found.sha256:
        raise _not_here(path, "it cannot be read as text")
    if found.text.count("\r\n") not in {0, found.text.count("\n")}:
        raise _not_here(path, "its lines end in two ways")
    if {char for char in HIDDEN.findall(found.text.replace("\r\n", "\n")) if char not in _KEPT}:
        raise _not_here(path, "it has characters that a page does not show as they are")
    return found.text


def _not_here(path: Path, why: str) -> UserError:
    return UserError(f"{path.name} is edited in an editor: {why}. It lies in {path}", Reason.USAGE, path=str(path))
