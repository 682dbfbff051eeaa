"""Tells a reviewer of the whole change what to doubt: means to forge tests, values that only tests or code have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.languages import readers
from pipeline.measure.composed_trees import both
from pipeline.measure.measuring import changed_paths
from pipeline.measure.suspicions import added_lines_by_side, means_of_forgery
from pipeline.policy.characters import hidden_places, visible
from pipeline.reports.markdown import bullets
from pipeline.routing.vocabulary import Step
from pipeline.steps.evidence.records import baseline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.steps.context import Context


_MOST_PLACES: Final = 5
_BULLET: Final = "- "


def suspicions_md(ctx: Context) -> str:
    """Return the document for the final review, empty where there is nothing to say."""
    lines = suspicions(ctx, ctx.state.start, ctx.state.head)
    head = (
        "# Suspicions\n\nLines of the change that can recognise or forge tests, or hide what a text says. Behaviour "
        "that tests show by one example only, or not at all. Examples that were tests and are gone. Honest code has "
        "reasons for some of these."
    )
    return f"{head}\n\n{bullets(lines)}\n" if lines else ""


def suspicions_told(ctx: Context) -> tuple[str, ...]:
    """Return what the last final review was told, line by line; empty where there was none, or nothing to say."""
    last = ctx.reviews_before(Step.FINAL_REVIEW.value)
    path = ctx.path(f"reviews/suspicions-{last}.md")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return tuple(line.removeprefix(_BULLET) for line in text.split("\n") if line.startswith(_BULLET))


def suspicions(ctx: Context, old: str, new: str) -> tuple[str, ...]:
    """Return one sentence each, of production files that differ between two trees."""
    layout = baseline_of(ctx).layout
    texts = both(ctx, old, new, changed_paths(ctx, old, new))
    production: dict[str, tuple[tuple[int, str], ...]] = {}
    tests: list[str] = []
    known = [ctx.read(name) for name in _words(ctx)]
    for path, before, after in texts:
        if before is not None:
            known.append(before.decode("utf-8", "replace"))
        if after is None:
            continue
        code, test = added_lines_by_side(path, before or b"", after, layout)
        tests += (line for _, line in test)
        if code:
            production[path] = code
    run = {record.path for record in baseline_of(ctx).records.values()}
    return (
        *means_of_forgery(ctx, old, new, layout),
        *_hidden(texts),
        *readers.answers_known(production, tests, known),
        *readers.unused_values(_criteria(ctx), tests),
        *readers.examples_lost([one for one in texts if not layout.is_test_side(one[0])], run),
    )


def _hidden(texts: Iterable[tuple[str, bytes | None, bytes | None]]) -> Iterator[str]:
    """Yield a sentence for each file that gets characters that are not seen, or that turn the text around them."""
    for path, before, after in texts:
        if after is None or b"\0" in after:
            continue
        places = hidden_places((before or b"").decode("utf-8", "replace"), after.decode("utf-8", "replace"))
        more = f", and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        if places:
            listed = ", ".join(places[:_MOST_PLACES])
            yield f"{visible(path)} gets characters that are not seen or turn the text around them: {listed}{more}"


def _criteria(ctx: Context) -> dict[str, str]:
    tasks = [ctx.task(task.id) for task in ctx.state.done_tasks if task.testable]
    return {f"{task.id} {criterion.id}": criterion.text for task in tasks for criterion in task.criteria}


def _words(ctx: Context) -> Iterator[str]:
    names = ("issue.md", "plan.md", *(f"task-{task}.md" for task in ctx.state.tasks))
    return (name for name in names if ctx.path(name).exists())
