from __future__ import annotations

import json

import pytest
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

from pipeline.errors import UserError
from pipeline.faces.cli.errors import INTERNAL
from pipeline.faces.cli.schema import SCHEMAS, ErrorDocument, schema
from pipeline.judge.reports.kinds import KINDS
from pipeline.outcomes import Reason

app = typer.Typer()
app.command()(schema)


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def test_without_a_name_the_names_are_listed() -> None:
    assert run().split() == list(SCHEMAS)
    assert json.loads(run("--json"))["names"] == list(SCHEMAS)


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_every_schema_is_a_closed_json_schema(name: str) -> None:
    document = json.loads(run(name))
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    objects = [document, *document.get("$defs", {}).values()]
    fields = [item for item in objects if "properties" in item]
    assert fields
    assert all(item["additionalProperties"] is False for item in fields)


def test_every_kind_of_report_has_a_schema() -> None:
    reports = {tuple(name.split("/")[1:3]) for name in SCHEMAS if name.startswith("report/")}
    assert reports == {(role.value, kind.name) for kind in KINDS.values() for role in kind.roles}


def test_an_unknown_name_names_a_near_one() -> None:
    with pytest.raises(UserError, match='Did you mean "config"'):
        run("confgi")


def test_the_kinds_of_errors_are_the_reasons_and_the_bug() -> None:
    kinds: set[str] = set()
    for branch in json.loads(run("error"))["$defs"].values():
        kinds.update(branch.get("enum", ()))
        for option in branch.get("properties", {}).get("kind", {}).get("anyOf", ()):
            kinds.update({option["const"]} if "const" in option else ())
    assert kinds == {*(reason.value for reason in Reason), INTERNAL}


def test_an_error_document_with_another_key_is_refused() -> None:
    with pytest.raises(ValidationError):
        ErrorDocument.model_validate({"schema": "redfirst.error/1", "ok": False, "error": {}, "extra": 1})
