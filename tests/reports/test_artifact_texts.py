from __future__ import annotations

from typing import Any

from pipeline.judge.reports.artifacts import advice_md, findings_md, plan_md, review_md
from pipeline.judge.reports.drafts import PlanReport
from pipeline.judge.reports.findings import Stage, StageFindings, apply_advice, apply_review
from pipeline.judge.reports.markdown import parse
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.reviews import CheckReview, SimplifyReview
from pipeline.vocabulary import Role

PLAN: dict[str, Any] = {
    "problem": "Names may be empty.",
    "approach": "Raise.\n\n## Files\n\nnone",
    "files": [
        {"path": "src/g.py", "action": "modify", "why": "the check"},
        {"path": "b.py", "action": "rename", "from": "a.py"},
    ],
    "risks": ["callers"],
    "test_design": {
        "behaviours": [{"action": 'greet("")', "outcome": "ValueError"}],
        "edge_cases": ["blank"],
        "not_tested": ["logging"],
        "testability": [],
    },
}


def plan(raw: dict[str, Any]) -> PlanReport:
    report = parse_report("plan", Role.ORCHESTRATOR, None, raw)
    assert isinstance(report, PlanReport), report
    return report


def test_a_plan_is_rendered_section_by_section() -> None:
    text = plan_md(plan(PLAN), "GAL-39", "Reject empty names", 2)
    assert text.startswith("# Plan for GAL-39: Reject empty names\n\nRevision 2.\n")
    headings = [line.section for line in parse(text).headings if line.text.startswith("## ")]
    assert headings == ["Problem", "Approach", "Files", "Risks", "Test Design"]
    assert "- `src/g.py` (modify): the check\n- `b.py` (rename from `a.py`)\n" in text
    assert '- ACTION: greet("") OUTCOME: ValueError\n' in text
    assert "### Not Tested\n\n- logging" in text
    assert "### Testability" not in text


def test_a_review_shows_our_ids_and_what_became_of_the_verdict() -> None:
    first = parse_report(
        "review-split",
        Role.CHECK,
        None,
        {
            "verdict": "BLOCK",
            "summary": "Hm.",
            "answers": {"coverage": True, "test_approach": "sound"},
            "findings": [
                {"severity": "HIGH", "title": "Gap", "location": "task-1", "problem": "p\nq", "evidence": "e",
                 "edit": {"path": "a.py", "old": "teh\\d", "new": "the"}},
            ],
            "out_of_scope": [{"title": "Old bug", "description": "d"}],
        },
    )  # fmt: skip
    assert isinstance(first, CheckReview), first
    ledger, outcome = apply_review(StageFindings(stage=Stage.SPLIT), 1, first)
    text = review_md(1, first, outcome, ledger)
    for piece in (
        "# Review 1 of the split by @check",
        "BLOCK, counted as NEEDS_WORK",
        "BLOCK without an open BLOCK finding",
        "### split-1-01 [HIGH] Gap",
        "- Problem:\n\n  p\n  q",
        "- coverage: yes\n- test approach: sound",
        r"'teh\d' becomes 'the'",
        "- Old bug: d",
    ):
        assert piece in text
    assert "### split-1-01 [HIGH] Gap" in findings_md(ledger.open)

    for number, verdict, status, note in (
        (2, "NEEDS WORK", "open", "still no test"),
        (3, "ACCEPTABLE", "resolved", "fine"),
    ):
        prior = [{"id": "split-1-01", "status": status, "note": note}]
        again = parse_report("review-split", Role.CHECK, None, {"verdict": verdict, "prior": prior})
        assert isinstance(again, CheckReview), again
        ledger, outcome = apply_review(ledger, number, again)
        if status == "open":  # whoever mends it has to know why the last attempt was not enough
            assert "- Last review says: still no test" in findings_md(ledger.open)
    assert "- split-1-01 Gap - resolved: fine" in review_md(3, again, outcome, ledger)


def test_advice_shows_its_ids_and_the_conflict() -> None:
    finding = {"title": "Drop the cache", "category": "YAGNI", "simpler": "no cache", "check_conflict": "retries"}
    report = parse_report(
        "review-plan", Role.SIMPLIFY, None, {"verdict": "NEEDS SIMPLIFICATION", "findings": [finding]}
    )
    assert isinstance(report, SimplifyReview), report
    text = advice_md(1, report, apply_advice(StageFindings(stage=Stage.PLAN), report))
    assert "### plan-1-s01 [YAGNI] Drop the cache" in text
    assert "- plan-1-s01: retries" in text


def test_lines_keep_their_numbers_and_sections() -> None:
    document = parse('---\nid: 1\n---\n# T\n\n## A\n\n### B\ntext `code` "cited" http://x.y/?q end\n```py\nx\n```\n')
    assert [(line.number, line.text) for line in document.front] == [(2, "id: 1")]
    last = document.prose[5]
    assert (last.number, last.section, last.subsection) == (9, "A", "B")
    assert last.prose.split() == ["text", "end"]
    (fence,) = document.fences
    assert (fence.number, fence.language, fence.section, fence.filled) == (10, "py", "A", ("x",))
