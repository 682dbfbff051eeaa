"""Runs the proofs of findings in a recipe's run: of a step's review, and of what a step found in a change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from pipeline.languages.protocol import Selection
from pipeline.measure.measuring import UnmeasurableError, environment, measure
from pipeline.measure.proofs import Work
from pipeline.reports.payloads import Findings
from pipeline.reports.untrusted_text import one_line
from pipeline.steps.asking.grants import scope_without_task
from pipeline.steps.asking.proofs import measured_once
from pipeline.steps.recipe_project import has_tests

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pipeline.reports.payloads import QuotedFinding
    from pipeline.steps.recipe_context import RecipeContext


async def work_between(ctx: RecipeContext, start: str, tree: str) -> Work | str:
    """Return the work that made *tree* of *start*, as what proofs are about; or why no proof can be run here."""
    if not has_tests(ctx):
        return "nothing is known to run tests here"
    try:
        async with ctx.looking:
            await environment(ctx)
        found = await measure(ctx, tree, Selection.nothing(), what=f"{ctx.lane_name}: which tests there are")
    except UnmeasurableError as error:
        return f"the tests cannot be run: {error}"
    paths = [entry.path for entry in ctx.repository.entries(start)]
    return Work(tree, found.layout, scope_without_task(found, paths, ctx.toolchain.sources), start)


async def payload_proved(ctx: RecipeContext, payload: JsonValue) -> tuple[JsonValue, tuple[str, ...]]:
    """Return the findings of a change with what came of their proofs, and a sentence for each.

    What is proved is certain, and HIGH at least; what is refuted stays, and is filed by nobody.
    """
    change = ctx.run.info.change
    if change is None or not isinstance(payload, dict) or "findings" not in payload:
        return payload, ()
    try:
        said = Findings.model_validate_json(json.dumps(payload))
    except ValidationError:
        return payload, ()
    if not any(one.proof is not None for one in said.findings):
        return payload, ()
    work = await work_between(ctx, change.before, ctx.base)
    findings: list[QuotedFinding] = []
    lines: list[str] = []
    run = 0
    for one in said.findings:
        if one.proof is None:
            findings.append(one)
            continue
        run += 1
        title = one_line(one.claim)[:80]
        measured = await measured_once(ctx, one.proof, work, title, run)
        lines.append(f"{measured.found}: {title}: {measured.why}")
        update: dict[str, object] = {"measured": measured}
        if measured.found == "proved":
            update |= {"confidence": "certain", "severity": "BLOCK" if one.severity == "BLOCK" else "HIGH"}
        findings.append(one.model_copy(update=update))
    made = said.model_copy(update={"findings": tuple(findings)})
    return cast("JsonValue", made.model_dump(mode="json", exclude_none=True)), tuple(lines)
