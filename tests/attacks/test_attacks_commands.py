"""Command lines that a model hands to an in-process shell tool."""

from __future__ import annotations

import pytest
from attacks.catalogue import Case, Layer, Verdict, cases
from attacks.figures import count

from pipeline.agents.dispatch.roles import load_roles
from pipeline.judge.policy.commands import judge_command
from pipeline.testing.languages.table import listed_commands


@pytest.mark.parametrize("case", cases(Layer.COMMAND), ids=lambda case: case.id)
def test_a_command_is_refused_before_it_runs(case: Case, request: pytest.FixtureRequest) -> None:
    count(request, case, "commands")
    ruling = judge_command(case.text, listed_commands(), shell=load_roles()[case.role].shell)
    assert ruling.allowed is (case.expected.verdict is Verdict.ACCEPTED), ruling
    assert bool(ruling.argv) is ruling.allowed
    assert ruling.why
