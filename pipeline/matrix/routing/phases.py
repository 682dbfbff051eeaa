"""Says who is asked on the way of an issue's run, and what for: the part that a recipe decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.matrix.routing.matrix import ASKS
from pipeline.vocabulary import Role, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Phases:
    """The reviewers of each draft and of the result. What is empty is passed by the row NOT_ASKED.

    Args:
        plan: Who reviews the plan.
        split: Who reviews the split.
        result: Who reviews the result.
        own_split: Whether the split is a draft of its own; else the plan brings its tasks.
        given: Whether the recipe brings the first plan along, with its tasks, so that nobody is asked for them.
        one_writer: Whether tests and code of the issue come from one dispatch (BUILD), and nobody plans. What does not
            come about so is planned after all, by one draft for plan and tasks.
        own: The steps of the recipe's own between the tasks and the review of the result, by id, in order.
    """

    plan: tuple[Role, ...] = ASKS[Step.REVIEW_PLAN]
    split: tuple[Role, ...] = ASKS[Step.REVIEW_SPLIT]
    result: tuple[Role, ...] = ASKS[Step.FINAL_REVIEW]
    own_split: bool = True
    given: bool = False
    one_writer: bool = False
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse reviews that only advise, and a result that nobody reviews."""
        alone = [step.value for step, roles in self._reviewers.items() if roles and Role.CHECK not in roles]
        if alone or not self.result:
            raise ValueError(f"{', '.join(alone) or Step.FINAL_REVIEW.value} is reviewed without @check")

    def slots(self, step: Step) -> tuple[Role, ...]:
        """Return who is asked in a step."""
        return self._reviewers.get(step, ASKS.get(step, ()))

    def passes(self, step: Step) -> bool:
        """Return whether a review is passed, since nobody is asked."""
        return step in self._reviewers and not self._reviewers[step]

    def least(self, gates: Collection[str] = ()) -> int:
        """Return how many dispatches a run takes whose issue is one task where nothing goes wrong.

        A plan that is reviewed brings its one task along, which is reviewed with it. Where a person looks at the plan
        or the split, the split is asked for by itself (`RunState.plan_brings_tasks`).
        """
        if self.one_writer:
            return len((Step.BUILD, *self.own, *self.result))
        draft = 0 if self.given else 1
        apart = (self.own_split and not self.plan) or bool({"plan", "split"}.intersection(gates) and not self.given)
        split = draft + len(self.split) if apart else 0
        tasks = len((Step.WRITE_TESTS, Step.IMPLEMENT))
        return draft + len(self.plan) + split + tasks + len(self.own) + len(self.result)

    @property
    def _reviewers(self) -> Mapping[Step, tuple[Role, ...]]:
        return {Step.REVIEW_PLAN: self.plan, Step.REVIEW_SPLIT: self.split, Step.FINAL_REVIEW: self.result}


@dataclass(frozen=True)
class Written:
    """What a step of the recipe's own has left: the files, and how many tasks were accepted before it."""

    step: str
    tree: str
    accepted: int


EVERYBODY: Final = Phases()
"""As the built-in recipe `issue` has it."""
