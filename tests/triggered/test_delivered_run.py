"""An issue that came from outside becomes commits on its branch, and lands there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from queued.sums_project import PLAIN, answers, issue, make
from triggered.outside import SECRET, SHOP, generic

from pipeline.app.deliver import deliver
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_delivered_issue_is_run_on_its_branch_and_lands_there(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    project = queued.project
    project.use_script(answers(1), PLAIN + SHOP)
    body = issue(1).partition("# GAL-1: Double m1")[2]
    delivery = generic(at=datetime.now(UTC), id="SHOP-7", title="Double m1", body=body)
    environ = {**project.environment(), "SHOP": SECRET}
    found = deliver(Repository.find(project.root), environ, "shop", *delivery)
    assert found.result == "ordered"
    queued.work()
    (order,) = queued.orders()
    assert (order["outcome"], order["issue"], order["via"]) == ("completed", "SHOP-7", "shop")
    assert (
        project.git("log", "--reverse", "--format=%s", "main..shop-7-double-m1").splitlines()[0] == "chore: file SHOP-7"
    )
    assert project.document("land", order["run"])["_code"] == 0
    assert project.git("rev-parse", "shop-7^{tree}") == project.git("rev-parse", "shop-7-double-m1^{tree}")
    assert "status: Done" in project.git("show", "shop-7:TODO/SHOP-7.md")
    assert project.git("log", "--format=%s", "main") == "init"
