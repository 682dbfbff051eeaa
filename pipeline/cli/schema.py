"""`redfirst schema`: the JSON Schemas of everything a program may rely on, taken from the code (contract 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Final, Literal, cast

import typer
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pipeline.config.model import Config
from pipeline.config.problems import did_you_mean
from pipeline.demo.document import DemoDocument
from pipeline.dispatch.prompt import DispatchDocument
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.reports.kinds import KINDS, report_schema
from pipeline.reports.payloads import NAMED
from pipeline.runs.events import JournalLine
from pipeline.runs.info import DispatchResult, RunInfo

SCHEMA: Final = "redfirst.schemas/1"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ErrorFacts(_Document):
    """What went wrong, and what is safe to do next."""

    kind: Reason | Literal["internal"]
    message: str
    path: str | None
    pointer: str | None
    details: Mapping[str, Any]
    safe_next_actions: tuple[str, ...]
    also: tuple[ErrorFacts, ...] = ()


class ErrorDocument(_Document):
    """What `--json` prints when a command fails (contract 1)."""

    document: Literal["redfirst.error/1"] = Field(alias="schema")
    ok: Literal[False]
    error: ErrorFacts


_REFERENCE: Final = re.compile(r" ?\((?:contract|contracts|architecture|matrix|seed|style|ADR)[^()]*\)")


def _for_users(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without our references to design pages, which a user does not have."""
    text = json.dumps(schema)
    return cast("dict[str, Any]", json.loads(_REFERENCE.sub("", text)))


def _of(model: type[BaseModel]) -> Callable[[], dict[str, Any]]:
    return lambda: {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


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


def _loaded(module: str, document: str) -> Callable[[], dict[str, Any]]:
    """Return what makes the schema of a document whose module is heavy: not on the path of --help."""
    return partial(_schema_in, module, document)


def _schema_in(module: str, document: str) -> dict[str, Any]:
    return _of(getattr(import_module(module), document))()


def _plain(module: str, document: str) -> Callable[[], dict[str, Any]]:
    """Return the same of a document that is a plain dataclass, so that it is printed without pydantic."""
    return partial(_schema_of_plain, module, document)


def _schema_of_plain(module: str, document: str) -> dict[str, Any]:
    plain = getattr(import_module(module), document)
    strict = pydantic_dataclass(plain, frozen=True, config=ConfigDict(extra="forbid"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(strict).json_schema()}


def _event() -> dict[str, Any]:
    """Return the schema of every event that there is."""
    from pipeline.events.model import checked  # noqa: PLC0415  (not on the path of --help)

    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **checked().json_schema()}


def _recipe() -> dict[str, Any]:
    """Return the schema of a recipe's file: steps, or another recipe with changes."""
    from pipeline.recipes.model import Extension, Recipe  # noqa: PLC0415  (not on the path of --help)

    both = TypeAdapter[Recipe | Extension](Recipe | Extension)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **both.json_schema(by_alias=True)}


SCHEMAS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "config": _of(Config),
    "error": _of(ErrorDocument),
    "dispatch": _of(DispatchDocument),
    "run-record": _of(RunInfo),
    "journal": _of(JournalLine),
    "dispatch-result": _of(DispatchResult),
    "demo": _of(DemoDocument),
    "run": _loaded("pipeline.service.run_result", "RunDocument"),
    "runs": _plain("pipeline.service.run_list", "RunsDocument"),
    "standing": _plain("pipeline.cli.standing", "StandingDocument"),
    "show": _loaded("pipeline.service.run_status", "ShowDocument"),
    "log": _loaded("pipeline.service.run_status", "LogDocument"),
    "explain": _loaded("pipeline.service.explanation", "ExplainDocument"),
    "diff": _loaded("pipeline.service.patches", "DiffDocument"),
    "packet": _loaded("pipeline.service.packets", "Packet"),
    "answered": _loaded("pipeline.service.answer", "AnsweredDocument"),
    "stopped": _loaded("pipeline.service.stopping", "StoppedDocument"),
    "doctor": _loaded("pipeline.service.doctor_document", "DoctorDocument"),
    "verify": _loaded("pipeline.verification.results", "VerifyDocument"),
    "tdd": _loaded("pipeline.verification.results", "TddDocument"),
    "land": _loaded("pipeline.service.land_choice", "LandDocument"),
    "gc": _loaded("pipeline.service.gc", "GcDocument"),
    "recipe": _recipe,
    "recipe-result": _loaded("pipeline.service.run_result", "RecipeDocument"),
    "recipe-explain": _loaded("pipeline.service.explanation", "RecipeExplainDocument"),
    "step-outcome": _loaded("pipeline.steps.recipe_outcome", "StepOutcome"),
    "event": _event,
    "queue": _loaded("pipeline.service.ordering", "QueueDocument"),
    **{f"payload/{name}": _of(form) for name, form in NAMED.items()},
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
    typer.echo(json.dumps(_for_users(SCHEMAS[name]()), indent=2))
