"""Keeps every version of plan.md and the task files; what a person edits counts at its gate alone.

What counts is kept a second time below `counts/`, so that an edit at another time can be put back. Both are written by
one driver, under its lease; the journal's digest says which content is the last that our code wrote or took.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.run import sha256_hex
from pipeline.matrix.routing.state import RunState, TaskStatus
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.run.records import remove_record
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.run.run import Run

PLAN: Final = "plan.md"
COUNTS: Final = "counts/"
"""Where the content is kept that counts."""
DROPPED: Final = "dropped/"
"""Where task files go that a later draft dropped or replaced."""
EDITED: Final = "edited/"
"""Where edits are kept that have no effect."""
_TASK: Final = re.compile(r"task-(?:fix-)?[1-9][0-9]*\.md")


def task_file(task_id: str) -> str:
    """Return the name of a task's file."""
    return f"task-{task_id}.md"


def drafts_of(state: RunState) -> tuple[str, ...]:
    """Return the drafts that are in force: the plan, and the tasks that were not dropped."""
    tasks = [task_file(task.id) for task in state.tasks.values() if task.status is not TaskStatus.DROPPED]
    return (PLAN, *tasks)


def open_drafts(state: RunState) -> tuple[str, ...]:
    """Return the drafts of which an edit counts now: those of the gate that the run waits at, or what PLAN revises."""
    at = state.trunk
    if at.step is Step.PLAN or (at.step is Step.GATE and at.gate == "plan"):
        return (PLAN,)
    return tuple(map(task_file, state.queue)) if at.step is Step.GATE and at.gate == "split" else ()


def edited(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of *names* that are not on disk as our code wrote or took them."""
    there = {name: _read(run, name) for name in names if name in run.artifacts}
    return tuple(name for name, content in there.items() if content is None or _differs(run, name, content))


def differing(run: Run, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of those texts that are not the drafts as our code wrote or took them."""
    return tuple(name for name, text in texts.items() if name in run.artifacts and _differs(run, name, _bytes(text)))


def bring_back(run: Run) -> tuple[str, ...]:
    """Put back the drafts that are gone though an edit of them counts now; return their names."""
    gone = {name: counted(run, name) for name in open_drafts(run.state) if _read(run, name) is None}
    return tuple(write_draft(run, name, content) for name, content in gone.items() if content is not None)


def undone_edits(run: Run) -> tuple[str, ...]:
    """Return a sentence for each draft of the open gate that undoes lines of its last edit which was sent back."""
    found: list[str] = []
    for name in open_drafts(run.state):
        stem = f"{'' if name == PLAN else DROPPED}{name.removesuffix('.md')}-"
        versions = [one for one in run.artifacts if re.fullmatch(re.escape(stem) + r"\d+-edited\.md", one)]
        last = max(versions, key=lambda one: int(one.removeprefix(stem).partition("-")[0]), default="")
        drafted, theirs, now = (_lines(run, one) for one in (last.replace("-edited", ""), last, name))
        undone = len((theirs - drafted) - now) + len((drafted - theirs) & now)
        if last and undone:
            lines = "line of your edit ({}) is" if undone == 1 else "lines of your edit ({}) are"
            found.append(f"{undone} {lines.format(last)} undone in {name}")
    return tuple(found)


def without_effect(run: Run) -> tuple[str, ...]:
    """Return the drafts whose edit has no effect, because their gate is not the one that the run waits at."""
    if run.state.has_ended:
        return ()
    still = set(open_drafts(run.state))
    there = [name for name in drafts_of(run.state) if name not in still]
    return tuple(name for name in edited(run, there) if counted(run, name) is not None)


@dataclass(frozen=True)
class VainEdit:
    """A draft that was edited when no edit of it counts: when one would, and what takes it up now, if anything."""

    path: str
    says: str
    instead: str | None


def vain_edit(run: Run, name: str) -> VainEdit:
    """Return what a person is told of an edit of this draft that has no effect."""
    at_gate = run.state.trunk.step is Step.GATE
    if name == PLAN:
        says, command = "it counts at approval point plan; later a new draft takes it up", "reject {run} --to plan"
    else:
        says, command = "it counts at approval point split; later say what you want instead", "reject {run}"
    instead = f'redfirst {command} --feedback "..."'.format(run=run.info.run_id)
    return VainEdit(name, says, instead if at_gate else None)


def counted(run: Run, name: str) -> bytes | None:
    """Return the content of a draft that counts; None where it was not kept (a crash, an older version's run)."""
    kept = _read(run, COUNTS + name)
    return kept if kept is not None and sha256_hex(kept) == run.artifacts.get(name) else None


def write_draft(run: Run, name: str, text: str | bytes) -> str:
    """Write a draft that counts from now on; return its name."""
    run.store.write(COUNTS + name, _bytes(text))
    run.write_artifact(name, text)
    return name


def take_edits(run: Run, contents: Mapping[str, bytes]) -> dict[str, str | None]:
    """Let what a person made of drafts count from now on: the contents that were checked.

    Return the names of those, each with where it is kept now as it was drafted.
    """
    found: dict[str, str | None] = {}
    for name in edited(run, contents):
        drafted = counted(run, name)
        found[name] = None if drafted is None else _keep(run, name, "" if name == PLAN else DROPPED, drafted)
        write_draft(run, name, contents[name])
    return found


def edit_words(name: str, kept: str | None, who: str) -> str:
    """Return that a draft counts as somebody edited it, and where it is kept as it was drafted."""
    return f"{name} counts as {who} edited it" + (f"; as it was drafted it is {kept}" if kept is not None else "")


def redraft(run: Run, texts: Mapping[str, str]) -> list[str]:
    """Write a new draft, by names, over what it replaces; return the names.

    Every version that is replaced stays, as it was drafted and as it was edited: `plan-1.md`, `plan-1-edited.md`. The
    files of tasks that are neither in the draft nor done are moved away.
    """
    done = {task_file(task.id) for task in run.state.tasks.values() if task.status in SETTLED}
    for name in [name for name in run.artifacts if name == PLAN or _TASK.fullmatch(name)]:
        if name not in texts and (name == PLAN or name in done):
            continue
        folder, new = "" if name == PLAN else DROPPED, _bytes(texts.get(name, ""))
        drafted, there = counted(run, name), _read(run, name)
        kept = None if drafted in {None, new} else _keep(run, name, folder, drafted or b"")
        if there not in {None, new, drafted}:
            _keep(run, name, folder, there or b"", edit_of=kept)
        if name not in texts:
            for gone in (COUNTS + name, name):  # in this order: what counts no more is never put back after a crash
                remove_record(run.folder, gone)
    return [write_draft(run, name, text) for name, text in texts.items()]


def put_back(run: Run) -> dict[str, str | None]:
    """Put back the drafts whose edit has no effect; return them, each with where the edit is kept now."""
    found: dict[str, str | None] = {}
    for name in without_effect(run):
        content = counted(run, name)
        if content is not None:
            theirs = _read(run, name)
            found[name] = None if theirs is None else _keep(run, name, EDITED, theirs)
            write_draft(run, name, content)
    return found


def _differs(run: Run, name: str, content: bytes) -> bool:
    # Our code writes `counts/` first: what is equal to it is not a person's, but what a crash left unsaid.
    return sha256_hex(content) != run.artifacts[name] and content != _read(run, COUNTS + name)


def _keep(run: Run, name: str, folder: str, content: bytes, *, edit_of: str | None = None) -> str:
    """Keep a content of a draft as its next version in *folder*, unless it is one already; return its name.

    What a person made of a version (*edit_of*) has its number.
    """
    stem = f"{folder}{name.removesuffix('.md')}-"
    version = re.compile(re.escape(stem) + r"(\d+)(?:-edited)?\.md")
    known = {match[0]: int(match[1]) for match in map(version.fullmatch, run.artifacts) if match is not None}
    digest = sha256_hex(content)
    same = next((kept for kept in known if run.artifacts[kept] == digest), None)
    wanted = f"{edit_of.removesuffix('.md')}-edited.md" if edit_of else ""
    free = wanted if wanted and wanted not in known else f"{stem}{max(known.values(), default=0) + 1}.md"
    kept = same or free
    run.write_artifact(kept, content)
    return kept


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _lines(run: Run, name: str) -> set[str]:
    return {line.strip() for line in (_read(run, name) or b"").decode("utf-8", "replace").split("\n")} - {""}


def _read(run: Run, name: str) -> bytes | None:
    try:
        return run.read(name)
    except OSError:
        return None
