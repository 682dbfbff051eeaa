"""Serves the five MCP tools over standard input and output, with the official SDK.

Each has a description, arguments, an answer and an action; clients are told each as a JSON Schema. Each call is
answered in time, errors too.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue, ValidationError

from pipeline import VERSION
from pipeline.app.drivers import ended_within
from pipeline.app.run_list import lines_of
from pipeline.app.run_result import recipe_document
from pipeline.app.run_status import show_run
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.recipes.model import SLUG
from pipeline.outcomes import ASKED, Outcome, Reason
from pipeline.run.recipe_run import RecipeRun
from pipeline.run.records import ARTIFACT_LIMIT, is_of_recipe, read_record
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.summary_facts import last_note
from pipeline.steps.recipe_context import Words

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import types

    from pipeline.app.drivers import AgentRuns


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


class NothingAsked(Frozen):
    """A tool without arguments."""


class RunAsked(Frozen):
    """The recipe to run, and its inputs. Either `recipe` or `spec` is given."""

    recipe: Annotated[Name | None, Field(description="The name of a recipe, as `list` gives it")] = None
    spec: Annotated[
        str | None,
        Field(max_length=_LONGEST_SPEC, description="A recipe of your own, YAML or JSON, whose steps only read"),
    ] = None
    inputs: Annotated[Mapping[InputName, InputValue], Field(max_length=_MOST_INPUTS)] = {}


class StatusAsked(Frozen):
    """The run whose status is wanted, and how long to wait for its end."""

    run: Annotated[Name | None, Field(description="A run; without it the newest ones")] = None
    wait_s: Annotated[
        int, Field(ge=0, le=LONGEST_WAIT_S, description="Answer when the run has stopped, or after so many seconds")
    ] = 0


class ResultAsked(Frozen):
    """The run, or the step of one, whose result is wanted."""

    run: Name
    step: Annotated[Name | None, Field(description="What this step left, instead of what the run gives")] = None


class CancelAsked(Frozen):
    """The run to cancel."""

    run: Name


class InputTold(Frozen):
    """An input of a recipe."""

    name: str
    type: str
    required: bool
    default: str | None
    description: str


class RecipeTold(Frozen):
    """A recipe that may be run; `problem` says why it cannot be, then the rest is empty."""

    name: str
    description: str = ""
    inputs: tuple[InputTold, ...] = ()
    steps: int = 0
    asks: tuple[str, ...] = ()
    problem: str | None = None


class RecipesTold(Frozen):
    """The recipes that may be run."""

    recipes: tuple[RecipeTold, ...]


class StepTold(Frozen):
    """A step of a run: how it stands, null while it has not ended, and the first line of what it said."""

    step: str
    checkpoint: str | None
    summary: str


class RunTold(Frozen):
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


class RunsTold(Frozen):
    """The status of several runs, the newest first."""

    runs: tuple[RunTold, ...]


class ResultTold(Frozen):
    """The result of a run, or of a step of one. `cut` says that there is more; `files` is where all of it lies."""

    run: str
    status: str
    reason: str | None
    output: str | None
    payload: JsonValue
    cut: bool
    commits: tuple[str, ...]
    files: tuple[str, ...]


_SPEC: Final = """\
A recipe of your own is YAML, for example:
name: names
inputs: [{name: topic, required: true}]
steps:
  - {id: look, agent: explore, prompt: "Look at {{inputs.topic}}. Quote.", payload: findings.v1}
  - {id: doubt, agent: check, depends_on: [look], prompt: "What lacks evidence? {{steps.look.output}}"}
output: "{{steps.doubt.output}}"
Its steps ask check, simplify or explore, which read. It has no other kinds of steps, no model, no effort."""


@dataclass(frozen=True)
class Tool:
    """An MCP tool: its description, the documents it takes and gives, and its action.

    Args:
        description: What it does, for a model.
        takes: Its arguments.
        gives: Its answer.
        do: Does it.
        only_reads: Whether nothing changes.
    """

    description: str
    takes: type[BaseModel]
    gives: type[BaseModel]
    do: Callable[[AgentRuns, Any], BaseModel]
    only_reads: bool = True


def called(runs: AgentRuns, name: str, arguments: Mapping[str, object]) -> BaseModel:
    """Call a tool by name and return its answer.

    Raises:
        UserError: there is no such tool, its arguments are not accepted, or it cannot be done.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise UserError(f'There is no tool "{name}".', Reason.USAGE, details={"accepted": list(TOOLS)})
    try:
        asked = tool.takes.model_validate(dict(arguments))
    except ValidationError as error:
        faults = [f"{'/'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]
        raise UserError(f"{name}: {'; '.join(faults)}.", Reason.USAGE, details={"problems": faults}) from None
    return tool.do(runs, asked)


def _list(runs: AgentRuns, _asked: NothingAsked) -> RecipesTold:
    return RecipesTold(recipes=tuple(_recipe(runs, name) for name in runs.allowed()))


def _recipe(runs: AgentRuns, name: str) -> RecipeTold:
    try:
        recipe = runs.recipe(name)
    except UserError as error:
        return RecipeTold(name=name, problem=error.message)
    return RecipeTold(
        name=name,
        description=recipe.description,
        inputs=tuple(InputTold.from_fields(one) for one in recipe.inputs),
        steps=len(recipe.steps),
        asks=tuple(dict.fromkeys(step.agent for step in recipe.steps if step.agent is not None)),
    )


def _run(runs: AgentRuns, asked: RunAsked) -> RunTold:
    if asked.recipe is not None and asked.spec is None:
        return _told(runs.begin(asked.recipe, asked.inputs))
    if asked.spec is not None and asked.recipe is None:
        return _told(runs.begin_own(asked.spec, asked.inputs))
    raise UserError("Either `recipe` or `spec` says what is to be run.", Reason.USAGE)


def _status(runs: AgentRuns, asked: StatusAsked) -> RunsTold:
    roster = Roster(runs.repository)
    if asked.run is None:
        return RunsTold(runs=tuple(_told(one.folder) for one in roster.newest()[:MOST_RUNS]))
    folder = roster.find(asked.run).folder
    ended_within(folder, asked.wait_s)
    return RunsTold(runs=(_told(folder),))


def _result(runs: AgentRuns, asked: ResultAsked) -> ResultTold:
    folder = Roster(runs.repository).find(asked.run).folder
    told = _told(folder)
    if told.live and asked.step is None:
        raise UserError(f"{told.run} is still driven; `status` with `wait_s` says when it has stopped.", Reason.LOCKED)
    if not is_of_recipe(folder):
        return _given(told, folder, "summary.md", commits=show_run(folder, runs.repository).commits)
    if asked.step is None:
        return _given(told, folder, "output.md")
    steps = [step.step for step in told.steps]
    if asked.step not in steps:
        raise UserError(f'{told.run} has no step "{asked.step}".', Reason.USAGE, details={"accepted": steps})
    payload = Words(RecipeRun.load(folder, driving=False)).payload_of(asked.step)
    return _given(told, folder, f"steps/{asked.step}/{asked.step}.md", payload)


def _told(folder: Path) -> RunTold:
    """Return the status of a run, read from its folder."""
    (line,) = lines_of([folder])
    recipe: str | None = None
    note, steps = line.problem or "", tuple[StepTold, ...]()
    if line.problem is None and is_of_recipe(folder):
        document = recipe_document(Words(RecipeRun.load(folder, driving=False)))
        recipe, note = document.recipe.name, document.note
        steps = tuple(
            StepTold(step=one.step, checkpoint=one.checkpoint.value if one.checkpoint else None, summary=one.summary)
            for one in document.steps[:MOST_STEPS]
        )
    elif line.problem is None:
        run = Run.load(folder, driving=False)
        recipe, note = run.info.recipe.name if run.info.recipe is not None else None, last_note(run)
        steps = tuple(
            StepTold(step=f"task {task.id}", checkpoint=task.status.value, summary=task.spec.title)
            for task in run.state.tasks.values()
        )
    return RunTold.from_fields(
        line,
        run=folder.name,
        recipe=recipe,
        reason=line.reason.value if line.reason is not None and not line.live else None,
        waits_for_a_person=line.outcome is Outcome.PARKED and line.reason in ASKED,
        note=note if not line.live else "",
        steps=steps,
    )


def _given(
    told: RunTold, folder: Path, name: str, payload: JsonValue = None, commits: tuple[str, ...] = ()
) -> ResultTold:
    try:
        text = read_record(folder, name, ARTIFACT_LIMIT).decode("utf-8", errors="replace")
    except OSError:
        text = None
    large = len(json.dumps(payload)) > LONGEST
    return ResultTold.from_fields(
        told,
        output=None if text is None else text[:LONGEST],
        payload=None if large else payload,
        cut=large or len(text or "") > LONGEST,
        commits=commits,
        files=() if text is None else (str(folder / name),),
    )


TOOLS: Final[Mapping[str, Tool]] = {
    "list": Tool("List the recipes that may be run here, with their inputs.", NothingAsked, RecipesTold, _list),
    "run": Tool(
        "Begin a run of a recipe, by name or of your own, and return at once; it goes on by itself. It asks agents, "
        f"which takes minutes and costs money. {_SPEC}",
        RunAsked,
        RunTold,
        _run,
        only_reads=False,
    ),
    "status": Tool(
        "Say how runs stand; with `run` and `wait_s` wait until that one has stopped. A run that waits for a person "
        "is answered by a person, at the command line.",
        StatusAsked,
        RunsTold,
        _status,
    ),
    "result": Tool("Return what a run has given, or what one of its steps left.", ResultAsked, ResultTold, _result),
    "cancel": Tool(
        "Stop a run that was begun with `run`; what it has so far is kept, and a person can resume it.",
        CancelAsked,
        RunTold,
        lambda runs, asked: _told(runs.stop(asked.run)),
        only_reads=False,
    ),
}


# --- serving -----------------------------------------------------------------------------------------------------

ANSWERED_S: Final = 50
"""The longest that a call may take: clients give up after a minute."""
_SPARE_S: Final = 2
_SAYS: Final = """\
Recipes are workflows in files, whose steps ask agents within limits. `list` says which may be run, `run` \
begins one and returns its name, `status` with `wait_s` waits for its end, `result` returns what it gave."""


async def serve(runs: AgentRuns) -> None:
    """Answer the calls of a client until it closes the connection."""
    from mcp import types  # noqa: PLC0415  (an extra)
    from mcp.server.lowlevel import Server  # noqa: PLC0415  (the same)
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  (the same)

    beginning = anyio.Lock()

    async def list_tools(_ctx: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.description,
                    input_schema=tool.takes.model_json_schema(),
                    output_schema=tool.gives.model_json_schema(mode="serialization"),
                    annotations=types.ToolAnnotations(read_only_hint=tool.only_reads, open_world_hint=False),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(called, runs, params.name, params.arguments or {})
        try:
            with anyio.fail_after(ANSWERED_S - _SPARE_S):
                if params.name == "run":  # one after the other, so that what is counted is there
                    async with beginning:
                        answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
                else:
                    answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            return _failed(UserError(f"{params.name} took too long; ask `status` how it stands.", Reason.LOCKED).facts)
        except UserError as error:
            return _failed(error.facts)
        except Exception as error:  # noqa: BLE001  (a bug of ours ends this call, and not the others)
            traceback.print_exc(file=sys.stderr)
            return _failed({"kind": "internal", "message": f"This is a bug in redfirst: {error!r}"})
        value = answer.model_dump(mode="json")
        return types.CallToolResult(content=[_text(value)], structured_content=value)

    def _failed(facts: dict[str, object]) -> types.CallToolResult:
        return types.CallToolResult(content=[_text({"error": facts})], is_error=True)

    def _text(value: object) -> types.TextContent:
        return types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False, default=str))

    server = Server("redfirst", version=VERSION, instructions=_SAYS, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
