"""A person's proof that could not be run is refused when it is handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.agents.backends.desk import Desk
from pipeline.app.human_answer import proof_faults
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.reviews import ResultReview
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("proof", "at", "said"),
    [
        ({"test": {"path": "tests/test_old.py", "content": "x"}}, "test/path", "Remove what you tried"),
        ({"test": {"path": "tests/test_new.py", "content": "x"}}, None, ""),
        ({"edit": {"path": "code.py", "old": "a", "new": "b"}}, "edit/old", "It is 2 times in code.py"),
        ({"edit": {"path": "code.py", "old": "a = 1", "new": "b"}}, None, ""),
        ({"edit": {"path": "none.py", "old": "a", "new": "b"}}, "edit/path", "no file of the work"),
    ],
)
def test_what_can_be_seen_at_the_desk_is_said_there(
    tmp_path: Path, proof: dict[str, object], at: str | None, said: str
) -> None:
    desk = Desk(tmp_path)
    (desk.files / "tests").mkdir(parents=True)
    (desk.files / "tests/test_old.py").write_text("x", encoding="utf-8")
    (desk.files / "code.py").write_text("a = 1\na = 2\n", encoding="utf-8")
    findings = [{"title": "none"}, {"title": "t", "proof": proof}]
    report = parse_report("review-result", Role.CHECK, None, {"verdict": "NEEDS WORK", "findings": findings})
    assert isinstance(report, ResultReview)
    faults = list(proof_faults(desk, report))
    assert [fault.pointer for fault in faults] == ([f"/findings/1/proof/{at}"] if at else [])
    assert said in "".join(fault.text for fault in faults)
