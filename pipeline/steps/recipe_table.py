"""Maps each place of a recipe's step to what is done there."""

from __future__ import annotations

from typing import Final

from pipeline.recipes.step_table import At
from pipeline.steps import (
    recipe_accept,
    recipe_apply,
    recipe_ask,
    recipe_command,
    recipe_filing,
    recipe_gate,
    recipe_publish,
    recipe_review,
    recipe_tests,
)

RUNNERS: Final = {
    At.BEGIN: recipe_tests.begun,
    At.ASK: recipe_ask.run,
    At.ACCEPT: recipe_accept.run,
    At.REVIEW: recipe_review.run,
    At.APPLY: recipe_apply.run,
    At.RUN: recipe_command.run,
    At.TESTS: recipe_tests.run,
    At.HOLD: recipe_gate.run,
    At.FILE: recipe_filing.run,
    At.PUBLISH: recipe_publish.run,
}
"""A function for each place: it dispatches or measures, and returns one event."""
