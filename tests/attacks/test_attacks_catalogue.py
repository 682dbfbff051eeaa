"""The suite itself: nothing is left out, and nothing is changed without a reason."""

from __future__ import annotations

from collections import Counter

from attacks.catalogue import CORPUS_CASES, Layer, Verdict, cases, changes, corpus, own
from attacks.lies import LIES
from attacks.outcome import ELSEWHERE, NOT_WITHOUT_A_BOX
from attacks.texts import RUNNERS


def test_the_whole_corpus_is_here_and_every_id_is_given_once() -> None:
    assert len(corpus()) == CORPUS_CASES
    assert len(own()) >= 25
    assert [name for name, count in Counter(case.id for case in (*corpus(), *own())).items() if count > 1] == []


def test_every_case_has_a_runner() -> None:
    assert {case.id for case in cases(Layer.VERDICT)} == set(LIES)
    assert {case.id for case in cases(Layer.TEXT)} == set(RUNNERS)
    assert sum(len(cases(layer)) for layer in Layer) == len(corpus()) + len(own())


def test_only_the_gaps_that_the_corpus_names_are_known_gaps() -> None:
    assert {case.id for case in (*corpus(), *own()) if case.known_gap} == {"VS-10", "VS-20"}


def test_every_layer_has_positive_controls() -> None:
    accepting = {case.layer for case in (*corpus(), *own()) if case.expected.verdict is Verdict.ACCEPTED}
    assert accepting == {Layer.DISPATCH, Layer.CONTENT, Layer.COMMAND, Layer.FILE_TOOL}


def test_exceptions_are_about_cases_that_exist() -> None:
    known = {case.id for case in cases(Layer.DISPATCH)}
    named = {change.id for change in changes()} | ELSEWHERE.keys() | NOT_WITHOUT_A_BOX.keys()
    assert named <= known
