"""docs/reference/contract.md names what the code has: commands, outcomes, kinds, reports, journal lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from house.documents import CONTRACT, command_of, every_command, table, words

from pipeline.agents.backends.scripted import Answer
from pipeline.agents.dispatch.prompt import DispatchDocument
from pipeline.app.run_result import RecipeDocument, RunDocument
from pipeline.faces.cli.schema import SCHEMAS, ErrorFacts
from pipeline.judge.reports.fields import Report
from pipeline.judge.reports.kinds import KINDS
from pipeline.matrix.engine.journal_kinds import EVENTS, DecisionMade
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.run.gates import ACTIONS
from pipeline.steps.recipe_outcome import StepOutcome
from pipeline.testing.measure.task_evidence import TaskEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from typer.core import TyperCommand

_EVERY_COMMAND: Final = frozenset({"--help", "--version", "--install-completion", "--show-completion"})


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def keys_of(model: type[BaseModel]) -> set[str]:
    return {info.alias or name for name, info in model.model_fields.items()}


def options_of(command: TyperCommand) -> set[str]:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    return {word for param in shown for word in param.opts if word.startswith("--")} - _EVERY_COMMAND


def test_commands_and_their_options() -> None:
    there = {" ".join(names): options_of(command) for names, command in every_command()}
    told: dict[str, set[str]] = {}
    for line, options, _ in table(CONTRACT, "command", "options", "does"):
        said = code(line)[0].split()[1:]
        _, rest = command_of(said)
        told[" ".join(said[: len(said) - len(rest)])] = set(code(options))
    assert told == there


def test_outcomes_reasons_and_exit_codes() -> None:
    told = {
        (int(code), outcome, reason)
        for code, outcome, reasons in table(CONTRACT, "exit", "outcome", "reasons")
        for reason in reasons.split()
    }
    there = {(exit_code(outcome, reason), outcome, reason) for outcome, more in ACTIONS.items() for reason in more}
    assert told == {(code, outcome.value, reason.value) for code, outcome, reason in there}
    assert {outcome for _, outcome, _ in told} == set(Outcome)
    assert {reason for _, _, reason in told} == set(Reason)


def test_documents_and_lines_of_the_journal() -> None:
    assert words(CONTRACT) == {
        "run": keys_of(RunDocument),
        "error": keys_of(ErrorFacts),
        "dispatch": keys_of(DispatchDocument),
        "entry": keys_of(Answer),
        "journal": set(EVENTS),
        "decision": keys_of(DecisionMade),
        "evidence": keys_of(TaskEvidence),
        "recipe-result": keys_of(RecipeDocument),
        "step-outcome": keys_of(StepOutcome),
    }


def test_kinds_with_their_artifacts() -> None:
    rows = table(CONTRACT, "kind", "asked of", "artifacts", "when there are any")
    told = {code(kind)[0]: (set(roles.split()), a.split(), more.split()) for kind, roles, a, more in rows}
    assert told == {
        kind.name: ({role.value for role in kind.roles}, list(kind.required), list(kind.optional))
        for kind in KINDS.values()
    }


def test_reports_with_what_they_require() -> None:
    told: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for names, fields in table(CONTRACT, "report", "fields"):
        reports, _, verdict = names.partition(":")
        every, bold = set(re.findall(r"\w+", fields)), set(re.findall(r"\*\*(\w+)\*\*", fields))
        told |= {(name, "".join(code(verdict))): (every, bold) for name in code(reports)}
    assert told == dict(_reports())


def _reports() -> Iterator[tuple[tuple[str, str], tuple[set[str], set[str]]]]:
    for name in (name for name in SCHEMAS if name.startswith("report/")):
        schema = SCHEMAS[name]()
        for one in _alternatives(schema):
            deciding = [part["const"] for part in one["properties"].values() if "const" in part]
            keys = (set(one["properties"]) - Report.model_fields.keys(), set(one["required"]))
            yield (name.removeprefix("report/"), "".join(deciding)), keys


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    refs = [one["$ref"].rpartition("/")[2] for one in schema.get("oneOf", ())]
    return [schema["$defs"][ref] for ref in refs] or [schema]
