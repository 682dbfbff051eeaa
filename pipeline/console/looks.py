"""Gathers what a page shows of a run from the documents of the command line and the run's state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.console.picture import TALL, WIDE, drawn, way_of
from pipeline.routing.matrix import MATRIX, steps_of
from pipeline.routing.words import routed_words
from pipeline.runs.gates import WAYS_BACK, gate_of
from pipeline.runs.recipe_run import load_run
from pipeline.runs.run import Run
from pipeline.service.explanation import explain_run, mistakes_of
from pipeline.service.live_view import live_view
from pipeline.service.run_result import show_recipe_run
from pipeline.service.run_status import show_run

if TYPE_CHECKING:
    from pathlib import Path

    from markupsafe import Markup

    from pipeline.git import Repository
    from pipeline.routing.vocabulary import Signal
    from pipeline.service.explanation import ExplainDocument, Mistake
    from pipeline.service.live_view import LiveView
    from pipeline.service.run_result import RecipeDocument
    from pipeline.service.run_status import ShowDocument


@dataclass(frozen=True)
class Look:
    """All that a run's page shows.

    Args:
        view: How it stands at this moment.
        document: What `show --json` prints of it.
        decisions: What `explain --json` prints; None of a recipe's own steps.
        pictures: Where it stands on its way, for a wide page and for a narrow one.
        ways: What can follow the step that it is at: signal, what the signal says, where it goes.
    """

    view: LiveView
    document: ShowDocument | RecipeDocument
    decisions: ExplainDocument | None = None
    pictures: tuple[Markup, ...] = ()
    ways: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Return what agents did wrong."""
        return mistakes_of(self.decisions) if self.decisions is not None else ()

    @property
    def json(self) -> dict[str, Any]:
        """Return the document of the command line."""
        return self.document.model_dump(mode="json", by_alias=True)


def look_at(folder: Path, here: Repository) -> Look:
    """Return what the page of a run shows.

    Raises:
        UserError: the run is damaged.
    """
    run, view = load_run(folder, driving=False), live_view(folder)
    if not isinstance(run, Run):
        return Look(view, show_recipe_run(folder, here))
    way = way_of(run)
    return Look(
        view,
        show_run(folder, here),
        explain_run(folder, here),
        (drawn(way, WIDE, "wide"), drawn(way, TALL, "tall")),
        _ways(run),
    )


def _ways(run: Run) -> tuple[tuple[str, str, str], ...]:
    at, gate = run.state.trunk.step, gate_of(run)
    if run.state.has_ended or run.state.beside:
        return ()
    return tuple(
        (row.signal.value, row.says + (f" ({row.given.value})" if row.given else ""), routed_words(row.action, at))
        for row in MATRIX
        if at in steps_of(row) and row.step is not None and _is_open(row.signal, gate)
    )


def _is_open(signal: Signal, gate: str | None) -> bool:
    """Return whether a signal can come: a gate is not sent back further than to what was there before it."""
    _, rejected, to = signal.value.partition("REJECTED_TO_")
    return gate is None or not rejected or to.lower() in WAYS_BACK[gate]
