"""Explains each field of each report in a sentence, for people. A test compares the sentences with the reports."""

from __future__ import annotations

from typing import Final

_WHERE: Final = "Where: path:line, or the heading."
_FILE: Final = "The file, relative to the top of the project."
_ACTION: Final = "What happens to the file."
_NEEDS: Final = "Files that you need and the task does not name."
_OLD_TESTS: Final = "Tests that exist and have to change."
_TRIED: Final = "What you tried."
_NOTES: Final = "Anything else that the next one should know."

SENTENCES: Final[dict[str, str]] = {
    "out_of_scope": "Bugs that were there before; each becomes an issue of its own.",
    "OutOfScope.title": "The bug, in one line.",
    "OutOfScope.description": "How it shows.",
    # reviews
    "verdict": "The word that decides.",
    "summary": "What you found or did, in a few sentences.",
    "CheckReview.findings": "What has to change. Without one, nothing is held up.",
    "SuiteJudgement.findings": "What has to change in the tests.",
    "ReviewFinding.severity": "How bad it is; empty: MEDIUM. Above MEDIUM only with evidence.",
    "ReviewFinding.title": "What is wrong, in one line.",
    "ReviewFinding.location": _WHERE,
    "ReviewFinding.problem": "What is wrong, in full.",
    "ReviewFinding.risk": "What happens if it stays.",
    "ReviewFinding.suggestion": "What is to be done; a short one is the title of a proved fix.",
    "ReviewFinding.evidence": "What shows it: a line of code, an output, a failing call.",
    "ReviewFinding.concern": "What it is about; the final review sends it there.",
    "ReviewFinding.confidence": "How sure you are.",
    "ReviewFinding.edit": "The exact replacement, where only looks change.",
    "WorkFinding.proof": "A test or an edit that shows it, if you have one: it is run. Fill in one of the two.",
    "Proof.test": "A new test file that fails over the work, because the finding is true.",
    "Proof.edit": "A wrong change of the work that all tests accept.",
    "ProvingTest.path": "The new file, among the tests.",
    "ProvingTest.content": "All of its text.",
    "Edit.path": _FILE,
    "Edit.old": "The text that is there.",
    "Edit.new": "The text in its place.",
    "prior": "The findings that are open: say of each what became of it. One without a status stays open.",
    "PriorAnswer.id": "The finding.",
    "PriorAnswer.status": "What became of it.",
    "PriorAnswer.note": "Why.",
    "ResultReview.criteria": "Whether each criterion is met. All empty with ACCEPTABLE: all are.",
    "MetCriterion.task": "The task.",
    "MetCriterion.id": "The criterion.",
    "MetCriterion.met": "Whether the result meets it.",
    "MetCriterion.note": "What is missing.",
    "answers": "Six questions: yes, no, or a sentence. All empty with ACCEPTABLE: yes to all.",
    "SplitAnswers.coverage": "Do the tasks cover every criterion of the issue?",
    "SplitAnswers.overlap": "Is no work in two tasks?",
    "SplitAnswers.single_purpose": "Has each task one purpose, or a few small ones in one file?",
    "SplitAnswers.contracts": "Do the tasks agree on what they share?",
    "SplitAnswers.testable": "Can each task be tested?",
    "SplitAnswers.test_approach": "Do the tests show the criteria?",
    "SimplifyReview.findings": "What could be simpler. It is advice and holds nothing up.",
    "SimplifyFinding.title": "What could be simpler, in one line.",
    "SimplifyFinding.category": "yagni, indirection, accidental or premature.",
    "SimplifyFinding.location": _WHERE,
    "SimplifyFinding.current": "What is there.",
    "SimplifyFinding.simpler": "What would do.",
    "SimplifyFinding.payoff": "What is gained: low, medium or high.",
    "SimplifyFinding.effort": "What it takes: trivial, small, medium or large.",
    "SimplifyFinding.risk": "What could be lost: none, low or medium.",
    "SimplifyFinding.check_conflict": "May @check want what you want to remove? Yes, no, or what.",
    # judgements
    "accepted": "Whether you accept it.",
    "notes": _NOTES,
    "diagnosis": "What is at fault.",
    "tests_to_change": _OLD_TESTS,
    "OldTest.id": "The test, as the runner calls it.",
    "OldTest.reason": "Why it has to change.",
    # follow-ups
    "issues": "How each item is filed.",
    "FollowUp.item": "The item: its number.",
    "FollowUp.title": "The issue's title.",
    "FollowUp.body": "Its text.",
    "FollowUp.labels": "Its labels.",
    "FollowUp.duplicate_of": "The issue that says it already, if one does.",
    # @test
    "tests": "A new test that passes now, as a GUARD; none of a task that only adds tests. Others are measured.",
    "NamedTest.id": "The test, as the runner calls it.",
    "NamedTest.expected": "RED: fails now. GUARD: passes now and must stay so. Empty: RED.",
    "NamedTest.origin": "removed: it is gone. Empty: it is there.",
    "NamedTest.reason": "Why it is as it is.",
    "BuiltTest.id": "The test, as the runner calls it.",
    "BuiltTest.expected": "GUARD: passes over the old code, too. RED: an old test that fails now. Empty: RED.",
    "BuiltTest.reason": "Why it is as it is.",
    "Built.criteria": "What shows each criterion: its tests, or the reason why none does.",
    "BuiltUntested.reason": "Why no test can show it.",
    "ReadyTests.criteria": "What shows each criterion: its tests, or the reason why none does.",
    "ShownCriterion.id": "The criterion.",
    "ShownCriterion.tests": "The tests that show it.",
    "ShownCriterion.reason": "Why no test does.",
    "escalate_to_check": "Whether @check should look at the tests.",
    "escalation_reason": "Why.",
    "NotTestable.reason": "Why no test can show it.",
    "attempted": _TRIED,
    "future_seam": "What would make it testable.",
    "seam_files": "The files where that would be.",
    "problem": "What is the matter, in full.",
    "suggested_fix": "What would help.",
    "needs": _NEEDS,
    "Need.path": _FILE,
    "Need.action": "What you would do to it. Empty: modify.",
    "Need.why": "Why you need it.",
    # @make
    "result": "The word that decides.",
    "assumptions": "What you took for granted.",
    "blocking_issue": "What is in the way.",
    "attempts": _TRIED,
    "escalate": "The word for what is at fault, if it is not the code.",
    "missing": "What the task lacks.",
    "output": "The answer, in Markdown.",
    "limitations": "What the answer leaves open.",
    "payload": "For the steps behind this one, where a form is asked for: its JSON.",
    "questions": "The questions that a person has to answer first.",
    "seams": "Whether the work keeps to each contract that the request names.",
    "HonouredSeam.name": "The contract.",
    "HonouredSeam.honoured": "Whether the work keeps to it.",
    "HonouredSeam.note": "What does not.",
    "Unanswerable.why": "Why it is needed for an answer.",
    "CannotProceed.why": "Why it is needed for the work.",
    "suggestion": "What would help.",
    # the orchestrator
    "PlanReport.files": "The files that change.",
    "PlanAndTasks.files": "The files that change.",
    "PlannedFile.path": _FILE,
    "PlannedFile.action": _ACTION,
    "PlannedFile.from": "The old path, of a rename.",
    "PlannedFile.why": "Why this file.",
    "approach": "How the problem is solved.",
    "risks": "What could go wrong.",
    "test_design": "What is tested, and what not.",
    "DesignOfTests.behaviours": "What is done, and what can be seen then.",
    "Behaviour.action": "What is done.",
    "Behaviour.outcome": "What can be seen then.",
    "DesignOfTests.edge_cases": "Cases at the edge.",
    "DesignOfTests.not_tested": "What is not tested, and why.",
    "DesignOfTests.testability": "What is hard to reach, and which seam would help.",
    "task": "The split at once, where the whole issue is one task; leave it empty else.",
    "tasks": "The tasks, in the order in which they can be done.",
    "SplitTask.title": "The task, in one line.",
    "SplitTask.acceptance_criteria": "What must hold, one sentence each.",
    "SplitTask.files": "Production files that the task may change; none where it changes tests only.",
    "SplitTask.test_files": "Test files that it may change; none where it writes no test.",
    "SplitTask.description": "What is to be done.",
    "SplitTask.symbols": "Names that tests use and that are new, or get another signature; of a method Class.method.",
    "SplitTask.tests_to_change": _OLD_TESTS,
    "SplitTask.code_context": "A few lines of the code that matters.",
    "SplitTask.integration_contract": "What other tasks rely on.",
    "SplitTask.depends_on": "Numbers of the tasks before it, from 1.",
    "SplitTask.constraints": "What must not be done.",
    "SplitTask.evidence": "red: tests that fail first. regression: nothing else breaks. Empty: red.",
    "SplitTask.symptom": "hang or crash: a time-out, or a dead process, is RED, too. Empty: neither.",
    "FileChange.path": _FILE,
    "FileChange.action": _ACTION,
    "FileChange.from": "The old path, of a rename.",
    "Symbol.name": "The name.",
    "Symbol.path": _FILE,
    "Symbol.signature": "How it is called.",
    "Symbol.new": "Whether it is new. Empty: yes.",
    "Snippet.path": _FILE,
    "Snippet.snippet": "The lines.",
}
"""The sentences by `Class.field`, or by field alone where the meaning is the same in every report."""

_BASES: Final = {
    **dict.fromkeys(("SplitReview", "StepReview", "ResultReview"), "CheckReview"),
    "WorkFinding": "ReviewFinding",
}


def sentence(of: str, name: str) -> str:
    """Return the sentence about a field; empty if there is none.

    Args:
        of: The class of the report or of its part, as its schema calls it.
        name: The field.
    """
    base = _BASES.get(of, of)
    keys = (f"{of}.{name}", f"{base}.{name}", name)
    return next((SENTENCES[key] for key in keys if key in SENTENCES), "")
