"""`redfirst desk` and `redfirst hand-in`: where a run waits for a person, and the answer (contract 5, `human`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from pipeline.agents.backends.human import desk_command
from pipeline.app import human_answer
from pipeline.app.human_answer import ReportForm, came_back
from pipeline.characters import visible
from pipeline.config.user_folders import short
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, file_given
from pipeline.faces.cli.editor import edit, require_editor
from pipeline.faces.cli.text import print_text, terminal_width
from pipeline.judge.reports import report_templates as templates
from pipeline.judge.reports.decode import JsonObject, Malformed
from pipeline.judge.reports.parse import parse_report, report_of_person
from pipeline.judge.reports.yaml_form import unmarked
from pipeline.outcomes import Reason
from pipeline.terminal import print_json, visible_lines
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.agents.backends.desk import Asked, Desk


DeskRun = Annotated[str | None, typer.Argument(metavar="RUN", help="The run. Not needed where one desk waits.")]
DeskRole = Annotated[Role | None, typer.Option("--role", help="Which desk, where a run has two.")]
DeskTask = Annotated[str | None, typer.Option("--task", metavar="ID", help="Which desk, where two of a role wait.")]


def desk(
    run: DeskRun = None,
    role: DeskRole = None,
    task: DeskTask = None,
    only_print: Annotated[bool, typer.Option("--print", help="Only print the desk's folder.")] = False,
) -> None:
    """Go to the desk where a run waits for your work.

    It says what is asked, and opens a shell in your copy of the files. `exit` brings you back. In a pipe it opens none.

    Examples:
      redfirst desk

      redfirst desk GAL-39 --role check

      cd "$(redfirst desk --print)"
    """
    found, asked = human_answer.waiting_desk(run, role, task, "desk")
    found.put(found.shown, asked.token)
    if only_print:
        typer.echo(str(found.files))
        return
    print_text(visible_lines(_brief(found, asked)))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    if Path.cwd().is_relative_to(found.files.resolve()):
        print_text("You are at this desk already.")
        return
    shell = os.environ.get("SHELL") or "/bin/sh"
    print_text(f"\nA shell at the desk: {visible(shell)}. Hand in from here with redfirst hand-in; exit goes back.")
    try:
        subprocess.run([shell], cwd=found.files, check=False)
    except OSError as error:
        raise UserError(
            f"{visible(shell)} cannot be started: {error.strerror}. Name another one in $SHELL, or go there: "
            'cd "$(redfirst desk --print)"',
            Reason.USAGE,
        ) from error
    handed = " It is handed in." if found.report.exists() else " Nothing is handed in yet: redfirst hand-in"
    print_text(f"Back from the desk of {asked.dispatch}.{handed}")


def _brief(found: Desk, asked: Asked) -> str:
    """Return where the desk is, and what is asked there."""
    place, width = f"desk: {short(found.files, os.environ)}", terminal_width(sys.stdout)
    if width is not None and len(place) > width:  # nobody types a path that is broken
        place = f'desk: cd "$(redfirst desk {asked.run_id} --role {asked.role} --print)"'
    lines = [f"{asked.dispatch} of {asked.run_id}: you play @{asked.role}", place]
    tests = ", run-tests (the tests, as the run runs them)" if found.tests.exists() else ""
    lines.append(f"beside it: PROMPT.md (all that an agent is told){tests}")
    word = templates.deciding(asked.report_schema)
    lines.append(f"hand in: {desk_command('hand-in', asked)}")
    if word is not None:
        lines.append(f"the word that decides ({word.name}): {', '.join(word.words) or 'yes, no'}")
        lines += [asked.said_by_acceptable] if asked.said_by_acceptable else []
    why, told = came_back(asked), [human_answer.request_of(found).rstrip(), *_lists(asked)]
    return "\n".join([*lines, "", *told, *([""] if why else []), *why])


def _lists(asked: Asked) -> list[str]:
    """Return what an entry of each list of the report looks like, for who fills in a copy of the template."""
    shapes = templates.entries(asked.report_schema)
    lines = [f"* {name}: {shape}" for name, shape in shapes.items()]
    free = templates.optional(asked.report_schema)
    lines += ["", f"May be left out where PROMPT.md does not ask for it: {', '.join(free)}."] if free else []
    if '"severity"' in shapes.get("findings", ""):
        lines += ["", "A BLOCK or HIGH finding without `evidence` counts as MEDIUM."]
    return ["", "Entries of the report's lists (`?`: may be left out):", "", *lines] if lines else []


_SHOWN: Final = 20
_MOST: Final = 20
"""Times that the form is opened: an editor that is a program could go on for ever."""
_WAITING: Final = "An editor in a window of its own needs its option to wait, such as code --wait."


def hand_in(
    run: DeskRun = None,
    role: DeskRole = None,
    task: DeskTask = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="The report, as JSON: report-template.json filled in."),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            "--verdict", metavar="WORD", help="Only the word that decides. The desk names the words that count."
        ),
    ] = None,
    give_up: Annotated[
        str | None, typer.Option("--give-up", metavar="REASON", help="Say that it cannot be done, and why.")
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Hand in what you did at a desk, so that the run goes on.

    Your report is checked first. Where it is wrong, nothing is handed in. You see which of your changes the run would
    refuse. Without an option your editor ($VISUAL, $EDITOR) opens on a form. An option answers only what redfirst desk
    has shown you.

    Examples:
      redfirst hand-in

      redfirst hand-in GAL-39 --verdict ACCEPTABLE

      redfirst hand-in GAL-39 --role make --report report.json

      redfirst hand-in --give-up "the interface that the task names is not there"
    """
    desk, asked = human_answer.waiting_desk(run, role, task)
    schema = asked.report_schema
    number = sum(each is not None for each in (report, verdict, give_up))
    if number:
        human_answer.refuse_unseen(desk, asked)
    if number > 1:
        raise UserError("Say the report by one of --report FILE, --verdict WORD, --give-up REASON.", Reason.USAGE)
    if report is not None:
        content = templates.with_exact_words(schema, _from_file(report, asked))
    elif verdict is not None:
        content = templates.with_exact_words(schema, _from_word(schema, verdict))
    elif give_up is not None:
        content = templates.with_exact_words(schema, _from_reason(schema, give_up, asked))
    elif sys.stdin.isatty() and sys.stdout.isatty() and not as_document:
        difference = human_answer.checked_files(desk, asked)  # said first: a report takes longer to write
        editor = require_editor(f", or give --report FILE: a filled-in copy of {short(desk.template, os.environ)}")
        content = edited(ReportForm(desk, asked, difference), editor)
    else:
        raise UserError(
            "There is no terminal to ask you at, so no editor opens. Give --verdict WORD, --give-up REASON, or "
            f"--report FILE: a filled-in copy of {short(desk.template, os.environ)}",
            Reason.USAGE,
        )
    if verdict is not None and asked.role is Role.CHECK:
        content = human_answer.accepted(asked, content, prior=True)
    document = human_answer.hand_in(desk, asked, content)
    if as_document:
        print_json(document)
    else:
        print_text(_text(document))


def _text(document: dict[str, Any]) -> str:
    lines = [f"handed in {document['dispatch']} of {document['run_id'] or 'a trial'}"]
    lines += [f"  {change['kind']} {visible(change['path'])}" for change in document["changes"][:_SHOWN]]
    more = len(document["changes"]) - _SHOWN
    lines += [f"  and {more} more"] if more > 0 else []
    if document["left_out"]:
        lines.append(f"  not taken over, since this role changes nothing: {visible(', '.join(document['left_out']))}")
    if document["built"]:
        lines.append(f"  left out, since tools built it: {visible(', '.join(document['built'][:_SHOWN]))}")
    lines += [f"  {visible(remark)}" for remark in document["remarks"]]
    if document["waiting"] is False:
        lines.append(f"  nobody drives the run now. It takes this when you say: redfirst resume {document['run_id']}")
    else:
        lines.append("  the run goes on once all have answered. Change nothing at the desk until then")
    return "\n".join(lines)


def edited(form: ReportForm, editor: Sequence[str]) -> dict[str, Any]:
    """Return the report that was written in the editor; what cannot count opens it again.

    Raises:
        UserError: the form was left as it was, or the editor did not work.
    """
    opened = form.opened()
    for _ in range(_MOST):
        try:
            edit(form.file, editor)
        except UserError as error:
            raise _nothing(error.message.removesuffix(".")) from error
        text, filled = form.read()
        faults = form.faults(filled)
        if not filled.report and not filled.faults:
            raise UserError(f"Nothing was handed in. The form says nothing yet. {_WAITING}", Reason.USAGE)
        same = f"The form for {form.asked.dispatch} is as it was. Hand it in as it is?"  # it may be meant
        if text == unmarked(opened) and (faults or not typer.confirm(same, default=False)):
            raise _nothing("The form was left as it was", _WAITING)
        if not faults:
            return form.report(filled)
        told = "place(s) cannot be read, nor what is below" if filled.faults else "field(s) cannot count"
        print_text(f"{len(faults)} {told}; each is marked with #! in the form", err=True)
        opened = form.mark(text, filled, faults)
    raise _nothing(f"The form was edited {_MOST} times, and cannot count yet")


def _nothing(why: str, hint: str = "") -> UserError:
    kept = "what you wrote is kept, and opened again by redfirst hand-in."
    return UserError(f"Nothing was handed in. {why}; {kept} {hint}".strip(), Reason.USAGE)


def _from_file(path: Path, asked: Asked) -> dict[str, Any]:
    def counts(found: JsonObject) -> bool:
        return not isinstance(parse_report(asked.kind, asked.role, asked.question, found), Malformed)

    found = report_of_person(file_given(path), counts)
    if isinstance(found, Malformed):
        raise UserError(f"Nothing was handed in. {found.sentence}", Reason.USAGE, path=str(path))
    if (place := templates.unfilled(found)) is not None:
        raise UserError(f"Nothing was handed in. At {place} nothing is filled in yet.", Reason.USAGE, pointer=place)
    return cast("dict[str, Any]", found)


def _from_word(schema: Mapping[str, Any], word: str) -> dict[str, Any]:
    field = templates.deciding(schema)
    if field is None:
        raise UserError("This report has no word that decides; give it with --report FILE.", Reason.USAGE)
    either = {"true": True, "yes": True, "false": False, "no": False}
    value = templates.meant(field.words, word) if field.words else either.get(word.strip().casefold())
    if value is None:
        accepted = ", ".join(field.words) or "yes, no"
        raise UserError(f"--verdict {word}: accepted: {accepted}.", Reason.USAGE, details={"accepted": field.words})
    return {field.name: value}


def _from_reason(schema: Mapping[str, Any], reason: str, asked: Asked) -> dict[str, Any]:
    if (report := templates.giving_up(schema, reason)) is None:
        raise UserError(
            "This question has no way to give up. Say what is wrong in the report, or end the run: redfirst abandon "
            f"{asked.run_id}",
            Reason.USAGE,
            actions=(f"{desk_command('hand-in', asked)} --report FILE", f"redfirst abandon {asked.run_id}"),
        )
    return report
