from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.judge.reports.decode import MAX_BYTES, JsonObject, Malformed, Missing, decode_object
from pipeline.judge.reports.drafts import PlanReport
from pipeline.judge.reports.kinds import KINDS, report_schema, report_type
from pipeline.judge.reports.parse import extract_report, parse_report, read_report, report_of_person
from pipeline.judge.reports.work_reports import ReadyTests
from pipeline.vocabulary import Question, Role

# (kind, role, question, the least report that counts): only the bold fields of contract 5.
LEAST: list[tuple[str, Role, Question | None, dict[str, Any]]] = [
    ("plan", Role.ORCHESTRATOR, None, {"problem": "p", "files": []}),
    (
        "split",
        Role.ORCHESTRATOR,
        None,
        {"tasks": [{"title": "t", "acceptance_criteria": [], "files": [], "test_files": []}]},
    ),
    ("review-plan", Role.CHECK, None, {"verdict": "ACCEPTABLE"}),
    ("review-split", Role.CHECK, None, {"verdict": "NEEDS WORK"}),
    ("review-result", Role.CHECK, None, {"verdict": "BLOCK"}),
    ("review-step", Role.CHECK, None, {"verdict": "ACCEPTABLE"}),
    ("review-step", Role.SIMPLIFY, None, {"verdict": "JUSTIFIED COMPLEXITY"}),
    ("review-plan", Role.SIMPLIFY, None, {"verdict": "JUSTIFIED COMPLEXITY"}),
    ("review-result", Role.SIMPLIFY, None, {"verdict": "NEEDS SIMPLIFICATION"}),
    ("write-tests", Role.TEST, None, {"verdict": "TESTS_READY"}),
    ("write-tests", Role.TEST, None, {"verdict": "NOT_TESTABLE", "reason": "pure-wiring"}),
    ("write-tests", Role.TEST, None, {"verdict": "BLOCKED", "problem": "p"}),
    ("stub", Role.MAKE, None, {"result": "COMPLETE"}),
    ("seam", Role.MAKE, None, {"result": "INCOMPLETE", "blocking_issue": "b"}),
    ("implement", Role.MAKE, None, {"result": "CANNOT_PROCEED", "missing": "m"}),
    ("change", Role.MAKE, None, {"result": "COMPLETE"}),
    ("build", Role.MAKE, None, {"result": "COMPLETE"}),
    ("build", Role.MAKE, None, {"result": "INCOMPLETE", "blocking_issue": "b"}),
    ("build", Role.MAKE, None, {"result": "NOT_TESTABLE", "reason": "config-only"}),
    *[
        ("answer", role, None, {"result": "ANSWERED", "output": "o"})
        for role in (Role.CHECK, Role.SIMPLIFY, Role.EXPLORE)
    ],
    ("answer", Role.EXPLORE, None, {"result": "UNSURE", "output": "o", "limitations": "l"}),
    ("answer", Role.EXPLORE, None, {"result": "QUESTIONS", "questions": "q"}),
    ("answer", Role.EXPLORE, None, {"result": "CANNOT_PROCEED", "missing": "m"}),
    ("judge", Role.CHECK, Question.TESTS, {"verdict": "ACCEPTABLE"}),
    ("judge", Role.CHECK, Question.NOT_TESTABLE, {"accepted": True}),
    ("judge", Role.CHECK, Question.DIAGNOSE, {"diagnosis": "spec"}),
    ("judge", Role.CHECK, Question.AMEND, {"accepted": False}),
    (
        "plan-and-tasks",
        Role.ORCHESTRATOR,
        None,
        {
            "problem": "p",
            "files": [],
            "tasks": [{"title": "t", "acceptance_criteria": [], "files": [], "test_files": []}],
        },
    ),
    ("follow-ups", Role.PM, None, {"issues": [{"item": 1, "title": "t"}]}),
]


@pytest.mark.parametrize(("kind", "role", "question", "least"), LEAST)
def test_the_bold_fields_of_the_contract_are_enough_each_is_needed_and_no_unknown_key_is_taken(
    kind: str, role: Role, question: Question | None, least: dict[str, Any]
) -> None:
    report = parse_report(kind, role, question, {**least, "out_of_scope": [{"title": "old", "description": "d"}]})
    assert not isinstance(report, Malformed)
    assert report.out_of_scope[0].title == "old", "any report may tell of bugs that were there before"
    for field in least:
        found = parse_report(kind, role, question, {k: v for k, v in least.items() if k != field})
        assert isinstance(found, Malformed)
        assert found.pointer == f"/{field}"
    found = parse_report(kind, role, question, {**least, "surprise": 1})
    assert isinstance(found, Malformed)
    assert found.pointer == "/surprise"
    assert "accepted keys are" in found.sentence
    assert "out_of_scope" in found.sentence


def test_every_kind_role_and_question_has_a_case_here_and_a_schema() -> None:
    asked = {
        (kind.name, role, q) for kind in KINDS.values() for role in kind.roles for q in (*kind.by_question,) or (None,)
    }
    assert asked == {(kind, role, question) for kind, role, question, _ in LEAST}
    for kind, role, question in asked:
        assert json.dumps(report_schema(kind, role, question))


@pytest.mark.parametrize(
    ("kind", "role", "question"),
    [
        ("plan", Role.MAKE, None),
        ("review-split", Role.SIMPLIFY, None),
        ("judge", Role.CHECK, None),
        ("plan", Role.ORCHESTRATOR, Question.AMEND),
        ("sing", Role.PM, None),
    ],
)
def test_asking_somebody_for_what_is_not_theirs_is_a_bug_of_the_caller(
    kind: str, role: Role, question: Question | None
) -> None:
    with pytest.raises(LookupError):
        report_type(kind, role, question)


@pytest.mark.parametrize(
    ("raw", "needle"),
    [
        (b"", "not JSON"),
        (b"[1]", "one JSON object"),
        (b'"TESTS_READY"', "one JSON object"),
        (b'{"verdict": "BLOCK", "verdict": "ACCEPTABLE"}', "given twice"),
        (b'{"a": {"b": 1, "b": 1}}', "given twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (rb'{"a": ["\ud800"]}', "surrogate"),
        (rb'{"a": "\u0000"}', "NUL"),
        (rb'{"\u0000": 1}', "NUL"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}", "deeper"),
        (b'{"a": ' + b"[" * 100_000, "deeper"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "too long"),
        (b'{"a": "' + b"x" * MAX_BYTES + b'"}', "larger"),
    ],
)
def test_json_that_could_be_read_in_two_ways_or_hurts_is_refused(raw: bytes, needle: str) -> None:
    found = decode_object(raw)
    assert isinstance(found, Malformed)
    assert needle in found.sentence


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_make_decoding_raise(raw: bytes | str) -> None:
    assert isinstance(decode_object(raw), dict | Malformed)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["BLOCK", "COMPLETE", "a/b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["verdict", "result", "files", "path", "action", "tasks", "findings", "from", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(LEAST), st.dictionaries(st.sampled_from(["verdict", "findings", "tasks", "files"]), _JSON))
@pytest.mark.slow
def test_no_json_makes_parsing_raise(
    case: tuple[str, Role, Question | None, dict[str, Any]], changes: dict[str, Any]
) -> None:
    kind, role, question, least = case
    found = parse_report(kind, role, question, {**least, **changes})
    assert not isinstance(found, Malformed) or found.sentence.endswith(".")


@pytest.mark.parametrize("value", ["yes", 1, "true", [True]])
def test_nothing_is_coerced(value: object) -> None:
    found = parse_report("judge", Role.CHECK, Question.AMEND, {"accepted": value})
    assert isinstance(found, Malformed)
    assert found.pointer == "/accepted"


@pytest.mark.parametrize("verdict", ["acceptable", "NEEDS_WORK", "Needs work", "ACCEPTABLE "])
def test_a_verdict_is_spelt_exactly(verdict: str) -> None:
    found = parse_report("review-plan", Role.CHECK, None, {"verdict": verdict})
    assert isinstance(found, Malformed)
    assert "'NEEDS WORK'" in found.sentence


def test_null_in_an_optional_field_means_left_out() -> None:
    report = parse_report(
        "write-tests",
        Role.TEST,
        None,
        {"verdict": "TESTS_READY", "notes": None, "tests": None, "escalate_to_check": None},
    )
    assert report == ReadyTests(verdict="TESTS_READY")


def test_null_in_a_required_field_or_an_unknown_one_is_refused() -> None:
    found = parse_report("write-tests", Role.TEST, None, {"verdict": "NOT_TESTABLE", "reason": None})
    assert isinstance(found, Malformed)
    assert found.sentence == "The report breaks its schema at /reason: this key is required."
    assert isinstance(parse_report("judge", Role.CHECK, Question.AMEND, {"accepted": True, "x": None}), Malformed)


@pytest.mark.parametrize(
    "path",
    ["", " ", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "a\nb", "a\x7f", ".git/config", "x/.GIT/y",
     ".workflow/run.json", "a\u202eb", "x" * 1025],
)  # fmt: skip
def test_a_path_that_leaves_the_repository_or_hides_is_refused(path: str) -> None:
    found = parse_report(
        "plan", Role.ORCHESTRATOR, None, {"problem": "p", "files": [{"path": path, "action": "create"}]}
    )
    assert isinstance(found, Malformed)
    assert found.pointer == "/files/0/path"
    assert "accepted: a relative POSIX path" in found.sentence


@pytest.mark.parametrize(
    "path", ["a.py", "src/ä.py", ".github/workflows/x.yml", "a b/c.txt", "gitignore/.gitkeep", "..x"]
)
def test_an_honest_path_is_taken(path: str) -> None:
    report = parse_report(
        "plan", Role.ORCHESTRATOR, None, {"problem": "p", "files": [{"path": path, "action": "create"}]}
    )
    assert isinstance(report, PlanReport)
    assert report.files[0].path == path


@pytest.mark.parametrize(
    "file",
    [
        {"path": "a", "action": "rename"},
        {"path": "a", "action": "rename", "from": "a"},
        {"path": "a", "action": "modify", "from": "b"},
    ],
)
def test_from_belongs_to_a_rename(file: dict[str, str]) -> None:
    found = parse_report("plan", Role.ORCHESTRATOR, None, {"problem": "p", "files": [file]})
    assert isinstance(found, Malformed)
    assert found.pointer == "/files/0"


def test_a_fault_deep_in_a_union_is_pointed_at_as_the_agent_wrote_it() -> None:
    raw = {"result": "INCOMPLETE", "blocking_issue": "b", "needs": [{"path": "a"}, {"path": "b", "action": "frob"}]}
    found = parse_report("implement", Role.MAKE, None, raw)
    assert isinstance(found, Malformed)
    assert found.pointer == "/needs/1/action"
    assert "\"frob\", accepted is 'modify', 'create' or 'delete'" in found.sentence


def test_a_wrong_tag_names_the_tags() -> None:
    found = parse_report("implement", Role.MAKE, None, {"result": "DONE"})
    assert isinstance(found, Malformed)
    assert found.pointer == "/result"
    assert "'COMPLETE', 'INCOMPLETE', 'CANNOT_PROCEED'" in found.sentence


def test_a_sentence_stays_short_however_many_faults_there_are() -> None:
    tasks = [{"title": "", "files": "x" * 10_000} for _ in range(40)]
    found = parse_report("split", Role.ORCHESTRATOR, None, {"tasks": tasks})
    assert isinstance(found, Malformed)
    assert len(found.sentence) < 1200
    assert "more" in found.sentence


def test_a_title_of_two_lines_and_an_empty_split_are_refused() -> None:
    task: dict[str, Any] = {"title": "a\nb", "acceptance_criteria": [], "files": [], "test_files": []}
    found = parse_report("split", Role.ORCHESTRATOR, None, {"tasks": [task]})
    assert isinstance(found, Malformed)
    assert found.pointer == "/tasks/0/title"
    assert "must not be empty" not in found.sentence, "it has an entry, and what is wrong with that is told"
    for number in (0, 101):
        honest = {**task, "title": "t"}
        assert isinstance(parse_report("split", Role.ORCHESTRATOR, None, {"tasks": [honest] * number}), Malformed)


def test_an_object_that_never_was_json_is_malformed() -> None:
    assert isinstance(parse_report("plan", Role.ORCHESTRATOR, None, {"problem": {1}}), Malformed)
    knot: dict[str, object] = {}
    knot["problem"] = knot
    assert isinstance(parse_report("plan", Role.ORCHESTRATOR, None, knot), Malformed)


def anything(_value: JsonObject) -> bool:
    return True


def review(value: JsonObject) -> bool:
    return read_report("review-plan", Role.CHECK, None, value).report is not None


def test_the_report_file_comes_before_stdout() -> None:
    assert extract_report(b'{"from": "file"}\n', b'{"from": "stdout"}\n', anything) == {"from": "file"}


@pytest.mark.parametrize("file", [None, b"", b" \n"])
def test_without_a_file_the_last_json_line_of_stdout_counts(file: bytes | None) -> None:
    stdout = b'{"n": 1}\r\nworking...\n  {"n": 2}  \nbye {not json}\n[3]\n{"half": \n{oops}\n'
    assert extract_report(file, stdout, lambda value: value == {"n": 2}) == {"n": 2}


@pytest.mark.parametrize("stdout", [b"", b"## Verdict: ACCEPTABLE\n", b"[{}]\n", b'"ACCEPTABLE"\n', b"{bad}\n"])
def test_a_verdict_in_prose_is_no_report(stdout: bytes) -> None:
    assert extract_report(None, stdout, anything) == Missing()


BLOCKED: Final = {"verdict": "BLOCK", "summary": "no"}
LINE: Final = json.dumps(BLOCKED)
PRETTY: Final = json.dumps(BLOCKED, indent=2)


@pytest.mark.parametrize(
    "text",
    [
        f"Done.\n```json\n{PRETTY}\n```\nBye.\n",
        f"~~~\n{LINE}\n~~~\n",
        f"Here:\n{PRETTY.replace(chr(10), chr(13) + chr(10))}",
        f"\ufeff{LINE}\r\n",
        f"\x1b[1m\x1b[32m{LINE}\x1b[0m\nall done\n",
        f'<think>{{maybe}} {{"a": 1}}</think>\n{LINE} and that is it',
        f"{{\n{LINE}\n",
    ],
)
def test_the_last_object_counts_wherever_its_lines_stand(text: str) -> None:
    assert extract_report(None, text.encode(), review) == BLOCKED


@pytest.mark.parametrize(
    "text",
    [
        f"[{LINE}]\n",
        json.dumps(LINE),
        LINE[:-1] + ",}\n",
        LINE.replace('"', "'"),
        f'{{"verdict": "NEEDS WORK",\n"findings": [\n{LINE}\n,]}}\n',  # what a broken object holds is not the answer
        f'{{"said":\n{LINE}',
        "verdict: BLOCK\n",
    ],
)
def test_nothing_is_repaired(text: str) -> None:
    assert extract_report(None, text.encode(), review) == Missing()


VALUES: Final = st.integers() | st.text(max_size=9) | st.lists(st.none(), max_size=2)


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=4), st.data())
def test_the_last_of_several_objects_is_found_however_each_is_written(
    objects: list[JsonObject], data: st.DataObject
) -> None:
    forms = [data.draw(st.sampled_from([(None, ""), (2, ""), (1, "```\n"), (None, "\x1b[0m ")])) for _ in objects]
    texts = [before + json.dumps(value, indent=indent) for value, (indent, before) in zip(objects, forms, strict=True)]
    assume(not any("\\ud" in text or "\\u0000" in text for text in texts))
    assert extract_report(None, "\nlog\n".join(texts).encode(), lambda _: False) == objects[-1]


@pytest.mark.broad
@pytest.mark.slow
@pytest.mark.timeout(60)  # two seconds where nothing is read twice, minutes where an error counts all lines before it
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"a": ', Missing()),  # the report would be inside of them
        ('{"a": [', Missing()),
        ("{", BLOCKED),
        ('{"a": "', BLOCKED),
        ('{"a": 1 "b"', BLOCKED),
        ("log line", BLOCKED),
    ],
)
def test_megabytes_that_are_no_report_are_read_once(line: str, found: object) -> None:
    assert extract_report(None, f"{line}\n".encode() * 400_000 + LINE.encode(), review) == found


def test_a_text_that_is_longer_than_a_window_and_breaks_off_hides_what_is_behind_it_on_its_line() -> None:
    torn = '{"a": "' + "x" * 20_000
    assert extract_report(None, f"{torn}\n{LINE}".encode(), review) == BLOCKED
    assert extract_report(None, f"{torn} {LINE[1:]}".encode(), review) == Missing()


@pytest.mark.parametrize("length", range(4070, 4110))
def test_an_object_is_whole_wherever_a_window_ends(length: int) -> None:
    value = {"verdict": "BLOCK", "summary": "x" * length, "n": [True, -12345, "\U0001f600", None]}
    assert extract_report(None, json.dumps(value).encode() + b"\nbye\n" * 4000, lambda _: True) == value


def test_a_report_file_that_is_no_object_is_not_replaced_by_stdout() -> None:
    assert isinstance(extract_report(b"ACCEPTABLE", b'{"verdict": "ACCEPTABLE"}', anything), Malformed)


def test_an_ambiguous_last_object_is_not_skipped_for_an_earlier_one() -> None:
    assert isinstance(extract_report(None, b'{"n": 1}\n{"n": 2, "n": 3}\n', anything), Malformed)


QUOTED = {
    "before the answer": b'the file says:\n{"verdict": "ACCEPTABLE"}\n{"verdict": "BLOCK", "summary": "no"}\n',
    "after the answer": b'{"verdict": "BLOCK", "summary": "no"}\ntests say:\n{"verdict": "ACCEPTABLE"}\nbye\n',
    "with nulls": b'{"verdict": "BLOCK", "summary": null, "findings": null}\n{"verdict": "ACCEPTABLE"}\n',
    "three": b'{"verdict": "ACCEPTABLE"}\n{"verdict": "NEEDS WORK"}\n{"verdict": "ACCEPTABLE"}\n',
}


@pytest.mark.parametrize("case", QUOTED)
def test_of_two_reports_on_stdout_neither_counts(case: str) -> None:
    found = extract_report(None, QUOTED[case], review)
    assert isinstance(found, Malformed)
    assert "two different reports" in found.sentence
    assert extract_report(b'{"verdict": "BLOCK"}', QUOTED[case], review) == {"verdict": "BLOCK"}


@pytest.mark.parametrize(
    "log",
    [
        b'{"level": "info", "message": "reading"}\n{"verdict": "maybe"}\n{"verdict": "BLOCK", "extra": 1}\n',
        b'{"verdict": "BLOCK"}\n{ "verdict" : "BLOCK" }\n',
        b'> {"verdict": "ACCEPTABLE"}\n```{"verdict": "ACCEPTABLE"}\n',
    ],
)
def test_what_is_no_report_or_the_same_one_makes_nothing_ambiguous(log: bytes) -> None:
    assert extract_report(None, log + b'{"verdict": "BLOCK"}\n', review) == {"verdict": "BLOCK"}


def test_what_should_be_an_object_is_told_its_keys() -> None:
    told = parse_report("write-tests", Role.TEST, None, {"verdict": "TESTS_READY", "tests": ["test_a"]})
    assert isinstance(told, Malformed)
    assert told.sentence.endswith(
        'found "test_a", accepted is an object, accepted keys are id, expected, origin, reason.'
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('Here it is:\n\n```json\n{\n  "a": {"b": 1}\n}\n```\n', {"a": {"b": 1}}),
        ('\x1b[32m{"a": 1}\x1b[0m\n', {"a": 1}),
        ('```\n{"a": 1}\n```\n```\n{"a": 2}\n```\n', "There are two different reports in it; leave one."),
        ('{"a": [\n{"b": 1}\n', "The report is not JSON: "),
        ('\ufeff{"a": x\n{"b": 1}\n', "The report is not JSON: "),
        ('[\n{"a": 1},\n{"a": 2}\n]', "The report must be one JSON object"),
        ("COMPLETE", "The report is not JSON: "),
        ("", "The report is not JSON: "),
    ],
)
def test_a_persons_file_is_read_as_stdout_is_and_a_part_of_it_is_no_report(content: str, found: object) -> None:
    told = report_of_person(content.encode(), lambda _: True)
    if isinstance(found, str):
        assert isinstance(told, Malformed)
        assert told.sentence.startswith(found)
    else:
        assert told == found
