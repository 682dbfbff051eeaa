"""Reports to fill in by hand: what they leave to the person is exactly what a report must say."""

from __future__ import annotations

from itertools import chain

import pytest

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.kinds import KINDS, report_schema
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.report_templates import alternatives, blanks, deciding, giving_up, required, unfilled
from pipeline.vocabulary import Question, Role

Asked = tuple[str, Role, Question | None]

ASKED: list[Asked] = list(
    chain.from_iterable(
        [(kind.name, role, None) for role in kind.by_role]
        + [(kind.name, Role.CHECK, question) for question in kind.by_question]
        for kind in KINDS.values()
    )
)
DECIDED = [asked for asked in ASKED if deciding(report_schema(*asked)) is not None]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_blank_is_no_report_until_it_is_filled_in(asked: Asked) -> None:
    schema = report_schema(*asked)
    for blank, alternative in zip(blanks(schema), alternatives(schema), strict=True):
        names = [field.name for field in required(schema, alternative)]
        assert list(blank)[: len(names)] == names
        assert set(blank) == set(alternative["properties"])
        only_words = all(len(field.words) == 1 for field in required(schema, alternative))
        refused = isinstance(parse_report(*asked, blank), Malformed) or unfilled(blank) is not None
        assert refused is not only_words


@pytest.mark.parametrize("asked", DECIDED, ids=str)
def test_a_blank_with_what_must_be_said_is_a_report(asked: Asked) -> None:
    schema = report_schema(*asked)
    for blank, alternative in zip(blanks(schema), alternatives(schema), strict=True):
        said = {
            field.name: field.words[0] if field.words else True if field.kind == "boolean" else "said"
            for field in required(schema, alternative)
        }
        report = parse_report(*asked, blank | said)
        assert not isinstance(report, Malformed), report.sentence


def test_all_words_that_decide_are_known() -> None:
    field = deciding(report_schema("implement", Role.MAKE))
    assert field is not None
    assert (field.name, field.words) == ("result", ("COMPLETE", "INCOMPLETE", "CANNOT_PROCEED"))
    assert deciding(report_schema("plan", Role.ORCHESTRATOR)) is None


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_giving_up_is_a_report_where_there_is_one(asked: Asked) -> None:
    report = giving_up(report_schema(*asked), "why")
    assert (report is not None) == (asked[1] in {Role.MAKE, Role.TEST} or asked[0] == "answer")
    assert report is None or not isinstance(parse_report(*asked, report), Malformed)


def test_what_was_left_to_fill_in_is_found_at_any_depth() -> None:
    assert unfilled({"a": "...", "b": 1}) == "/a"
    assert unfilled({"a": [{"b": "x"}, {"b": "..."}]}) == "/a/1/b"
    assert unfilled({"a": "wait ...", "b": []}) is None
