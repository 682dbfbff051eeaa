"""Defines what the steps of a recipe are handed, and what they leave: words, payload and outcome of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import anyio

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.next_steps import before
from pipeline.matrix.recipes.step_table import At, Checkpoint, StepLane
from pipeline.matrix.recipes.templates import Reference, below, filled, listed, only_reference
from pipeline.steps.context import DriverContext
from pipeline.steps.publication.trees import above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pydantic import JsonValue

    from pipeline.matrix.recipes.model import Step
    from pipeline.repo import TreeChange
    from pipeline.run.recipe_run import RecipeRun

_LONGEST: Final = 200
"""Characters of a value that stands in a text; what is longer, or of several lines, is a file."""


def in_text(name: str, said: str, keep: Callable[[str, str], Path], files: list[Path]) -> str:
    """Return what stands for a value: it is never read as words of the recipe.

    Args:
        name: Of the file, if it is to be one.
        said: The value.
        keep: Writes the file.
        files: Takes it.
    """
    if len(said) <= _LONGEST and "\n" not in said:
        return said
    files.append(keep(name, said))
    return f"(the file {name} among the artifacts `inputs`)"


class CollisionError(Exception):
    """One step made a file where another one made a folder: there is no tree with both."""


def base_of(ctx: RecipeContext, name: str) -> str:
    """Return the tree that a step sees.

    Raises:
        CollisionError: there is none.
    """
    return tree_with(ctx, before(ctx.run.machine, ctx.run.state, name))


def tree_with(ctx: RecipeContext, names: Iterable[str]) -> str:
    """Return the start of the run with what these steps changed, as far as they are ready; in order.

    Raises:
        CollisionError: what they made does not go into one tree.
    """
    state, machine = ctx.run.state, ctx.run.machine
    ready = [name for name in names if name in state.trees and state.settled.get(name) is Checkpoint.READY]
    put = tuple((name, state.trees[name]) for name in ready if machine.writes(machine.step_of(name).id))
    if put not in ctx.put_together:
        changes: dict[str, TreeChange] = {}
        for name, _ in put:
            made = ctx.repository.diff(base_of(ctx, name), state.trees[name])
            changes |= {change.path: change for change in made}
        files = {path for path, change in changes.items() if change.entry is not None}
        for path in files:
            folder = next((folder for folder in above(path) if folder in files), None)
            if folder is not None:
                raise CollisionError(f"{folder} is a file of one step, and has {path} of another one in it")
        ctx.put_together[put] = ctx.repository.build_tree(ctx.run.info.seen_tree, changes.values())
    return ctx.put_together[put]


@dataclass
class Words:
    """What the steps of a run have left, for whoever reads it. `lane_name` is the step that reads."""

    run: RecipeRun
    lane_name: str = TRUNK

    def path(self, name: str) -> Path:
        """Return the absolute path of an artifact."""
        return self.run.folder / name

    def words_of(self, name: str) -> str:
        """Return what a step said, empty where it said nothing."""
        return self._text(f"steps/{name}/{name}.md")

    def payload_of(self, name: str) -> JsonValue:
        """Return the payload of a step, None where it has none."""
        path = f"steps/{name}/{name}.json"
        text = self._text(path) if path in self.left(name) else ""
        return cast("JsonValue", json.loads(text)) if text else None

    def left_by(self, id_: str) -> list[Path]:
        """Return the files that a step of the file left, those of each step that it became.

        Of one that did not come out it is only the file that says so: nothing stands in for what it should have left.
        """
        names = self.run.machine.names(self.run.state, id_)
        found = (self.left(name) or [f"steps/{name}/outcome.json"] for name in names)
        return [path for files in found for path in map(self.path, files) if path.is_file()]

    def left(self, name: str) -> list[str]:
        """Return the files of a step that came out, by their names in the run: what it said, payload and patch."""
        checkpoint = self.run.state.settled.get(name)
        if checkpoint is None or not checkpoint.is_usable:
            return []
        step = self.run.machine.step_of(name)
        asked_for = step.agent is None or step.payload is not None  # an older one may lie there
        names = [f"steps/{name}/{name}.{kind}" for kind in ("md", "json", "patch") if kind != "json" or asked_for]
        return [each for each in names if self.path(each).is_file()]

    def item(self) -> JsonValue:
        """Return the item of the step, one of a `for_each`."""
        id_, _, number = self.lane_name.rpartition(".")
        over = self.run.machine.steps[id_].for_each if id_ else None
        source = only_reference(over) if over is not None else None
        if source is not None and source.input is not None:
            return listed(self.run.inputs[source.input])[int(number) - 1]
        for each in self.run.machine.steps.values():
            for step, keys in self.run.machine.lists_of(each.id):
                if step == id_:
                    found = below(self.payload_of(each.id), keys)
                    return found[int(number) - 1] if isinstance(found, list) else None
        return None

    def _text(self, name: str) -> str:
        try:
            return self.run.read(name).decode("utf-8")
        except OSError:
            return ""

    def with_values(self, text: str) -> str:
        """Return a text of the file with the values themselves: for people, and for words of a command."""

        def value(one: Reference) -> str:
            if one.step is not None and one.what == "output":
                names = self.run.machine.names(self.run.state, one.step)
                return "\n\n".join(filter(None, (self.words_of(name).strip() for name in names if self.left(name))))
            return self._value(one)[1]

        return filled(text, value)

    def _value(self, one: Reference) -> tuple[str, str]:
        if one.input is not None:
            return f"{one.input}.txt", self.run.inputs[one.input]
        value = below(self.item() if one.is_item else self.payload_of(one.step or ""), one.path)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return f"{'item' if one.is_item else one.step}{''.join(f'.{key}' for key in one.path)}.txt", text


@dataclass(kw_only=True)
class RecipeContext(Words, DriverContext):
    """The ports of one driver of a recipe's run."""

    run: RecipeRun
    told_of: dict[str, Checkpoint] = field(default_factory=dict[str, "Checkpoint"])
    """The steps whose outcome this driver has written."""
    put_together: dict[tuple[tuple[str, str], ...], str] = field(default_factory=dict[tuple[tuple[str, str], ...], str])
    """Trees that were put together of what steps changed, by these steps and what each left."""
    looking: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while it is found out how this project's tests are run, once for all steps."""

    @property
    def lane(self) -> StepLane:
        """Return where the step stands that is given this."""
        return self.run.state.lanes[self.lane_name]

    @property
    def step(self) -> Step:
        """Return the step of the file."""
        return self.run.machine.steps[self.lane.step]

    @property
    def base(self) -> str:
        """Return the tree that the step sees: the start, and what the ready steps before it changed.

        Raises:
            CollisionError: what they changed does not go into one tree.
        """
        return base_of(self, self.lane_name) if self.lane_name != TRUNK else self.run.info.seen_tree

    @property
    def tree(self) -> str:
        """Return the tree as the step has it now: what it sees, with what it wrote so far.

        Raises:
            CollisionError: there is none that it sees.
        """
        return self.lane.tree or self.base

    def feedback(self) -> list[Path]:
        """Return what persons said who sent this step back, and what it had come to; nothing where nobody did."""
        to = self.step.id if self.lane.at is At.ASK else None
        back = [one for one in self.run.history if getattr(one.decision.action, "to", None) == to]
        names = [name for one in back for name in one.event.evidence]
        own = [path for path in (self.path(f"steps/{self.lane_name}/{self.lane_name}.md"),) if path.is_file()]
        return [*map(self.path, names), *own] if to is not None and names else []

    @property
    def publication(self) -> str:
        """Return which of the run's publications the step makes: it may be made again, for another result."""
        return f"{self.lane_name}@{self.lane.visit}"

    # --- texts -------------------------------------------------------------------------------------------------

    def told(self, text: str) -> tuple[str, list[Path]]:
        """Return a text of the file with what its placeholders stand for, and the files that it names instead.

        What other steps said, and what is longer than a line, is a file: a value is never read as words of the file.
        """
        files: list[Path] = []

        def keep(name: str, said: str) -> Path:
            return self.path(self.write(f"steps/{self.lane_name}/{name}", said))

        def value(one: Reference) -> str:
            if one.step is not None and one.what == "output":
                return f"(the files of `{one.step}` among the artifacts `outcomes`)"
            change = self.run.info.change
            if change is not None and one.input == change.input:
                name, said = f"{one.input}.diff", self.repository.patch(change.before, change.after)
            else:
                name, said = self._value(one)
            return in_text(name, said, keep, files)

        return filled(text, value), files
