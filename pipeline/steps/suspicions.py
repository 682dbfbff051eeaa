"""What a reviewer is told of the whole change: means to recognise or forge tests, and values that only one side has.

And examples in documentation that were tests: they lie in files that the implementer changes, so nobody asks for leave.
Nothing here decides (ADR-R41): the code under test shares a process with its tests, so who reads the change has to see
where it reaches for them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages import readers
from pipeline.languages.sources import compile_time, special_cases
from pipeline.languages.sources.test_regions import Unspliced
from pipeline.languages.table import has_part
from pipeline.measure.composing import both, shares_file
from pipeline.measure.measuring import changed_paths
from pipeline.reports.markdown import bullets
from pipeline.routing.vocabulary import Step
from pipeline.steps.sanity import baseline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.evidence.observation import Layout
    from pipeline.measure.measuring import Apparatus
    from pipeline.steps.context import Context

_BULLET: Final = "- "
_WORD: Final = re.compile(r"\w+")


def suspicions_md(ctx: Context) -> str:
    """Return the document for the final review, empty where there is nothing to say."""
    lines = suspicions(ctx, ctx.state.start, ctx.state.head)
    head = (
        "# What the change brings that can recognise or forge tests, what they show by one example only or not at all, "
        "and examples that were tests and are gone\n\n"
        "Honest code has reasons for some of these."
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
        code, test = _parted(path, before or b"", after, layout)
        tests += (line for _, line in test)
        if code:
            production[path] = code
    means = means_of_forgery(ctx, old, new, layout)
    told = (*readers.inputs_of_tests(production, tests, known), *readers.single_examples(production, tests))
    return (*means, *told, *readers.unused_values(_criteria(ctx), tests), *_examples(ctx, layout, texts))


def _criteria(ctx: Context) -> dict[str, str]:
    tasks = [ctx.task(task.id) for task in ctx.state.done_tasks if task.testable]
    return {f"{task.id} {criterion.id}": criterion.text for task in tasks for criterion in task.criteria}


def means_of_forgery(ctx: Apparatus, old: str, new: str, layout: Layout) -> tuple[str, ...]:
    """Return a sentence for each means of forging test results that production files of the second tree bring along."""
    entries = ctx.repository.entries(new)
    own = {
        part for entry in entries if entry.path.endswith(".py") for part in entry.path.removesuffix(".py").split("/")
    }
    changed = changed_paths(ctx, old, new)
    packages = [entry.path for entry in entries if compile_time.is_manifest(entry.path)]
    wanted = any(has_part(path, "compile_time") for path in changed)
    manifests = {path: text for path, _, text in both(ctx, new, new, packages) if text is not None} if wanted else {}
    found: list[str] = []
    for path, before, after in both(ctx, old, new, changed):
        if after is not None and _parted(path, before or b"", after, layout)[0]:
            mentioned = own.intersection(_WORD.findall(after.decode("utf-8", "replace")))
            found += readers.means(path, before, after, mentioned)
            found += compile_time.notes(path, manifests)
    return tuple(found)


def _examples(ctx: Context, layout: Layout, texts: Iterable[tuple[str, bytes | None, bytes | None]]) -> tuple[str, ...]:
    """Return what examples in the documentation of production files notice no longer, of those that the suite ran."""
    run: dict[str, set[str]] = {}
    for record in baseline_of(ctx).records.values():
        name = record.id.rpartition("::")[2].partition("#")[0]
        run.setdefault(record.path, set()).add(name.rpartition(".")[2])
    items = {path: frozenset(names) for path, names in run.items()}
    return readers.examples_lost([one for one in texts if not layout.is_test_side(one[0])], items)


def _parted(
    path: str, before: bytes, after: bytes, layout: Layout
) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Return the added lines of production and those of tests, with their numbers."""
    lines = special_cases.added(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    if not shares_file(path, layout):
        return ((), lines) if layout.is_test_side(path) else (lines, ())
    regions = readers.regions_of(after)
    if isinstance(regions, Unspliced):
        return lines, lines
    inside = {line for region in regions.values() for line in region.decode("utf-8", "replace").split("\n")}
    return tuple(one for one in lines if one[1] not in inside), tuple(one for one in lines if one[1] in inside)


def _words(ctx: Context) -> Iterator[str]:
    names = ("issue.md", "plan.md", *(f"task-{task}.md" for task in ctx.state.tasks))
    return (name for name in names if ctx.path(name).exists())
