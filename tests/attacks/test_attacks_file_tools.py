"""Paths that a model hands to an in-process file tool."""

from __future__ import annotations

import pytest
from attacks.catalogue import Case, FileTool, Layer, Verdict, cases
from attacks.figures import count
from attacks.host import FILES
from attacks.world import MAKE_GRANTS, TESTS

from pipeline.agents.dispatch.gate import Policy
from pipeline.agents.dispatch.roles import load_roles
from pipeline.judge.policy.rights import Change, ChangeKind


@pytest.mark.parametrize("case", cases(Layer.FILE_TOOL), ids=lambda case: case.id)
def test_a_path_is_refused_before_anything_is_written(case: Case, request: pytest.FixtureRequest) -> None:
    count(request, case, "file tools")
    assert isinstance(case.attempt, FileTool)
    path = case.attempt.path
    change = Change(path, ChangeKind.MODIFIED if path in FILES else ChangeKind.ADDED)
    ruling = Policy(load_roles()[case.role].writes, MAKE_GRANTS, TESTS).judged_word(change)
    assert ruling.allowed is (case.expected.verdict is Verdict.ACCEPTED), ruling
    assert ruling.why
