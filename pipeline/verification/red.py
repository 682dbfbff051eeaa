"""RED again: the tests of one tree over the production of another, judged by the same table as in a run (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence import classify
from pipeline.evidence.observation import RunState
from pipeline.steps.measuring import UnmeasurableError, compose, measure
from pipeline.toolchains.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.evidence.classify import Classified, Context
    from pipeline.evidence.observation import Observation
    from pipeline.steps.measuring import Apparatus


@dataclass(frozen=True)
class Red:
    """What the tests showed over `production`, and how that is classified."""

    production: str
    observation: Observation
    context: Context

    def of(self, entry: str) -> Classified | None:
        """Return the class of a test id or a test file; None where there is no such test."""
        record = self.observation.records.get(entry)
        if record is not None:
            return classify.classify(record, self.context)
        path = entry.partition("::")[0]
        errors = (error for error in self.observation.collection_errors if error.path == path)
        return next((classify.classify_collection(error, self.context) for error in errors), None)


@dataclass(frozen=True)
class Wanted:
    """What a task, or the one who asks, says of the behaviour that is to come; see `classify.Context`."""

    symbols: tuple[classify.Symbol, ...] = ()
    files: frozenset[str] = frozenset()
    symptom: classify.Symptom | None = None
    expected: Mapping[str, classify.Expected] | None = None


async def measure_red(
    lab: Apparatus, tests_from: str, production: str, test_paths: Iterable[str], ids: Collection[str], wanted: Wanted
) -> Red:
    """Return what these tests show over another tree's production.

    Args:
        lab: Where to measure.
        tests_from: The tree that has the tests.
        production: The tree that everything else is taken from.
        test_paths: The files of the tests and all that serves them.
        ids: Which tests to run.
        wanted: What counts as not there yet.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    tree = compose(lab, tests_from, production, test_paths)
    seen = await measure(lab, tree, Selection(ids=frozenset(ids)), trace=True)
    context = classify.Context(
        symbols=wanted.symbols,
        existing=frozenset(entry.path for entry in lab.repository.entries(production)),
        layout=seen.layout,
        task_files=wanted.files,
        symptom=wanted.symptom,
        expected=wanted.expected or {},
    )
    return Red(production, seen, context)


async def measure_whole(lab: Apparatus, tree: str, what: str) -> Observation:
    """Return what all tests of *tree* show.

    Raises:
        UnmeasurableError: the run did not come to its end, or the environment is broken.
    """
    seen = await measure(lab, tree)
    if seen.state is RunState.TIMED_OUT:
        raise UnmeasurableError(f"the tests of {what} did not end in time")
    return seen
