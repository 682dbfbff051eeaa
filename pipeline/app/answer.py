"""Records a person's answer to a run that waits. The run then stands queued, and anybody may drive it on.

Nothing is driven here, so no box is built and no agent has to be there. Two answers at once cannot both count: each
is given under the lease of the run, to the gate that is open then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from pydantic import Field, ValidationError

from pipeline.app import gate_packets
from pipeline.app.driving import keep_at_hub, look_for_conflicts, put_away, undo_edits
from pipeline.app.next_lines import what_stays
from pipeline.app.ports import context_of, place_of_run
from pipeline.app.run_config import refuse_recursion
from pipeline.characters import HIDDEN
from pipeline.config.model import Config
from pipeline.config.tables import Gates
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.judge.reports.edited import plan_form, task_form
from pipeline.judge.reports.fields import path_problem
from pipeline.judge.reports.hygiene import lint_plan
from pipeline.judge.reports.problems import Problem, Weight
from pipeline.judge.reports.proofs import ProvingTest
from pipeline.judge.reports.tasks import Task, execution_order
from pipeline.matrix.engine.journal_kinds import Answerer, ConfigChanged, GateAnswered, InputGiven
from pipeline.matrix.engine.run import sha256_hex
from pipeline.matrix.routing.state import Event, TaskStatus
from pipeline.outcomes import Outcome, Reason
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.drafts import PLAN, bring_back, differing, edit_words, open_drafts, take_edits, task_file
from pipeline.run.files import write_atomic
from pipeline.run.gates import WAYS_BACK
from pipeline.run.hub import superseded_error
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.records import is_of_recipe
from pipeline.run.run import Run
from pipeline.run.run_ref import drop_publication, keep
from pipeline.run.runs_of_repository import Claimant, Roster, claimant, is_named, orphans
from pipeline.run.store import give_back, gone_on
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.boxes.orphans import end_lost
from pipeline.steps import failure, table
from pipeline.steps.asking.drafts import in_order, lint_each, lint_together
from pipeline.steps.asking.proofs import PROOF, work_of
from pipeline.steps.context import Context
from pipeline.steps.publication.moving import Given, take_back
from pipeline.steps.recipe_context import RecipeContext
from pipeline.testing.measure.proofs import MOST_CHARACTERS, refusal_of_test
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.app.ports import ContextT
    from pipeline.app.start import Act
    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun


_SHOWN: Final = 5


def check_edits(ctx: Context, texts: Mapping[str, str], tasks: Mapping[str, Task]) -> None:
    """Return if everything that was edited at this gate can be used.

    Args:
        ctx: The run.
        texts: The drafts of the gate by their names, as they are to count.
        tasks: What those of them that are tasks say, by id.

    Raises:
        UserError: something cannot; the message has file, line and what is accepted there.
    """
    names = differing(ctx.run, texts)
    if PLAN in names:
        files, problems = plan_form(texts[PLAN])
        existing = {entry.path for entry in ctx.repository.entries(ctx.state.start)}
        _refuse(ctx, {PLAN: [*problems, *lint_plan(texts[PLAN], files=files, existing=existing)]})
    elif names:
        by_id = {task_id: texts[task_file(task_id)] for task_id in tasks}
        _refuse(ctx, {task_file(name): list(_of_ids(ctx, name, task, by_id[name])) for name, task in tasks.items()})
        _refuse(ctx, _of_tasks(ctx, tuple(tasks.values()), by_id))


def refuse_removal(ctx: Context) -> None:
    """Return if no file that a person may edit at this gate is gone.

    Raises:
        UserError: one was; it is put back.
    """
    gone = bring_back(ctx.run)
    if gone:
        run_id = ctx.run.info.run_id
        reject = f'redfirst reject {run_id} --feedback "..."'
        raise UserError(
            f"{', '.join(gone)} was removed, which drops nothing: it is put back. To have a part of it dropped, say "
            f"so: {reject}. To go on with it: redfirst approve {run_id}",
            Reason.USAGE,
            path=str(ctx.path(gone[0])),
            actions=(reject, f"redfirst approve {run_id}"),
        )


def _of_ids(ctx: Context, given: str, task: Task, text: str) -> Iterator[Problem]:
    """Yield what no draft can have, since our code gives the ids: another one, or a dependency on none of this run."""
    if task.id != given:
        what = f"its id is {task.id!r}. The program gives ids, so it must be {given!r}"
        yield Problem(_line_of(text, "id"), "H014", what)
    known = {task_id for task_id, each in ctx.state.tasks.items() if each.status is not TaskStatus.DROPPED}
    for unknown in sorted(set(task.depends_on) - known):
        what = f"depends_on names {unknown}, which is no task of this run"
        yield Problem(_line_of(text, "depends_on"), "H014", what)


def _of_tasks(ctx: Context, tasks: tuple[Task, ...], texts: Mapping[str, str]) -> dict[str, list[Problem]]:
    found = {task.id: list(task_form(texts[task.id], task)) for task in tasks}
    stuck = {task.id for task in tasks} - {task.id for task in execution_order(tasks)}
    if stuck:
        first, what = min(stuck), f"the tasks {', '.join(sorted(stuck))} wait for each other"
        found[first].append(Problem(_line_of(texts[first], "depends_on"), "H014", what))
    for problem in lint_together(ctx, tasks):
        task_id = tasks[min(problem.line, len(tasks)) - 1].id
        found[task_id].append(replace(problem, line=_line_of(texts[task_id], "files")))
    for task_id, problem in lint_each(ctx, tasks, lambda task: texts[task.id]):
        found[task_id].append(problem)
    return {task_file(task_id): problems for task_id, problems in found.items()}


def _line_of(text: str, key: str) -> int:
    """Return the line of a key of the front matter, from 1."""
    lines = enumerate(text.split("\n"), start=1)
    return next((number for number, line in lines if line.startswith(f"{key}:")), 1)


def _refuse(ctx: Context, found: dict[str, list[Problem]]) -> None:
    """Raise for the first file that cannot be used, with the problems of all.

    Raises:
        UserError: there is one.
    """
    errors = {name: sorted(p for p in problems if p.severity is Weight.ERROR) for name, problems in found.items()}
    errors = {name: problems for name, problems in errors.items() if problems}
    if not errors:
        return
    lines = [f"{name}, line {p.line}: {p.message} ({p.rule})" for name, problems in errors.items() for p in problems]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    then = f"redfirst approve {ctx.run.info.run_id}"
    first = next(iter(errors))
    raise UserError(
        "\n  ".join([f"Your edits in {ctx.run.folder} cannot be used:", *lines[:_SHOWN], *more])
        + f"\nMend it, then: {then}",
        Reason.USAGE,
        path=str(ctx.path(first)),
        details={
            "problems": [
                {"path": str(ctx.path(name)), "line": p.line, "rule": p.rule, "message": p.message}
                for name, problems in errors.items()
                for p in problems
            ]
        },
        actions=(then,),
    )


def given_in(file: Path, worktree: Path) -> tuple[str, str]:
    """Return the path in the project, or the name of a file that lies elsewhere, and the text of a proof.

    Raises:
        UserError: it cannot be read, or is no text.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(4 * MOST_CHARACTERS + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UserError(f"--proof {file} cannot be read: {why}.", Reason.USAGE, path=str(file)) from error
    here = file.resolve()
    inside = here.is_relative_to(worktree.resolve())
    return here.relative_to(worktree.resolve()).as_posix() if inside else here.name, content


def placed(ctx: Context, given: tuple[str, str]) -> ProvingTest:
    """Return the proof with its place in the project: a bare name is put beside the tests of the last task.

    Raises:
        UserError: @test might not write that file either.
    """
    path, content = given
    work = work_of(ctx)
    homes = [change.path.rpartition("/")[0] for one in ctx.state.done_tasks for change in ctx.task(one.id).test_files]
    homes += [name.rpartition("/")[0] for name in sorted(work.layout.collected)]
    if "/" not in path and homes and not work.layout.is_test(path):
        path = f"{homes[0]}/{path}".lstrip("/")
    fault = path_problem(path)
    why = f"{path} {fault}" if fault is not None else None
    if why is None:
        why = refusal_of_test(ctx, ProvingTest.model_construct(path=path, content=content), work)
    if why is not None or not content.strip():
        raise UserError(
            f"The proof cannot be used: {why or 'it is empty'}. Nothing was answered.", Reason.USAGE, path=path
        )
    return ProvingTest(path=path, content=content)


_SIGNALS = {
    "plan": Signal.REJECTED_TO_PLAN,
    "split": Signal.REJECTED_TO_SPLIT,
    "fix": Signal.REJECTED_TO_FIX,
}


@dataclass(frozen=True)
class Approval:
    """A run may go through its gate; what is on disk now counts and is journalled with its hash (contract 5).

    Args:
        by: Who approves.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.
        given: What a recipe's question asks for (`answer`).
        seen: The digest of the packet that was looked at; None where nobody says.
    """

    by: Answerer
    at: str | None = None
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    seen: str | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Let a run through its gate, under its lease.

        Raises:
            UserError: no gate waits, or not the one that is meant; what it asks about cannot be shown, or is not what
                was seen (`stale`); what was edited cannot be used; what is not committed would be in the way.
        """
        if isinstance(ctx, RecipeContext):
            self._approve_step(ctx)
        else:
            self._approve_issue(ctx)

    def _approve_issue(self, ctx: Context) -> None:
        gate = gate_packets.require_gate(ctx.run, self.at)
        refuse_removal(ctx)
        gate_packets.require_seen(ctx.repository, ctx.run, self.at, self.seen)
        contents = {name: ctx.run.read(name) for name in open_drafts(ctx.state) if ctx.path(name).exists()}
        texts = {name: ctx.read(name) for name in open_drafts(ctx.state)}
        tasks = {task_id: ctx.task(task_id) for task_id in ctx.state.queue}
        check_edits(ctx, texts, tasks)
        look_for_conflicts(ctx)
        specs = tuple(
            ctx.state.tasks[task.id].spec.model_copy(
                update={"title": task.title, "evidence": task.evidence.value, "depends_on": task.depends_on}
            )
            for task in tasks.values()
        )
        specs = in_order(ctx, tuple(tasks.values()), specs)
        names = [PLAN, *map(task_file, ctx.state.queue)]
        undo_edits(ctx)
        hashes = {name: sha256_hex(ctx.run.read(name)) for name in names if ctx.path(name).exists()}
        _require_unchanged(ctx, contents)
        changed = gate == "split" and specs != tuple(ctx.state.tasks[task_id].spec for task_id in ctx.state.queue)
        ctx.go_on()
        taken = take_edits(ctx.run, contents)
        for name, kept in taken.items():
            ctx.say(f"    {edit_words(name, kept, 'you')}")
        event = Event(signal=Signal.APPROVED, tasks=specs if changed else ())
        ctx.run.answer_gate("approved", event, hashes, self.by, edited=taken)

    def _approve_step(self, ctx: RecipeContext) -> None:
        gate = gate_packets.meant(ctx.run, self.at)
        unknown = sorted(self.given.keys() - {gate_packets.ANSWER})
        if unknown or (self.given and not gate.asks):
            takes = f'{gate_packets.ANSWER}="..."' if gate.asks else "no value"
            raise UserError(
                f"Approval point {gate.step} takes {takes}, and not {', '.join(unknown or self.given)}.", Reason.USAGE
            )
        answer = self.given.get(gate_packets.ANSWER, "")
        if gate.asks and _is_empty(answer):
            raise UserError(
                f"Approval point {gate.step} asks a question: {gate.question or 'see its recipe'}",
                Reason.USAGE,
                actions=(gate.answers[0].command,),
            )
        gate_packets.require_seen(ctx.repository, ctx.run, gate.step, self.seen)
        ctx.go_on()
        ctx.say(f"{gate.step}: approved")
        event = table.approved(ctx.seen_from(gate.step), answer)
        ctx.run.answer_gate("approved", event, _hashes(ctx, gate), self.by)


@dataclass(frozen=True)
class Rejection:
    """A run is sent back from its gate; what cannot be shown can be rejected.

    Args:
        by: Who rejects.
        feedback: What is wrong.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.
        to: Where an issue's run goes; None for where the gate leads first.
        seen: The digest of the packet that was looked at; None where nobody says.
        proof: The path and the text of a test that fails over the result.
    """

    by: Answerer
    feedback: str
    at: str | None = None
    to: str | None = None
    seen: str | None = None
    proof: tuple[str, str] | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Send a run back, under its lease; the step of a recipe has failed where it leads nowhere.

        Raises:
            UserError: no gate is open, or not the one that is meant; the feedback says nothing; this gate cannot send a
                run there; or the proof is no test that could be added.
        """
        if isinstance(ctx, RecipeContext):
            self._reject_step(ctx)
        else:
            self._reject_issue(ctx)

    def _reject_issue(self, ctx: Context) -> None:
        gate = gate_packets.require_gate(ctx.run, self.at)
        ways = WAYS_BACK[gate]
        if _is_empty(self.feedback):
            raise UserError("--feedback says nothing: the next draft has nothing to go by.", Reason.USAGE)
        where = self.to or ways[0]
        if where not in ways:
            raise UserError(
                f"From approval point {gate} a run goes back to {', '.join(ways)}, and not to {where!r}.", Reason.USAGE
            )
        if self.proof is not None and where != "fix":
            raise UserError("A proof goes along with --to fix only: it becomes the fix task.", Reason.USAGE)
        test = placed(ctx, self.proof) if self.proof is not None else None
        if self.seen is not None:
            gate_packets.require_seen(ctx.repository, ctx.run, self.at, self.seen)
        ctx.go_on()
        number = len(ctx.run.journal.of(GateAnswered)) + 1
        feedback = self.feedback.strip()
        name = ctx.write(f"feedback-{number}.md", f"# Feedback of a person, at approval point {gate}\n\n{feedback}\n")
        names = [name]
        if test is not None:
            names.append(ctx.write_json(f"feedback-{number}-{PROOF}", test.model_dump(mode="json")))
        event = Event(signal=_SIGNALS[where], note=feedback.splitlines()[0], evidence=tuple(names))
        ctx.run.answer_gate(f"rejected to {where}", event, by=self.by)

    def _reject_step(self, ctx: RecipeContext) -> None:
        gate = gate_packets.meant(ctx.run, self.at)
        if _is_empty(self.feedback):
            raise UserError("--feedback says nothing: what is done next has nothing to go by.", Reason.USAGE)
        if self.seen is not None:
            gate_packets.require_seen(ctx.repository, ctx.run, gate.step, self.seen)
        ctx.go_on()
        number = len(ctx.run.journal.of(GateAnswered)) + 1
        event = table.rejected(ctx.seen_from(gate.step), self.feedback, number)
        ctx.run.answer_gate("rejected", event, _hashes(ctx, gate), self.by)
        to = ctx.run.machine.step_of(gate.step).back_to
        again = to is not None and gate.step not in ctx.run.state.settled
        ctx.say(f"{gate.step}: rejected -> {f'{to} and what is behind it are done again' if again else 'failed'}")


@dataclass(frozen=True)
class Reply:
    """The question that a run waits with is answered.

    Args:
        by: Who answers.
        text: The answer.
        at: Of a recipe's run the step that asks; None for the only one.
        seen: The digest of the packet that was looked at; None where nobody says.
    """

    by: Answerer
    text: str
    at: str | None = None
    seen: str | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Write down the answer, under the lease of the run, and let whoever drives it go on.

        Raises:
            UserError: the run waits for no answer, or the text says nothing; and as an approval.
        """
        if isinstance(ctx, RecipeContext):
            Approval(self.by, self.at, {gate_packets.ANSWER: self.text}, self.seen).give(ctx)
            return
        question = gate_packets.require_question(ctx.run)
        name = ctx.run.info.run_id
        if _is_empty(self.text):
            raise UserError("The answer says nothing.", Reason.USAGE, actions=(f'redfirst answer {name} "..."',))
        gate_packets.require_seen(ctx.repository, ctx.run, None, self.seen)
        number = len(ctx.run.journal.of(InputGiven)) + 1
        asked = ctx.read(question).rstrip()
        artifact = ctx.write(f"answer-{number}.md", f"{asked}\n\n## Answer of a person\n\n{self.text.strip()}\n")
        ctx.run.tell(InputGiven(question=question, answer=artifact, **self.by.model_dump()))
        ctx.run.queue()
        ctx.go_on()


def _is_empty(text: str) -> bool:
    return not text.strip(" .\t\n")  # a line of advice as it was printed has dots there


def _hashes(ctx: RecipeContext, gate: gate_packets.StepGate) -> dict[str, str]:
    """Return the sha256 of what a person was shown, by its name in the run."""
    names = (str(Path(path).relative_to(ctx.run.folder)) for path in gate.read)
    return {name: sha256_hex(ctx.run.read(name)) for name in names}


def _require_unchanged(ctx: Context, contents: Mapping[str, bytes]) -> None:
    """Return when the files are as they were before they were checked.

    Raises:
        UserError: an editor has saved one in between.
    """
    saved = [name for name, content in contents.items() if ctx.run.read(name) != content]
    if saved:
        then = f"redfirst approve {ctx.run.info.run_id}"
        raise UserError(
            f"{', '.join(saved)} was saved while it was checked, so nothing is approved. Look at it, then: {then}",
            Reason.USAGE,
            path=str(ctx.path(saved[0])),
            actions=(then,),
        )


class AnsweredDocument(Frozen):
    """How a run stands that was answered and is not driven: `queued`, or by outcome and reason."""

    schema_: Literal["redfirst.answered/1"] = Field(default="redfirst.answered/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    answer: str
    queued: bool
    outcome: Outcome | None
    reason: Reason | None
    safe_next_actions: tuple[str, ...]


def answerer(repository: Repository, via: str = "cli") -> Answerer:
    """Return who answers: as git calls them, else by their login."""
    try:
        return Answerer(actor=repository.identity()[0], via=via)
    except UserError:
        return Answerer(actor=os.environ.get("USER", "somebody"), via=via)


def record(
    repository: Repository, folder: Path, act: Act, say: Callable[[str], None] = lambda _: None
) -> AnsweredDocument:
    """Answer a run that rests, under its lease, and put it away again; where it goes on then it is queued.

    Args:
        repository: As seen from the worktree that keeps the run.
        folder: Of the run.
        act: The answer.
        say: Takes what is worth telling.

    Raises:
        UserError: the answer cannot be given; or another process drives the run (`locked`).
    """
    refuse_recursion(os.environ)
    with FileLease.take(folder):
        run = load_run(folder, driving=True)
        kind = RecipeContext if isinstance(run, RecipeRun) else Context
        if gone_on(folder) is not None:
            raise superseded_error(run)
        ctx = resting_context(kind, repository, run, say)
        act.give(ctx)
        put_away(ctx)
        run.queue()  # behind what was written
        if ctx.hub is not None:
            anyio.run(keep_at_hub, ctx)
    name, answers = run.info.run_id, (*run.journal.of(InputGiven), *run.journal.of(GateAnswered))
    last = max(answers, key=lambda line: line.seq, default=None)
    return AnsweredDocument.from_fields(
        run.state,
        run_id=name,
        answer="answered" if last is None or isinstance(last.data, InputGiven) else last.data.answer,
        queued=run.queued,
        safe_next_actions=(f"redfirst resume {name}",) if run.queued else (f"redfirst show {name}",),
    )


def free_orphan(repository: Repository, name: str) -> Claimant | None:
    """Give back the claim of a run whose folder was deleted; return who had it, None if *name* means no such run.

    Raises:
        UserError: git keeps its worktree as locked, so it may be on a disk that is not there now.
    """
    roster = Roster(repository)
    if any(is_unfinished(run.folder) for run in roster.fitting(name)):
        return None
    for issue, claim in orphans(repository).items():
        if not is_named(claim, issue, name):
            continue
        found = claimant(roster, issue, claim)
        if found.locked is not None:
            raise found.refusal()
        give_back(repository, issue, claim.run)
        return found
    return None


def is_unfinished(folder: Path) -> bool:
    """Return whether a run of an issue can still go on; one that is damaged is for a person to judge."""
    try:
        return not Run.load(folder, driving=False).state.has_ended
    except UserError:
        return True


def abandon(
    repository: Repository,
    folder: Path,
    say: Callable[[str], None],
    prepare: Callable[[Run | RecipeRun], None] = lambda _: None,
) -> Context | RecipeRun:
    """End a run without a commit: it can never go on, what its steps left stays where it is.

    Args:
        repository: As seen from the worktree that keeps it.
        folder: Of the run.
        say: Takes what is worth telling.
        prepare: What is done before, under the lease; it may raise, and then nothing is ended.

    Raises:
        UserError: it is driven by another process, or has ended already.
    """
    with FileLease.take(folder):
        run = RecipeRun.load(folder, driving=True) if is_of_recipe(folder) else _load_or_salvage(folder, say)
        prepare(run)
        ended, place = run.state.has_ended, place_of_run(repository, run, os.environ)
        if ended and not place.exists():
            raise UserError(
                f"{run.info.run_id} has ended already ({run.state.outcome}).",
                Reason.USAGE,
                actions=(f"redfirst show {run.info.run_id}",),  # its last lines say what is left to do, or to remove
            )
        if isinstance(run, RecipeRun):
            if not ended:
                take_back(Given(run, repository))
                drop_publication(repository, run)
                run.abandon()
            keep(repository, run, whole=True)
            PrivateCheckout(repository, place).close()
            return run
        ctx = resting_context(Context, repository, run, say)
        end_lost(folder.glob("dispatches/*/process.json"))
        if not ended:
            for path in failure.abandon(ctx):
                say(f"{path} was changed meanwhile and is left as it is")
            run.abandon()
        done = put_away(ctx)
        try:
            if ctx.hub is not None:
                anyio.run(keep_at_hub, ctx)
        except UserError as error:  # it goes on elsewhere, or nobody can be told: here it is given up all the same
            host = gone_on(folder)
            say(error.message if host is None else f"{host} goes on with {folder.name}. It is given up here alone.")
        if (stays := what_stays(repository, run)) is not None:
            say(stays)
        return done


def _load_or_salvage(folder: Path, say: Callable[[str], None]) -> Run:
    try:
        return Run.load(folder, driving=True)
    except UserError as error:
        run = Run.salvage(folder)
        say(error.message)
        say("Giving up what can be read of it. The damaged journal is kept beside the new one.")
        return run


def resting_context(
    kind: type[ContextT], repository: Repository, run: AnyRun, say: Callable[[str], None] = lambda _: None
) -> ContextT:
    """Return the ports for what is done to a run that rests.

    Nothing is run: no box is needed, and the configuration of today may be what is broken.
    """
    return context_of(kind, repository, run, config_of(run), NoBox(), dict(os.environ), say)


def config_of(run: AnyRun) -> Config:
    """Return the configuration that a run was last driven with, as far as it is on record."""
    try:
        return Config.model_validate(_recorded(run))
    except ValidationError:  # another version's
        return Config()


def gates_config_of(run: AnyRun) -> Gates:
    """Return what that configuration says of gates, whichever version wrote its other tables."""
    try:
        return Gates.model_validate(_recorded(run).get("gates", {}))
    except ValidationError:
        return Gates()


def _recorded(run: AnyRun) -> Mapping[str, Any]:
    changed = [line.data.config for line in run.journal.of(ConfigChanged) if line.data.config]
    return changed[-1] if changed else run.info.config


_KEPT: Final = frozenset("\n\t")
"""What is hidden, and a text field of a page keeps all the same."""


def draft_to_edit(repository: Repository, folder: Path, name: str) -> tuple[gate_packets.Packet, str]:
    r"""Return what a run waits for, and the text of a draft in it of which an edit counts, with `\n` between its lines.

    Raises:
        UserError: no edit of it counts, or a page cannot show its text so that it comes back as it was.
    """
    run = Run.load(folder, driving=False)
    _require_open(run, name)
    shown = gate_packets.packet_of(repository, run)
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
    with FileLease.take(folder):
        run = Run.load(folder, driving=False)
        ctx = resting_context(Context, repository, run)
        _require_open(run, name)
        gate_packets.require_gate(run, None)
        refuse_removal(ctx)
        shown = gate_packets.require_seen(repository, run, None, seen)
        ending = "\r\n" if "\r\n" in _editable(run, shown, name) else "\n"
        written = (text if text.endswith("\n") or not text else f"{text}\n").replace("\n", ending)
        texts = {each: ctx.read(each) for each in open_drafts(ctx.state)} | {name: written}
        ids = () if name == PLAN else ctx.state.queue
        files = {task_id: task_file(task_id) for task_id in ids}
        check_edits(ctx, texts, {task_id: ctx.task_in(file, texts[file]) for task_id, file in files.items()})
        gate_packets.require_seen(repository, run, None, seen)  # an editor may have saved it while it was checked
        write_atomic(folder / name, written.encode(), below=folder.parents[1])


def _require_open(run: Run, name: str) -> None:
    if name not in open_drafts(run.state) or run.state.outcome is None:
        raise UserError(
            f"No edit of {name} counts now: {run.info.run_id} does not wait for one. plan.md is edited at approval "
            "point plan, the tasks at approval point split.",
            Reason.STALE,
            actions=(f"redfirst show {run.info.run_id}",),
        )


def _editable(run: Run, shown: gate_packets.Packet, name: str) -> str:
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
