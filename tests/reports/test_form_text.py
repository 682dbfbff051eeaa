"""The form of a report: every report can be filled in, and what is written is taken as it stands."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.characters import visible
from pipeline.judge.reports.form_words import SENTENCES
from pipeline.judge.reports.kinds import KINDS, report_schema
from pipeline.judge.reports.parse import read_report
from pipeline.judge.reports.yaml_form import Blank, Sort, blanks_of, form_text, marked, read_form, unmarked, with_head
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.judge.reports.yaml_form import Filled
    from pipeline.vocabulary import Question

REPORTS = [
    (kind.name, role, question)
    for kind in KINDS.values()
    for role in kind.roles
    for question in (tuple(kind.by_question) or (None,))
]
REVIEW = blanks_of(report_schema("review-plan", Role.CHECK))
MAKE = blanks_of(report_schema("implement", Role.MAKE))


def said(blank: Blank, text: str, **begun: list[dict[str, str]]) -> Filled:
    return read_form(blank, textwrap.dedent(text), begun)


def fields(blank: Blank) -> Iterator[Blank]:
    for one in blank.parts:
        yield one
        yield from fields(one)


@pytest.mark.parametrize(("kind", "role", "question"), REPORTS)
def test_an_empty_form_says_nothing_and_each_field_has_a_sentence(
    kind: str, role: Role, question: Question | None
) -> None:
    blank = blanks_of(report_schema(kind, role, question))
    assert [one.name for one in fields(blank) if one.name and not one.says] == []
    text = form_text(blank, ["who is asked"], {}, {})
    assert max(map(len, text.splitlines())) < 80
    empty = read_form(blank, text, {})
    assert (empty.report, empty.faults) == ({}, [])
    assert {f"/{one.name}" for one in blank.parts} <= empty.lines.keys()


def test_no_sentence_is_about_a_field_that_no_report_has() -> None:
    names = {
        one.name for kind, role, question in REPORTS for one in fields(blanks_of(report_schema(kind, role, question)))
    }
    assert {key.rpartition(".")[2] for key in SENTENCES} <= names


def test_text_is_taken_as_it_stands() -> None:
    found = said(
        REVIEW,
        """\
        verdict: needs-work
        summary: |-
          "quoted": and `code`, *stars* # no comment

            further in
        # a comment
        findings:
          - severity: high
            title: "it: breaks"
            problem: |
              # a heading of its own
              - an item
            edit:
              path: a.py
              old: x = "1"
              new:
                x = 1
                  y = 2
          - title: 'second'
            severity:
        answers:
          coverage: yes
          overlap: one file is in both
        """,
    )
    assert found.faults == []
    assert found.report == {
        "verdict": "NEEDS WORK",
        "summary": '"quoted": and `code`, *stars* # no comment\n\n  further in',
        "findings": [
            {
                "severity": "HIGH",
                "title": "it: breaks",
                "problem": "# a heading of its own\n- an item\n",
                "edit": {"path": "a.py", "old": 'x = "1"', "new": "x = 1\n  y = 2"},
            },
            {"title": "second"},
        ],
        "answers": {"coverage": True, "overlap": "one file is in both"},
    }
    assert not read_report("review-plan", Role.CHECK, None, found.report).faults


@pytest.mark.parametrize(
    "text",
    [
        "it: breaks",
        "see #12",
        "see #12 # a",
        "`code` fails",
        "@check says so",
        "*star",
        "&a b",
        "!not so",
        "[a] b",
        "- a",
    ],
)
def test_a_text_that_yaml_would_take_for_something_else_is_kept_or_marked_with_what_to_do(text: str) -> None:
    form = f"verdict: ACCEPTABLE\nsummary: {text}\n"
    found = said(REVIEW, form)
    if not found.faults:
        assert found.report["summary"] == text
        return
    (fault,) = found.faults
    assert "write | behind the field" in fault.text
    assert marked(form, found.lines, found.faults).split("\n")[1].startswith("#! ")
    assert said(REVIEW, f"verdict: ACCEPTABLE\nsummary: |-\n  {text}\n").report["summary"] == text


@pytest.mark.parametrize(
    "text",
    [
        "result: COMPLETE\nassumptions:\n  - one\n  - two, three\n",
        "result: COMPLETE\nassumptions:\n- one\n- two, three\n",
        'result: COMPLETE\nassumptions: ["one", "two, three"]\n',
    ],
    ids=["indented", "as YAML", "JSON"],
)
def test_a_list_may_be_written_in_several_ways(text: str) -> None:
    assert said(MAKE, text).report["assumptions"] == ["one", "two, three"]


@pytest.mark.parametrize(
    "text",
    [
        "assumptions:\n  - one\n    goes on\n  - two\n",
        "assumptions:\n  - one\n   goes on\n  - two\n",
        "assumptions:\n- one\n  goes on\n- two\n",
    ],
    ids=["below the text", "behind the dash", "and entries further left"],
)
def test_a_line_that_an_editor_wraps_goes_on_as_the_entry_that_it_was(text: str) -> None:
    found = said(MAKE, f"result: COMPLETE\n{text}")
    assert (found.report["assumptions"], found.faults) == (["one\ngoes on", "two"], [])


def test_a_comment_that_is_wrapped_goes_on_below_its_text() -> None:
    words = "an outcome that is told in more words than one line of the form has room for, so that it goes on"
    lines = form_text(MAKE, [f"  + {words}", f"  - {words}", f"  {words}", "at the margin"], {}, {}).split("\n")
    assert [line[: line.index(line.lstrip("#+- "))] for line in lines[:7]] == [
        *("#   + ", "#     "),
        *("#   - ", "#     "),
        *("#   ", "#   "),
        "# ",
    ]
    assert max(map(len, lines)) < 80


def test_an_entry_that_was_begun_and_left_so_counts_as_empty() -> None:
    begun = {"prior": [{"id": "plan-1-01"}, {"id": "plan-1-02"}]}
    text = form_text(REVIEW, [], begun, {"prior": ["plan-1-01 [HIGH] It fails"]})
    assert "#   plan-1-01 [HIGH] It fails\n" in text
    assert read_form(REVIEW, text, begun).report == {}
    answered = text.replace("  - id: plan-1-02\n    status:", "  - id: plan-1-02\n    status: Resolved")
    assert read_form(REVIEW, answered, begun).report == {"prior": [{"id": "plan-1-02", "status": "resolved"}]}


def test_a_folded_text_is_joined_by_blanks() -> None:
    found = said(
        REVIEW, "verdict: ACCEPTABLE\nsummary: >-\n  one line\n  and another,\n  and a third\n\n  with a break\n"
    )
    assert found.report["summary"] == "one line and another, and a third\nwith a break"


@pytest.mark.parametrize(
    ("text", "pointer", "words"),
    [
        ("result: DONE\n", "/result", "COMPLETE"),
        ("result: COMPLETE\nblocking_issue: none\n", "/blocking_issue", "INCOMPLETE"),
        ("result: COMPLETE\nsumary: x\n", "/line 1", "no field begins here"),
        ("result: COMPLETE\nsummary: x\nmore text\n", "/yaml", "cannot be read"),
        ("result: COMPLETE\nneeds:\n  path: a.py\n", "/needs", "each beginning with -"),
        ("result: INCOMPLETE\nneeds:\n  - path: a.py\n  action: modify\n", "/yaml", "cannot be read"),
        ("result: INCOMPLETE\nneeds:\n- path: a.py\n  action: modify\n  - path:\n", "/yaml", "at the same place"),
        ("result: COMPLETE\nneeds: a.py\n", "/needs", "each beginning with -"),
        ("result: COMPLETE\nsummary: x\nsummary: y\n", "/summary", "twice"),
    ],
)
def test_what_cannot_be_read_is_marked_above_its_line(text: str, pointer: str, words: str) -> None:
    found = said(MAKE, text)
    assert found.faults[0].pointer == pointer
    assert words in found.faults[0].text
    told = marked(text, found.lines, found.faults)
    assert told.split("\n")[found.lines[pointer]].startswith("#! ")
    assert unmarked(told) == text


def test_what_the_schema_refuses_has_its_line_too() -> None:
    text = "result: INCOMPLETE\nblocking_issue:\nneeds:\n  - action: modify\n    why: x\n"
    found = said(MAKE, text)
    faults = read_report("implement", Role.MAKE, None, found.report).faults
    assert marked(text, found.lines, faults).split("\n") == [
        "result: INCOMPLETE",
        "#! this key is required",
        "blocking_issue:",
        "needs:",
        "#! path: this key is required",
        "  - action: modify",
        "    why: x",
        "",
    ]


def test_a_form_that_was_begun_gets_another_head() -> None:
    text = form_text(MAKE, ["first"], {}, {}).replace("result:\n", "result: COMPLETE\n")
    again = with_head(text, ["second", "third"])
    assert again.startswith("# second\n# third\n\n# result (required)")
    assert read_form(MAKE, again, {}).report == {"result": "COMPLETE"}


REDRAFTED = [(kind, blanks_of(report_schema(kind, Role.ORCHESTRATOR))) for kind in ("plan", "plan-and-tasks", "split")]
TEXT = st.one_of(
    st.lists(st.sampled_from([*"aB \t\n\"'#-:|>[]", "\n\n", "  ", ">|", "#! ", "- ", "title: "]), max_size=7).map(
        "".join
    ),
    st.text(max_size=8).map(lambda text: visible(text, keep="\n\t")),
).filter(bool)


def says_something(part: dict[str, Any]) -> bool:
    return any(value != [] for value in part.values())


def values(blank: Blank) -> st.SearchStrategy[Any]:
    """Return values of a field that say something."""
    match blank.sort:
        case Sort.PART:
            required = {one.name: values(one) for one in blank.parts if one.is_required}
            optional = {one.name: values(one) for one in blank.parts if not one.is_required}
            return st.fixed_dictionaries(required, optional=optional).filter(says_something)
        case Sort.LIST:
            return st.lists(values(blank.parts[0]), min_size=0 if blank.needs_list else 1, max_size=2)
        case Sort.WORD:
            return st.sampled_from(blank.words)
        case Sort.FLAG:
            return st.booleans()
        case Sort.NUMBER:
            return st.integers()
        case _:
            return TEXT


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("blank", [blank for _, blank in REDRAFTED], ids=[kind for kind, _ in REDRAFTED])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_form_that_begins_with_a_report_says_the_same_report(blank: Blank, data: st.DataObject) -> None:
    report = data.draw(values(blank))
    found = read_form(blank, form_text(blank, ["who is asked"], report, {}), {})
    assert (found.report, found.faults) == (report, [])


@given(TEXT)
def test_each_text_is_read_as_it_was_written(text: str) -> None:
    texts = Blank("risks", Sort.LIST, parts=(Blank("", Sort.TEXT),))
    part = Blank("part", Sort.PART, parts=(Blank("entries", Sort.LIST, parts=(Blank("", Sort.PART, parts=(texts,)),)),))
    blank = Blank("", Sort.PART, parts=(Blank("problem", Sort.TEXT), texts, part))
    report = {"problem": text, "risks": [text, text], "part": {"entries": [{"risks": [text]}]}}
    assert read_form(blank, form_text(blank, [], report, {}), {}).report == report


def test_a_text_of_several_lines_is_a_block_and_what_is_hidden_is_seen() -> None:
    blank = blanks_of(report_schema("plan", Role.ORCHESTRATOR))
    said = {
        "problem": "one\n\n  two",
        "approach": '"quoted"',
        "risks": ["  indented\nflush"],
        "files": [{"path": "a.py", "action": "modify", "why": "\u202egnp.exe\r"}],
    }
    text = form_text(blank, [], said, {})
    for lines in (
        "problem: |-\n  one\n\n    two\n",
        "approach: '\"quoted\"'\n",
        'risks:\n  - "  indented\\nflush"\n',
        "    why: \\u202egnp.exe\\x0d\n",
    ):
        assert lines in text
