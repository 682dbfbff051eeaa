"""`redfirst schema`: the JSON Schemas of everything a program may rely on, taken from the code (contract 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Final, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pipeline.app.events import checked
from pipeline.config.problems import did_you_mean
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.judge.reports.kinds import KINDS, report_schema
from pipeline.judge.reports.payloads import NAMED
from pipeline.matrix.recipes.model import Extension, Recipe
from pipeline.outcomes import Reason
from pipeline.terminal import print_json

SCHEMA: Final = "redfirst.schemas/1"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class ErrorFacts(Frozen):
    """What went wrong, and what is safe to do next."""

    kind: Reason | Literal["internal"]
    message: str
    path: str | None
    pointer: str | None
    details: Mapping[str, Any]
    safe_next_actions: tuple[str, ...]
    also: tuple[ErrorFacts, ...] = ()


class ErrorDocument(Frozen):
    """What `--json` prints when a command fails (contract 1)."""

    document: Literal["redfirst.error/1"] = Field(alias="schema")
    ok: Literal[False]
    error: ErrorFacts


_REFERENCE: Final = re.compile(r" ?\((?:contract|contracts|architecture|matrix|seed|style|ADR)[^()]*\)")
"""A reference to a design page, which a user does not have."""


def _of(model: type[object]) -> dict[str, Any]:
    """Return the schema of a model, or of a plain dataclass, which is one to be printed without pydantic."""
    if not issubclass(model, BaseModel):
        strict = pydantic_dataclass(model, frozen=True, config=ConfigDict(extra="forbid"))
        return {"$schema": _DIALECT, **TypeAdapter(strict).json_schema()}
    return {"$schema": _DIALECT, **model.model_json_schema()}


def _at(place: str) -> dict[str, Any]:
    """Return the schema of `module:Document`; the module is loaded for that."""
    module, _, name = place.partition(":")
    return _of(getattr(import_module(module), name))


def _reports() -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for kind in KINDS.values():
        for role in kind.by_role:
            name = f"report/{role}/{kind.name}"
            found[name] = lambda kind=kind, role=role: report_schema(kind.name, role)
        for question in kind.by_question:
            (role,) = kind.roles
            name = f"report/{role}/{kind.name}/{question}"
            found[name] = lambda kind=kind, role=role, question=question: report_schema(kind.name, role, question)
    return found


def _event() -> dict[str, Any]:
    """Return the schema of every event that there is."""
    return {"$schema": _DIALECT, **checked().json_schema()}


def _recipe() -> dict[str, Any]:
    """Return the schema of a recipe's file: steps, or another recipe with changes."""
    both = TypeAdapter[Recipe | Extension](Recipe | Extension)
    return {"$schema": _DIALECT, **both.json_schema(by_alias=True)}


_PLACES: Final = {
    "config": "pipeline.config.model:Config",
    "error": "pipeline.faces.cli.schema:ErrorDocument",
    "dispatch": "pipeline.agents.dispatch.prompt:DispatchDocument",
    "run-record": "pipeline.run.info:RunInfo",
    "journal": "pipeline.run.journal_kinds:JournalLine",
    "dispatch-result": "pipeline.run.info:DispatchResult",
    "demo": "pipeline.faces.demo.command:DemoDocument",
    "run": "pipeline.app.run_result:RunDocument",
    "runs": "pipeline.app.run_list:RunsDocument",
    "standing": "pipeline.faces.cli.where_you_stand:StandingDocument",
    "show": "pipeline.app.run_status:ShowDocument",
    "log": "pipeline.app.run_status:LogDocument",
    "explain": "pipeline.app.explanation:ExplainDocument",
    "diff": "pipeline.app.run_status:DiffDocument",
    "packet": "pipeline.app.gate_packets:Packet",
    "answered": "pipeline.app.answer:AnsweredDocument",
    "stopped": "pipeline.app.drivers:StoppedDocument",
    "doctor": "pipeline.app.documents:DoctorDocument",
    "verify": "pipeline.testing.verification.results:VerifyDocument",
    "tdd": "pipeline.testing.verification.results:TddDocument",
    "land": "pipeline.app.land:LandDocument",
    "fleet": "pipeline.app.fleet:FleetDocument",
    "fleet-doctor": "pipeline.app.fleet:FleetDoctorDocument",
    "fleet-init": "pipeline.app.fleet:FleetInitDocument",
    "gc": "pipeline.app.gc:GcDocument",
    "recipe-result": "pipeline.app.run_result:RecipeDocument",
    "recipe-explain": "pipeline.app.explanation:RecipeExplainDocument",
    "step-outcome": "pipeline.steps.recipe_outcome:StepOutcome",
    "queue": "pipeline.app.ordering:QueueDocument",
    "fleet-runs": "pipeline.app.fleet:FleetRunsDocument",
    "fleet-taken": "pipeline.app.fleet:TakenDocument",
    "traces": "pipeline.app.events:TracesDocument",
    "notify": "pipeline.app.notices:NotifyDocument",
    "delivery": "pipeline.app.triggers:DeliveryDocument",
    "triggers": "pipeline.app.triggers:TriggersDocument",
}
"""The documents, by what they are called: their modules are heavy together, and one of them is asked for."""
SCHEMAS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    **{name: partial(_at, place) for name, place in _PLACES.items()},
    "recipe": _recipe,
    "event": _event,
    **{f"payload/{name}": partial(_of, form) for name, form in NAMED.items()},
    **_reports(),
}
"""Every document by its name; a module that owns another one adds it here."""


def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One of the names that are listed without it."),
    ] = None,
    as_document: Annotated[bool, typer.Option("--json", help="The list as one JSON document.")] = False,
) -> None:
    """Print the JSON Schema of a document.

    Without a name it lists those that there are.

    Examples:
      redfirst schema

      redfirst schema dispatch
    """
    if name is None:
        names = list(SCHEMAS)
        typer.echo(json.dumps({"schema": SCHEMA, "names": names}, indent=2) if as_document else "\n".join(names))
        return
    if name not in SCHEMAS:
        near = did_you_mean(name, list(SCHEMAS))
        hint = f' Did you mean "{near}"?' if near else ""
        raise UserError(
            f'There is no schema "{name}".{hint}',
            Reason.USAGE,
            details={"accepted": list(SCHEMAS), "did_you_mean": near},
            actions=("redfirst schema",),
        )
    print_json(json.loads(_REFERENCE.sub("", json.dumps(SCHEMAS[name]()))))
