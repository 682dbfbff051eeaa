"""Words for what a report has to answer in this request, and in no other of its kind: criteria, questions on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.reports.forms import resolved
from pipeline.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.reports.reviews import ToAnswer

_CRITERIA: Final = "`criteria` has an entry for each of these: `task`, `id`, `met`, and a `note` where it is not met."
_ANSWERS: Final = (
    "`answers` has an entry for each of these questions on the tasks: `true` when all is well, else a sentence, with a "
    "finding of concern `split`."
)


def questions_md(to_answer: Iterable[ToAnswer], schema: Mapping[str, Any]) -> str:
    """Return what the fields `criteria` and `answers` have to answer; empty where the request has neither.

    Args:
        to_answer: What belongs into `criteria`.
        schema: Of the report, without the fields that are not asked for.
    """
    criteria = "\n".join(f"* task {one.task}, {one.id}: {one_line(one.text)}" for one in to_answer)
    asked = f"{_CRITERIA}\n\n{criteria}" if criteria else ""
    return "\n\n".join(part for part in (asked, _on_tasks(schema)) if part)


def _on_tasks(schema: Mapping[str, Any]) -> str:
    answers = schema.get("properties", {}).get("answers")
    if answers is None:
        return ""
    fields: Mapping[str, Mapping[str, Any]] = resolved(schema, answers)["properties"]
    questions = "\n".join(f"* `{name}`: {one['description']}" for name, one in fields.items())
    return f"{_ANSWERS}\n\n{questions}"
