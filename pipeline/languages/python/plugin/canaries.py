"""Two tests of our own, which show whether the session reports outcomes correctly."""

from __future__ import annotations

from typing import Any

import pytest


def canary_outcomes(session: Any) -> dict[str, str]:
    """Return the outcomes that this session reports for a passing and a failing test, unseen by the project's hooks."""
    from _pytest.reports import TestReport
    from _pytest.runner import CallInfo

    class Canary(pytest.Item):
        def runtest(self) -> None:
            """Do nothing: `from_call` gets the body directly."""

        def reportinfo(self) -> tuple[str, int, str]:
            return "", 0, self.name

        def repr_failure(self, excinfo: Any, style: Any = None) -> str:  # noqa: ARG002  (pytest names them)
            return "canary"  # nobody reads it, and showing the failing line would parse this file

    def fail() -> None:
        raise AssertionError("canary")

    answers: dict[str, str] = {}
    for name, body in (("pass", lambda: None), ("fail", fail)):
        make: Any = getattr(Canary, "from_parent")  # noqa: B009  its keyword arguments have no type
        item = make(session, name="redfirst-canary-" + name)
        run: Any = CallInfo.from_call
        call = run(body, when="call")
        answers[name] = str(TestReport.from_item_and_call(item, call).outcome)
    return answers
