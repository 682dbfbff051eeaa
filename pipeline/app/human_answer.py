"""Hands in a person's answer: finds the desk that waits, makes the form of a report, checks whether it can count.

What is checked before an answer is handed in costs no try: what was changed at the desk, what the report answers for,
what ACCEPTABLE says.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from difflib import ndiff
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.agents.backends.desk import Asked, Desk, desk_around, desks_gone, desks_of
from pipeline.agents.backends.layout import Difference, Manifest
from pipeline.agents.dispatch.desk_gate import DeskRules
from pipeline.agents.dispatch.prompt import request_part
from pipeline.characters import visible
from pipeline.config.user_folders import short, state_folder
from pipeline.errors import UserError
from pipeline.judge.policy.rights import without_asking
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanAndTasks, PlanReport, SplitReport
from pipeline.judge.reports.fields import Report, Verdict
from pipeline.judge.reports.findings import capped
from pipeline.judge.reports.parse import parse_report, read_report
from pipeline.judge.reports.reviews import FAULTS, CheckReview, SplitAnswers, SuiteJudgement, WorkFinding
from pipeline.judge.reports.schema_errors import Fault
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.judge.reports.tasks import Criterion, Task
from pipeline.judge.reports.work_reports import Built, ReadyTests
from pipeline.judge.reports.yaml_form import Blank, Filled, blanks_of, form_text, marked, read_form, unmarked, with_head
from pipeline.outcomes import Reason
from pipeline.progress import few
from pipeline.repo import Repository
from pipeline.run.activity_file import read_now
from pipeline.run.drafts import counted
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import load_run
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import issue_of, state_of_run
from pipeline.run.summary_facts import place_of
from pipeline.steps.asking import criteria
from pipeline.steps.asking.reviews import open_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.judge.reports.proofs import Edit
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


def waiting_desk(run: str | None, role: Role | None, task: str | None, command: str = "hand-in") -> tuple[Desk, Asked]:
    """Return the one desk that waits here, or at which a run waits, with what is asked there.

    Args:
        run: The run; None for any.
        role: Who is asked; None for any.
        task: The task that it is about; None for any.
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
    known = [(desk, asked) for desk, asked in waiting if role in {None, asked.role} and task in {None, asked.task}]
    if len(known) == 1:
        return known[0]
    shown = ((each, f" --task {each.task}" if each.task else "") for _, each in known or waiting)
    commands = tuple(f"redfirst {command} {each.run_id} --role {each.role}{about}" for each, about in shown)
    if known:
        raise UserError("Several desks wait. Say which.", Reason.USAGE, details={"desks": commands}, actions=commands)
    if waiting:
        raise UserError("No such desk waits here.", Reason.USAGE, details={"desks": commands}, actions=commands)
    for place in runs:
        _refuse_gone(place)
    driven = [place.folder for place in runs if FileLease.is_held(place.folder)]
    if driven:  # it measures, or asks somebody else, and may ask a person next
        raise UserError(
            f"Nobody is asked at the moment: {'; '.join(map(_at_work, driven))}. When a person is asked, show and the "
            "terminal of the run say so; ask again then.",
            Reason.USAGE,
            actions=tuple(f"redfirst desk {each.name}" for each in driven),
        )
    if runs and _only_goes_on(runs[0]):  # its driver is gone, and what was handed in for it is kept
        raise UserError(
            f"Nothing waits for a person here. {runs[0].name} is to go on first: what was answered is kept.",
            Reason.USAGE,
            actions=(f"redfirst resume {runs[0].name}",),
        )
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


def _only_goes_on(place: RunPlace) -> bool:
    return load_run(place.folder, driving=False).state.reason in {None, Reason.INTERRUPTED}


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
    check(desk, asked, content)
    difference = checked_files(desk, asked)
    if (fault := unchanged(asked, content, difference)) is not None:
        raise _refusal(asked, fault)
    desk.put(desk.report, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return _document(desk, asked, content, difference)


def checked_files(desk: Desk, asked: Asked) -> Difference:
    """Return what was changed at a desk, when the gate takes it.

    Raises:
        UserError: it does not, or a file cannot be taken over; `details` lists each path with its rule.
    """
    difference = _difference(desk, asked)
    if asked.writable:
        if difference.strange:
            told = "; ".join(f"{visible(path)} ({what})" for path, what in list(difference.strange.items())[:_SHOWN])
            why = f"Nothing was handed in. The run cannot take over {told}."
            raise UserError(why, Reason.USAGE, path=str(desk.files))
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


def _refuse_by_gate(difference: Difference, desk: Desk) -> None:
    """Refuse what the run's gate would: it takes all or nothing, and would use up the try."""
    try:
        rules = DeskRules.model_validate(json.loads(desk.rules.read_bytes()))
    except (OSError, ValueError, RecursionError):  # laid out before there were rules: the run says it then
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
        "remarks": remarks(asked, content),
        "waiting": FileLease.is_held(asked.run_folder) if is_a_run else None,
    }


_BLOCKING: Final = ("BLOCK", "HIGH")
SHOWS_CRITERIA: Final = ("write-tests", "build")
"""The kinds whose report says which tests show which criterion."""
_WORK: Final = ("implement", "stub", "seam")
_EARLIER: Final = ("diagnosis", "measured", "candidate_patch")
"""The artifacts of who is asked again: work can lie at the desk."""
_ANSWERED: Final = ("review-plan", "review-split")
"""The kinds that answer the questions of a split, where there are tasks."""


def tasks_of(asked: Asked) -> list[Task]:
    """Return the tasks that are asked about."""
    files = [*asked.artifact("tasks"), *asked.artifact("task")]
    found = [parse_task_md(file.read_text(encoding="utf-8")) for file in files]
    return [task for task in found if isinstance(task, Task)]


def accepted(asked: Asked, content: Mapping[str, Any], *, prior: bool) -> dict[str, Any]:
    """Return a review with all that ACCEPTABLE says where nothing else is said: each question, each criterion.

    Args:
        asked: What is asked.
        content: The report.
        prior: Whether it also says that every open finding is resolved.
    """
    found = dict(content)
    if found.get("verdict") != Verdict.ACCEPTABLE.value:
        return found
    if asked.kind in _ANSWERED and "answers" not in asked.without:
        found["answers"] = {**dict.fromkeys(SplitAnswers.model_fields, True), **found.get("answers", {})}
    if asked.to_answer:
        said = list(found.get("criteria", ()))
        known = {(one.get("task"), one.get("id")) for one in said}
        left = (one for one in asked.to_answer if one.id != FAULTS and (one.task, one.id) not in known)
        found["criteria"] = [*said, *({"task": one.task, "id": one.id, "met": True} for one in left)]
    if prior and (open_ones := asked.open_findings()):
        found["prior"] = [{"id": one.id, "status": "resolved"} for one in open_ones]
    return found


def check(desk: Desk, asked: Asked, content: dict[str, Any]) -> None:
    """Return when the report can count.

    Raises:
        UserError: it cannot; `pointer` says where.
    """
    found = parse_report(asked.kind, asked.role, asked.question, content)
    faults = (
        [Fault(found.pointer, found.sentence)] if isinstance(found, Malformed) else _untrue(desk, asked, content, found)
    )
    if faults:
        how = f"Give a filled-in copy of {short(desk.template, os.environ)} with --report FILE."
        raise _refusal(asked, faults[0], how)


def _refusal(asked: Asked, fault: Fault, how: str = "") -> UserError:
    said = f"Nothing was handed in. {fault.text.rstrip('.')}. {how}".rstrip()
    return UserError(said, Reason.USAGE, pointer=fault.pointer, details={"dispatch": asked.dispatch})


def unchanged(asked: Asked, content: Mapping[str, Any], difference: Difference) -> Fault | None:
    """Return what is wrong with COMPLETE where nothing was done: it would cost a try.

    What was asked before may have left work at the desk that is enough.
    """
    if content.get("result") != "COMPLETE" or asked.kind not in _WORK or not asked.write:
        return None
    if asked.reask or any(map(asked.artifact, _EARLIER)) or difference.changed or difference.removed:
        return None
    return Fault(
        "/result",
        "COMPLETE, and nothing is changed at the desk: that is no work, and would cost a try. Change what you may "
        "change there, or say INCOMPLETE with `blocking_issue`, or CANNOT_PROCEED with `missing` (--give-up REASON).",
    )


def remarks(asked: Asked, content: Mapping[str, Any]) -> list[str]:
    """Return how a report that counts is taken otherwise than it says: a finding weighs what its evidence bears."""
    report = parse_report(asked.kind, asked.role, asked.question, content)
    found = report.findings if isinstance(report, CheckReview | SuiteJudgement) else ()
    return [
        f"{one.headline[:60]!r} ({one.severity}) counts as {capped(one)}: it has no evidence"
        + (", unless its proof holds" if isinstance(one, WorkFinding) and one.proof is not None else "")
        for one in found
        if capped(one) is not one.severity
    ]


def faults_of(desk: Desk, asked: Asked, content: dict[str, Any]) -> list[Fault]:
    """Return everything that keeps a report from counting, each with its place."""
    found = read_report(asked.kind, asked.role, asked.question, content)
    return found.faults if found.report is None else _untrue(desk, asked, content, found.report)


def _untrue(desk: Desk, asked: Asked, content: Mapping[str, Any], report: Report) -> list[Fault]:
    """Return what is wrong with a well-formed report: the run would ask again, or go on as if nothing were said."""
    found = [_without_a_finding(content), _left_open(asked, content)]
    for refuse in _refusals(asked):
        malformed = refuse(report)
        found += [Fault(malformed.pointer, malformed.sentence)] if malformed is not None else []
    if isinstance(report, CheckReview | SuiteJudgement):
        found += proof_faults(desk, report)
    if isinstance(report, PlanReport | PlanAndTasks | SplitReport):
        from pipeline.app.report_faults import draft_faults  # noqa: PLC0415  (it loads all that drives a run)

        found += draft_faults(asked, content, report)
    if isinstance(report, ReadyTests | Built):
        from pipeline.app.report_faults import id_faults  # noqa: PLC0415  (it reads what was measured, and files)

        found += id_faults(desk, asked, report.on_tests if isinstance(report, Built) else report)
    return [fault for fault in found if fault is not None]


def _refusals(asked: Asked) -> list[Callable[[Report], Malformed | None]]:
    """Return what the run itself asks of such a report, as far as it can be known here."""
    tasks = tasks_of(asked)
    match asked.kind:
        case "write-tests" if tasks:
            return [partial(criteria.unshown, tasks[0])]
        case "build" if tasks:
            return [lambda report: criteria.unshown(tasks[0], report.on_tests) if isinstance(report, Built) else None]
        case "review-result":
            return [partial(criteria.unanswered, asked.to_answer)]
        case "review-plan" | "review-split" if "answers" not in asked.without and not asked.reask:
            return [open_questions]
        case _:
            return []


def _without_a_finding(content: Mapping[str, Any]) -> Fault | None:
    """Return what is wrong with a verdict that holds nothing up: without a finding it counts as ACCEPTABLE."""
    prior: list[dict[str, Any]] = content.get("prior") or []
    stands = any(entry.get("status") == "open" for entry in prior)
    if content.get("verdict") not in {"NEEDS WORK", "BLOCK"} or content.get("findings") or stands:
        return None
    return Fault(
        "/findings",
        f"{content['verdict']} needs a finding, else it would count as ACCEPTABLE. Give a report "
        'with a finding: "findings": [{"severity": "HIGH", "title": "...", "problem": "...", "suggestion": "...", '
        '"evidence": "..."}]',
    )


def _left_open(asked: Asked, content: Mapping[str, Any]) -> Fault | None:
    """Return what is wrong with accepting what has open blockers that nobody answers: the run would ask again."""
    answered = {entry.get("id") for entry in content.get("prior") or ()}
    left = [one.id for one in asked.open_findings() if one.severity in _BLOCKING and one.id not in answered]
    if content.get("verdict") != Verdict.ACCEPTABLE.value or not left:
        return None
    return Fault(
        "/prior",
        f"The verdict is ACCEPTABLE, and {', '.join(left)} has no answer in `prior`. Answer each open finding, as "
        f'resolved, open or withdrawn: "prior": [{{"id": "{left[0]}", "status": "resolved", "note": "..."}}]',
    )


def proof_faults(desk: Desk, report: CheckReview | SuiteJudgement) -> Iterator[Fault]:
    """Yield what keeps proofs from being run, as far as it can be seen at the desk."""
    for number, finding in enumerate(report.findings):
        proof, at = getattr(finding, "proof", None), f"/findings/{number}/proof"
        if proof is None:
            continue
        if proof.test is not None and (desk.files / proof.test.path).exists():
            said = f"{proof.test.path} is there already: a proof is a new file. Remove what you tried at your desk."
            yield Fault(f"{at}/test/path", said)
        if proof.edit is not None:
            yield from (Fault(f"{at}/edit/{key}", said) for key, said in _of_edit(desk.files, proof.edit))


def _of_edit(files: Path, edit: Edit) -> Iterator[tuple[str, str]]:
    try:
        content = (files / edit.path).read_bytes()
    except OSError:
        yield "path", f"{edit.path} is no file of the work."
        return
    if (times := content.count(edit.old.encode())) != 1:
        yield "old", f"It is {times} times in {edit.path}: give so much of the text that it is there once."


_HOW: Final = (
    "Write behind the fields, save, and close the editor. Text may go on in the lines below its field, indented; with "
    "a | behind the field it may have any letters and colons. Lines that begin with # are comments. Empty fields are "
    "left out; {unchanged}."
)
_NOTHING: Final = "an unchanged form hands nothing in"
_ASKED_ABOUT: Final = "an unchanged form is handed in only if you say so"
_EDITED: Final = "What was edited at the approval point since is not in it. Take it over here, or it is undone:"


@dataclass(frozen=True)
class ReportForm:
    """The form of one desk.

    Args:
        desk: The desk.
        asked: What is asked there.
        difference: What was changed at it.
    """

    desk: Desk
    asked: Asked
    difference: Difference

    @property
    def file(self) -> Path:
        """Return where the form lies; it stays, so that nothing that was written is lost."""
        return self.desk.form

    def opened(self) -> str:
        """Return the form as it is opened, and lay it into its file.

        It is the one that was begun, with what is wrong in it; else it begins with the report that is to be revised, or
        empty.
        """
        previous = previous_report(self.asked)
        head = self._head(previous)
        if not self.file.exists():
            text = form_text(self._blank(), head, self._begun_with(previous), self._notes())
            self.desk.put(self.file, text)
            return text
        self.desk.put(self.file, with_head(self._written(), head))
        text, filled = self.read()
        return self.mark(text, filled, self.faults(filled))

    def read(self) -> tuple[str, Filled]:
        """Return the text that was saved, without our remarks, and what it says."""
        text = unmarked(self._written())
        return text, read_form(self._blank(), text, self._begun())

    def _written(self) -> str:
        """Return the text of the form; one in another encoding is kept aside, since letters of it are lost."""
        content = self.file.read_bytes()
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.desk.set_aside(self.file)
            text = content.decode("utf-8-sig", errors="replace")
            self.desk.put(self.file, text)
            return text

    def report(self, filled: Filled) -> dict[str, Any]:
        """Return the report that a form says; ACCEPTABLE says yes wherever nothing else is said."""
        return accepted(self.asked, filled.report, prior=False)

    def faults(self, filled: Filled) -> list[Fault]:
        """Return everything that keeps the report from counting; nothing where the form says nothing yet."""
        if not (filled.report or filled.faults):
            return []
        report = self.report(filled)
        vain = unchanged(self.asked, report, self.difference)
        return filled.faults or [*faults_of(self.desk, self.asked, report), *([vain] if vain else [])]

    def mark(self, text: str, filled: Filled, faults: list[Fault]) -> str:
        """Write each problem above its field, and return the form as it is opened again."""
        told = marked(text, filled.lines, faults)
        self.desk.put(self.file, told)
        return told

    def _blank(self) -> Blank:
        return blanks_of(self.asked.report_schema)

    def _begun(self) -> dict[str, list[dict[str, str]]]:
        criteria = [{"task": one.task, "id": one.id} for one in self.asked.to_answer]
        if self.asked.kind in SHOWS_CRITERIA:
            criteria = [{"id": one.id} for one in self._criteria()]
        return {"criteria": criteria, "prior": [{"id": one.id} for one in self.asked.open_findings()]}

    def _begun_with(self, previous: PreviousReport | None) -> Mapping[str, Any]:
        """Return what the form begins with: the previous report, with the criteria that it says nothing of."""
        begun = self._begun()
        if previous is None or not begun["criteria"]:
            return begun if previous is None else previous.report
        said = previous.report.get("criteria", ())
        known = {one["id"] for one in said}
        return {**previous.report, "criteria": [*said, *(one for one in begun["criteria"] if one["id"] not in known)]}

    def _criteria(self) -> list[Criterion]:
        return [one for task in tasks_of(self.asked) for one in task.criteria]

    def _notes(self) -> dict[str, list[str]]:
        shown = [f"{one.id}: {one.text}" for one in self._criteria()] if self.asked.kind in SHOWS_CRITERIA else []
        met = [f"task {one.task}, {one.id}: {one.text}" for one in self.asked.to_answer]
        open_ones = self.asked.open_findings()
        return {
            "criteria": list(map(visible, (*shown, *met))),
            "prior": [visible(f"{one.id} [{one.severity}] {one.title}") for one in open_ones],
        }

    def _head(self, previous: PreviousReport | None) -> list[str]:
        asked = self.asked
        about = f", task {asked.task}" if asked.task else ""
        question = f" ({asked.question})" if asked.question else ""
        lines = [f"Your report as @{asked.role}: {asked.kind}{question}{about}."]
        lines += came_back(asked)
        if asked.reask:
            lines.append(visible(f"Your last answer did not count: {asked.reask}"))
        if asked.writable:
            changed = [*self.difference.changed, *self.difference.removed]
            lines.append(visible(f"You changed: {few(changed, _SHOWN) or 'nothing'}."))
        if previous is not None:
            edited = f" {_EDITED}" if previous.edits else ""
            lines.append(visible(f"It began with the report of {previous.dispatch}, to be revised.{edited}"))
            lines += [f"  {visible(edit)}" for edit in previous.edits[:_SHOWN]]
            more = len(previous.edits) - _SHOWN
            lines += [f"  and {more} more: artifacts/previous_* beside this file"] if more > 0 else []
        return [*lines, _HOW.format(unchanged=_NOTHING if previous is None else _ASKED_ABOUT)]


_SAID: Final = ("feedback", "findings", "diagnosis")
"""The artifacts that say why something is asked again."""
_REDRAFTED: Final = ("previous_plan", "previous_tasks")
"""The artifacts of whoever is to draft again; what was edited at a gate stands in them."""
_TESTS: Final = "write-tests"
_READY: Final = "TESTS_READY"
_MOST_LINES: Final = 40
_MOST_CHARS: Final = 2000
_SECTION: Final = re.compile(r"^## (.*)$")
_HEADING: Final = re.compile(r"^#+ ")


@dataclass(frozen=True)
class PreviousReport:
    """The report of an earlier dispatch of the same kind, and the lines that a person made other since (`- `, `+ `)."""

    dispatch: str
    report: Mapping[str, Any]
    edits: tuple[str, ...]


def came_back(asked: Asked) -> list[str]:
    """Return why something is asked again: the words of a person, a review or a measurement, below a heading.

    Of long ones the begin is told, with the place of the whole.
    """
    told: list[str] = []
    for name in _SAID:
        text = "\n".join(file.read_text(encoding="utf-8") for file in asked.artifact(name))
        lines = [_plain(line.rstrip()) for line in text.split("\n") if line.strip()]
        room = _MOST_CHARS
        for line in lines[:_MOST_LINES]:
            told += [line if len(line) <= room else f"{line[:room]} ..."] if room > 0 else []
            room -= len(line)
        if room < 0 or len(lines) > _MOST_LINES:
            told.append(f"(all of it: artifacts/{name} beside the desk)")
    return ["What led here:", *(f"  {line}" for line in told)] if told else []


def _plain(line: str) -> str:
    return visible(_HEADING.sub("", _SECTION.sub(r"\1:", line)), keep="\t")


def previous_report(asked: Asked) -> PreviousReport | None:
    """Return the last report of what is to be done again; None where something else is wanted, or none is on disk.

    Where tasks are done a split is about what is left, so that the report of the one before says too much.
    """
    if not _is_again(asked):
        return None
    try:
        run = Run.load(asked.run_folder, driving=False)
    except UserError:  # what is wrong with a run is told by the command that drives it
        return None
    for record in reversed(run.records.values()):
        result = run.results.get(record.dispatch)
        if record.kind != asked.kind or result is None or result.signal is not None or not result.report:
            continue
        is_tests = record.task == asked.task and result.report.get("verdict") == _READY
        if is_tests if asked.kind == _TESTS else not result.report.get("question"):
            return PreviousReport(record.dispatch, result.report, tuple(_edits(run, asked)))
    return None


def _is_again(asked: Asked) -> bool:
    if asked.kind == _TESTS:
        return bool(asked.artifact("findings"))
    return any(asked.artifact(name) for name in _REDRAFTED) and not asked.artifact("done_tasks")


def _edits(run: Run, asked: Asked) -> Iterator[str]:
    """Yield the lines by which what came back differs from what was drafted."""
    for file in (file for name in _REDRAFTED for file in asked.artifact(name)):
        drafted, now = (counted(run, file.name) or b"").decode("utf-8", "replace"), file.read_text(encoding="utf-8")
        for line in ndiff(drafted.splitlines(), now.splitlines()) if drafted else ():
            if line.startswith(("- ", "+ ")) and line[2:].strip():
                yield line
