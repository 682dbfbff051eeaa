"""Backend `human`: a person does the role's work at a desk, and the same gate judges it (contract 5).

There is no box and no gateway: nothing of an agent runs. This waits for the hand-in, which `redfirst hand-in` makes
from another terminal. Where the process dies, or the user stops it, the desk stays; asked the same thing again about
the same code, the person finds it as they left it, and a hand-in that was made meanwhile counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from pipeline.agents.backends.desk import POINTER, Asked, Desk
from pipeline.agents.backends.layout import Difference, copy_back, copy_out, digest, manifest_of
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended, Usage
from pipeline.characters import visible
from pipeline.config.user_folders import short
from pipeline.judge.policy.rights import without_asking
from pipeline.judge.reports.kinds import report_schema
from pipeline.judge.reports.report_templates import blanks
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipeline.config.agents import AgentConfig

TIMEOUT_S: Final = 7 * 24 * 3600.0
"""The seconds that a person has unless the configuration says otherwise."""
_LOOK_S: Final = 0.25
_REPORT_BYTES: Final = 2_000_000
_SHOWN: Final = 5
_HOW_AGENTS_ANSWER: Final = re.compile(r"^# How to answer\n.*?(?=^# What is asked: )", re.MULTILINE | re.DOTALL)
_REASKED: Final = """\
Your last answer did not count; below stands why. Only an agent's workspace is put back: your desk is as you left it.
"""
_FREE: Final = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)
"""The usage of a person: no tokens and no cost."""


class HumanBackend:
    """Lays out a desk, tells the person where it is, and waits for the hand-in."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Do nothing: a person needs no program."""

    async def run(self, job: AgentJob) -> AgentResult:
        """Wait for the hand-in and return the result. After a cancellation or time-out the desk stays.

        Raises:
            OSError: the disk does not take the desk.
        """
        began = anyio.current_time()
        desk, asked = await anyio.to_thread.run_sync(_laid_out, job)
        if desk.report.is_file():
            job.say(f"{asked.dispatch}: takes what was handed in")
        else:
            _announce(job, desk, asked)
        with anyio.move_on_after(job.timeout_s):
            while not desk.report.is_file():  # noqa: ASYNC110  (the event is a file's, and a person is not quick)
                await anyio.sleep(_LOOK_S)
        if not desk.report.is_file():
            late = _Work(complaint=f"Nothing was handed in within {job.timeout_s:g} seconds.")
            return _answer(late, anyio.current_time() - began, Ended.TIMED_OUT)
        work = await anyio.to_thread.run_sync(_taken, job, desk)
        return _answer(work, anyio.current_time() - began)


@dataclass(frozen=True)
class _Work:
    """The work that was handed in: the report, a log of changes, and a complaint."""

    report: bytes | None = None
    log: str = ""
    complaint: str | None = None


def _laid_out(job: AgentJob) -> tuple[Desk, Asked]:
    """Return the desk of the slot and its request; an existing desk for the same code is used again."""
    desk = Desk(_place(job))
    desk.folder.mkdir(mode=0o700, exist_ok=True)
    desk.folder.chmod(0o700)
    manifest = manifest_of(job.view.reach)
    asked, before = _asked(job, digest(manifest)), desk.asked()
    if before is None or (before.base != asked.base and asked.reask is None):
        _clear(job, desk)
        desk.lay_out(lambda files: copy_out(job.view.reach, files))
    if before is None or before.token != asked.token:
        desk.set_aside(desk.report)
        if asked.reask is None:
            desk.set_aside(desk.form)
    desk.put(desk.base, json.dumps(manifest))
    if (script := job.desk_tests(desk.files.resolve()) if job.desk_tests is not None else None) is not None:
        desk.put(desk.tests, script)
        desk.tests.chmod(0o700)
    if job.desk_rules is not None and job.view.writable:
        desk.put(desk.rules, job.desk_rules)
    for mount in job.artifacts:
        if desk.artifacts.is_symlink():
            desk.artifacts.unlink()
        desk.set_aside(desk.artifacts)
        desk.artifacts.symlink_to(mount.source.resolve())
    reports = blanks(job.report_schema)
    desk.put(desk.prompt, _prompt(job, desk, asked, len(reports)))
    desk.put(desk.template, json.dumps(_begun(reports, asked), indent=2, ensure_ascii=False) + "\n")
    desk.ask(asked)
    (job.exchange / POINTER).write_text(str(desk.folder.resolve()), encoding="utf-8")
    return desk, asked


def _place(job: AgentJob) -> Path:
    """Return the folder of the slot's desk, beside its session's, in which other agents may have been."""
    if job.session is None:
        return job.exchange / "person"
    folder = job.session.mount.reach
    return folder.with_name(f"{folder.name}.person")


def _clear(job: AgentJob, desk: Desk) -> None:
    aside = desk.set_aside(desk.files)
    if aside is not None:
        job.say(f"the desk was laid out with other code; it is kept at {aside}")


def _asked(job: AgentJob, base: str) -> Asked:
    document: dict[str, Any] = json.loads(job.document)
    same = [document.get(key) for key in ("run_id", "dispatch", "kind", "question", "task", "attempt", "reask")]
    return Asked(
        run_id=document.get("run_id", ""),
        dispatch=document["dispatch"],
        role=document["role"],
        kind=document["kind"],
        question=document.get("question"),
        task=document.get("task"),
        reask=without_asking(document.get("reask") or "")[0] or None,
        writable=job.view.writable,
        write=tuple(f"{grant['path']} ({grant['action']})" for grant in document.get("write", ())),
        token=hashlib.sha256(json.dumps([*same, base]).encode()).hexdigest(),
        base=base,
        exchange=str(job.exchange),
        without=tuple(_not_asked(document)),
        to_answer=document.get("to_answer", ()),
    )


def _not_asked(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of such a report that this request does not have."""
    whole = report_schema(document["kind"], document["role"], document.get("question"))
    asked = document.get("report_schema", whole).get("properties", {})
    yield from (name for name in whole.get("properties", {}) if name not in asked)


def _begun(reports: list[dict[str, object]], asked: Asked) -> object:
    """Return the templates, or the one, with an entry for each criterion and open finding that is to be answered."""
    criteria: list[dict[str, object]] = [
        {"task": one.task, "id": one.id, "met": None, "note": ""} for one in asked.to_answer
    ]
    if asked.kind in {"write-tests", "build"}:
        tasks = [parse_task_md(file.read_text(encoding="utf-8")) for file in asked.artifact("task")]
        ids = [one.id for task in tasks if isinstance(task, Task) for one in task.criteria]
        criteria = [{"id": id_, "tests": [], "reason": ""} for id_ in ids]
    prior: list[dict[str, object]] = [{"id": one.id, "status": "", "note": ""} for one in asked.open_findings()]
    begun = {name: found for name, found in (("criteria", criteria), ("prior", prior)) if found}
    found = [each | {name: found for name, found in begun.items() if name in each} for each in reports]
    return found[0] if len(found) == 1 else found


def _prompt(job: AgentJob, desk: Desk, asked: Asked, alternatives: int) -> str:
    """Return the agent's prompt with paths of the host, after instructions for the person."""
    text, _ = without_asking(_HOW_AGENTS_ANSWER.sub("", job.prompt, count=1))  # a person has a form
    for mount, here in ((job.view, desk.files), *((mount, desk.artifacts) for mount in job.artifacts)):
        text = text.replace(str(job.box.inside(mount.source, mount.target)), here.name)
    go, hand_in = (desk_command(name, asked) for name in ("desk", "hand-in"))
    choice = f" It has {alternatives} reports: keep one, and drop the brackets." if alternatives > 1 else ""
    accepting = f"{asked.said_by_acceptable}\n" if asked.said_by_acceptable else ""
    return f"""\
# To the person who plays @{asked.role}: {asked.request}

Work in `desk` beside this file, a copy of the code; `{go}` goes there. Paths below are from here.
{_may_change(asked)}
{_REASKED if asked.reask else ""}{_tests(desk)}\
When you are done: `{hand_in}` opens your editor on a form for the report. You can also fill in a
copy of `report-template.json` beside this file and add `--report FILE`.{choice}
{accepting}\
Below stands what an agent would be told. You may run the code and use any tool that you have, also where it says that
you may not. You need not hand in as it says.

---

{text}"""


def _announce(job: AgentJob, desk: Desk, asked: Asked) -> None:
    job.say(f"{asked.dispatch}: it is your turn, as @{asked.role}: {asked.request}")
    if asked.reask:
        job.say(f"  your last answer did not count: {asked.reask}")
        job.say("  at your desk all is as you left it")
    if not _is_run(asked):
        job.say(f"  your desk: cd {_place_to_type(desk.files)}")
    job.say(f"  go there: {desk_command('desk', asked)}")
    job.say(f"  {_may_change(asked)}")
    job.say(f"  hand in: {desk_command('hand-in', asked)}")
    if _is_run(asked):
        job.say("  Ctrl-C stops waiting; the desk stays, and resume goes on with it")


def _may_change(asked: Asked) -> str:
    if not asked.writable:
        return "Changes there are not taken over: the report is the whole answer."
    return f"You may change: {', '.join(asked.write)}." if asked.write else "PROMPT.md says what you may change."


def _tests(desk: Desk) -> str:
    if not desk.tests.exists():
        return ""
    return (
        "`run-tests` beside this file runs the tests over your copy as the run will, but as you, not in a box. Give\n"
        "it ids or files; without any it runs all.\n"
    )


def desk_command(name: str, asked: Asked) -> str:
    """Return a command for this desk; outside a run it names none, as it is used at the desk."""
    return f"redfirst {name} {asked.run_id} --role {asked.role}" if _is_run(asked) else f"redfirst {name}"


def _is_run(asked: Asked) -> bool:
    return asked.run_folder.parent.name == ".workflow"


def _place_to_type(path: Path) -> str:
    quoted = shlex.quote(str(path))
    return quoted if quoted != str(path) else short(path, os.environ)


def _taken(job: AgentJob, desk: Desk) -> _Work:
    """Copy the desk's files into the view and return the work; the hand-in stays in case this process dies."""
    with desk.report.open("rb") as file:
        report = file.read(_REPORT_BYTES)
    if not job.view.writable:
        return _Work(report)
    try:
        named = {grant["path"] for grant in json.loads(job.document).get("write", ())}
        difference = copy_back(desk.files, job.view.reach, named)
    except OSError as error:
        return _Work(report, complaint=f"The desk's files could not be taken over: {error}.")
    return _Work(report, _log(difference), _strange(difference))


def _log(difference: Difference) -> str:
    lines = [f"changed {path}" for path in difference.changed] + [f"removed {path}" for path in difference.removed]
    lines += [f"left out {path}: tools built it" for path in difference.left_out]
    return "".join(f"{line}\n" for line in lines)


def _strange(difference: Difference) -> str | None:
    if not difference.strange:
        return None
    told = "; ".join(f"{visible(path)} ({what})" for path, what in list(difference.strange.items())[:_SHOWN])
    return f"These are at the desk and cannot be taken over: {told}."


def _answer(work: _Work, seconds: float, ended: Ended = Ended.OK) -> AgentResult:
    return AgentResult(
        ended=ended,
        exit_code=0 if ended is Ended.OK else None,
        report_file=work.report,
        stdout=work.log.encode(errors="surrogateescape"),
        seconds=seconds,
        complaint=work.complaint,
        usage=_FREE,
    )
