"""Proofs in runs of recipes: of a finding on what a step wrote, and of one on the change that a run is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import FILES, make_project
from workflows.test_runs_of_recipes import LOOSE, answer
from workflows.test_writers import asks, given, made, ran, review, writes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_finding_on_what_a_step_wrote_is_proved_and_settled_by_measuring(tmp_path: Path) -> None:
    project = made(tmp_path, {"id": "w", "agent": "make", "write_set": ["*.sum"], "review": ["check"]})

    def found(title: str, test: str) -> dict[str, Any]:
        proof = {"test": {"path": f"{title}.check", "content": test}}
        return {"severity": "LOW", "title": title, "problem": f"{title}.", "proof": proof}

    project.use_script(
        [
            writes("w", {"ant.sum": "ant n = n * 2\n"}, when=asks("w")),
            review("w", "NEEDS WORK", findings=[found("thrice", "t: ant 2 = 6\n"), found("twice", "t: ant 2 = 4\n")]),
            writes("w", {"ant.sum": "ant n = n * 3\n"}, when=asks("w")),
            review("w", "ACCEPTABLE"),
        ],
        LOOSE,
    )
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 4), document
    folder = project.run_folder("run-r")
    records = [
        json.loads(path.read_text())["ledger"]["findings"] for path in sorted(folder.glob("steps/w/review-*.json"))
    ]
    assert [[(one["severity"], one["measured"]["found"], one["status"]) for one in each] for each in records] == [
        [("HIGH", "proved", "open"), ("LOW", "refuted", "refuted")],
        [("HIGH", "proved", "resolved"), ("LOW", "refuted", "refuted")],
    ]
    assert given(project, "004-w-check") >= {"open_findings", "changes"}
    told = (folder / "dispatches/004-w-check/artifacts/open_findings/open.md").read_text()
    assert told.startswith("# Refuted"), "what was mended is settled: nothing is left to answer"


GREETS_NOBODY = FILES["greet.py"].replace('f"Hello, {name}!"', 'f"Hello, {name or 1 / len(name)}!"')
TEST = "from greet import greet\n\n\ndef test_x():\n    assert greet({name!r}) == 'Hello, {name}!'\n"


@pytest.mark.broad
def test_what_is_found_in_a_change_is_filed_as_proved_and_not_where_it_is_refuted(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.git("switch", "--quiet", "--create", "feature", "main")
    project.write({"greet.py": GREETS_NOBODY})
    project.commit("feat: nobody")
    project.git("switch", "--quiet", "work")

    def found(claim: str, name: str, path: str = "tests/test_x.py") -> dict[str, Any]:
        return {"claim": claim, "proof": {"test": {"path": path, "content": TEST.format(name=name)}}}

    wrong = [found("Nobody cannot be greeted", ""), found("Ada is not greeted", "Ada"), found("Odd", "", "x.py")]
    claims = {"findings": [{**wrong[0], "measured": {"found": "proved", "why": "I say so"}}]}
    project.use_script(
        [
            answer("check", "One.", payload=claims),
            answer("check", "Three.", payload={"findings": wrong}),
            answer("simplify", "None.", payload={"findings": []}),
        ],
        LOOSE,
    )
    document = project.document("run", "review", "of=feature")
    assert (document["outcome"], document["_code"]) == ("completed", 0), document
    folder = project.run_folder("run-review")
    payload = json.loads((folder / "steps/check/check.json").read_text())["findings"]
    assert [one["measured"]["found"] for one in payload] == ["proved", "refuted", "unproved"]
    assert [one.get("severity") for one in payload] == ["HIGH", None, None]
    assert (
        "proved: Nobody cannot be greeted: it fails over the result, twice"
        in (folder / "steps/check/check.md").read_text()
    )
    filed = {path.name: path.read_text() for path in (project.root / "TODO").glob("GAL-*.md")}
    assert sorted(filed) == ["GAL-1.md", "GAL-2.md", "GAL-3.md"], "what is refuted is no issue"
    assert "Proved: it fails over the result" in filed["GAL-2.md"]
    assert "def test_x():" in filed["GAL-2.md"]
    assert "`measured` is for redfirst to say" in document["_stderr"] or document["dispatches"] == 3
