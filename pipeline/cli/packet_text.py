"""Words what an approver sees at a gate: `redfirst show --packet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.cli.show_text import task_text
from pipeline.cli.text import print_text
from pipeline.service.documents import finding_text
from pipeline.service.other_worktrees import advice_as_typed, answers_as_typed
from pipeline.service.packets import packet
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.packets import Packet


def show_packet(folder: Path, here: Repository, at: str | None, *, as_document: bool) -> None:
    """Print what is to be answered at the gate of a run."""
    from pipeline.runs.roster import seen_from  # noqa: PLC0415  (heavy, and only for this)

    worktree = folder.parents[1]
    with advice_as_typed(here, worktree, folder.name):
        found = packet(seen_from(here, folder), folder, at)
    answers = answers_as_typed(found.answers, here, worktree, folder.name)
    found = found.model_copy(update={"answers": answers})
    if as_document:
        print_document(found)
    else:
        print_text(visible_lines(packet_text(found)))


def packet_text(packet: Packet) -> str:
    """Return a packet: what is asked, all that it rests on, and what each answer does."""
    of = f" of {packet.issue}: {packet.title}" if packet.issue else f": {packet.title}"
    parts = [f"{packet.run_id}{of}\nwaits at {packet.place} since {packet.asked_at}"]
    parts += [packet.question] if packet.question else []
    for file in (one for one in packet.files if one.text != packet.question):
        counts = " (an edit of it counts)" if file.counts else ""
        parts.append(f"--- {file.name}{counts}\n{file.text}")
    parts += [f"--- diff\n{packet.diff.patch}"] if packet.diff is not None else []
    for title, lines in (
        ("tasks", tuple(line for task in packet.tasks for line in task_text(task))),
        ("to commit", packet.commits),
        ("open findings", tuple(map(finding_text, packet.findings))),
        ("notes", packet.notes),
    ):
        parts += ["\n".join([f"--- {title}", *(f"  {line}" for line in lines)])] if lines else []
    parts.append(f"cost so far: {packet.spent}\ndigest: {packet.digest}")
    parts.append("\n".join(f"  next: {one.command}\n        {one.does}" for one in packet.answers))
    return "\n\n".join(part.rstrip("\n") for part in parts)
