"""Arguments and answers of the MCP tools, with bounds; clients are told each as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from pipeline.recipes.model import SLUG

LONGEST: Final = 40_000
"""The longest text, in characters, that a tool answers with."""
MOST_RUNS: Final = 20
MOST_STEPS: Final = 200
LONGEST_WAIT_S: Final = 45
_LONGEST_SPEC: Final = 50_000
_LONGEST_INPUT: Final = 20_000
_MOST_INPUTS: Final = 20

Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]+$")]
InputName = Annotated[str, Field(max_length=100, pattern=SLUG)]
InputValue = Annotated[str, Field(max_length=_LONGEST_INPUT, pattern=r"^[^\x00]*$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NothingAsked(_Part):
    """A tool without arguments."""


class RunAsked(_Part):
    """The recipe to run, and its inputs. Either `recipe` or `spec` is given."""

    recipe: Annotated[Name | None, Field(description="The name of a recipe, as `list` gives it")] = None
    spec: Annotated[
        str | None,
        Field(max_length=_LONGEST_SPEC, description="A recipe of your own, YAML or JSON, whose steps only read"),
    ] = None
    inputs: Annotated[Mapping[InputName, InputValue], Field(max_length=_MOST_INPUTS)] = {}


class StatusAsked(_Part):
    """The run whose status is wanted, and how long to wait for its end."""

    run: Annotated[Name | None, Field(description="A run; without it the newest ones")] = None
    wait_s: Annotated[
        int, Field(ge=0, le=LONGEST_WAIT_S, description="Answer when the run has stopped, or after so many seconds")
    ] = 0


class ResultAsked(_Part):
    """The run, or the step of one, whose result is wanted."""

    run: Name
    step: Annotated[Name | None, Field(description="What this step left, instead of what the run gives")] = None


class CancelAsked(_Part):
    """The run to cancel."""

    run: Name


class InputTold(_Part):
    """An input of a recipe."""

    name: str
    type: str
    required: bool
    default: str | None
    description: str


class RecipeTold(_Part):
    """A recipe that may be run; `problem` says why it cannot be, then the rest is empty."""

    name: str
    description: str = ""
    inputs: tuple[InputTold, ...] = ()
    steps: int = 0
    asks: tuple[str, ...] = ()
    problem: str | None = None


class RecipesTold(_Part):
    """The recipes that may be run."""

    recipes: tuple[RecipeTold, ...]


class StepTold(_Part):
    """A step of a run: how it stands, null while it has not ended, and the first line of what it said."""

    step: str
    checkpoint: str | None
    summary: str


class RunTold(_Part):
    """A run's status. While it is driven `live` is true; `status` is a word of `runs`."""

    run: str
    recipe: str | None
    issue: str | None
    live: bool
    status: str
    reason: str | None
    waits_for_a_person: bool
    note: str
    dispatches: int
    steps: tuple[StepTold, ...]


class RunsTold(_Part):
    """The status of several runs, the newest first."""

    runs: tuple[RunTold, ...]


class ResultTold(_Part):
    """The result of a run, or of a step of one. `cut` says that there is more; `files` is where all of it lies."""

    run: str
    status: str
    reason: str | None
    output: str | None
    payload: JsonValue
    cut: bool
    commits: tuple[str, ...]
    files: tuple[str, ...]
