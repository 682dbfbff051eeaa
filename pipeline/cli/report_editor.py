"""Opens the person's editor on the form of a report, reads it, and opens it again with what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer

from pipeline.cli.editor import edit
from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.reports.form_text import unmarked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.service.report_form import ReportForm

_MOST: Final = 20
"""Times that the form is opened: an editor that is a program could go on for ever."""
_WAITING: Final = "An editor in a window of its own needs its option to wait, such as code --wait."


def edited(form: ReportForm, editor: Sequence[str]) -> dict[str, Any]:
    """Return the report that was written in the editor; what cannot count opens it again.

    Raises:
        UserError: the form was left as it was, or the editor did not work.
    """
    opened = form.opened()
    for _ in range(_MOST):
        _edit(form, editor)
        text, filled = form.read()
        faults = form.faults(filled) if filled.report or filled.faults else []
        if not filled.report and not filled.faults:
            raise UserError(f"Nothing was handed in. The form says nothing yet. {_WAITING}", Reason.USAGE)
        if text == unmarked(opened) and (faults or not _as_it_is(form)):
            raise _nothing("The form was left as it was", _WAITING)
        if not faults:
            return form.report(filled)
        print_text(f"{len(faults)} field(s) cannot count; each is marked with #! in the form", err=True)
        opened = form.mark(text, filled, faults)
    raise _nothing(f"The form was edited {_MOST} times, and cannot count yet")


def _as_it_is(form: ReportForm) -> bool:
    """Ask whether a form from before is meant as it is."""
    return typer.confirm(f"The form for {form.asked.dispatch} is as it was. Hand it in as it is?", default=False)


def _edit(form: ReportForm, editor: Sequence[str]) -> None:
    try:
        edit(form.file, editor)
    except UserError as error:
        raise _nothing(error.message.removesuffix(".")) from error


def _nothing(why: str, hint: str = "") -> UserError:
    kept = "what you wrote is kept, and opened again by redfirst hand-in."
    return UserError(f"Nothing was handed in. {why}; {kept} {hint}".strip(), Reason.USAGE)
