"""The contract of a role file is closed: whatever is not understood is refused with its line."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.judge.policy.roles import FAMILY, KINDS_OF, ContractError, Network, Writes, parse_role
from pipeline.judge.reports.kinds import KINDS
from pipeline.vocabulary import Role

GOOD = {
    "name": "make",
    "description": "Writes code.",
    "kinds": "[stub, seam, implement, build, change]",
    "writes": "task",
    "shell": "true",
    "network": "none",
    "timeout_s": "900",
}


def role_file(**changed: str | None) -> str:
    entries = {**GOOD, **changed}
    lines = [f"{key}: {value}" for key, value in entries.items() if value is not None]
    return "\n".join(["---", *lines, "---", "You are @make.", ""])


def problem(text: str, name: str = "make") -> ContractError:
    with pytest.raises(ContractError) as caught:
        parse_role(text, name)
    return caught.value


def test_a_sound_file_gives_its_contract_and_its_prompt() -> None:
    spec = parse_role(role_file(), "make")
    assert spec.model_dump() == {
        "name": Role.MAKE,
        "description": "Writes code.",
        "kinds": ("stub", "seam", "implement", "build", "change"),
        "writes": Writes.TASK,
        "test_regions": False,
        "shell": True,
        "network": Network.NONE,
        "timeout_s": 900,
        "prompt": "You are @make.",
    }


def test_the_table_of_kinds_is_the_one_that_reports_answer() -> None:
    answered = {role: {kind.name for kind in KINDS.values() if role in kind.roles} for role in Role}
    assert {role: set(kinds) for role, kinds in KINDS_OF.items()} == answered


def test_an_unknown_key_is_refused_with_its_line_and_the_accepted_ones() -> None:
    error = problem(role_file(writes=None, wries="task"))
    assert error.problems[0].line == 8
    assert "unknown key 'wries'" in str(error)
    assert "writes" in error.problems[0].accepted


def test_a_misspelt_word_is_refused_with_the_accepted_ones() -> None:
    error = problem(role_file(writes="taks"))
    assert [(p.line, p.accepted) for p in error.problems] == [(5, ("nothing", "tests", "task", "area"))]
    assert str(error).startswith("make.md:5: writes: unknown word 'taks'")


def test_every_wrong_value_is_told_at_once_in_order_of_the_lines() -> None:
    error = problem(role_file(network="opne", writes="taks", timeout_s="0"))
    assert [p.line for p in error.problems] == [5, 7, 8]


@pytest.mark.parametrize("key", list(GOOD))
def test_a_missing_key_is_named(key: str) -> None:
    assert f"the key {key!r} is missing" in str(problem(role_file(**{key: None})))


def test_a_key_given_twice_is_refused() -> None:
    twice = role_file().replace("shell: true", "shell: false\nshell: true")
    assert "make.md:7: the key 'shell' is given twice" in str(problem(twice))


BOMB = "&a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (BOMB, "anchors and aliases are not accepted"),
        ("*nobody", "anchors and aliases are not accepted"),
        ("!!python/name:os.system x", "tags are not accepted"),
        ("{a: b}", "a value is a word or a list of words"),
        ("[[x]]", "this nests deeper than 2 levels"),
        ("[" * 2000, "this nests deeper than 2 levels"),
        ("'open", "this is not YAML"),
        ("x\n? [a]\n: b", "a key is a word"),
        ("x\n<<: y", "unknown key '<<'"),
        ("''", "description"),
    ],
)
def test_front_matter_is_plain_words_only(value: str, message: str) -> None:
    assert message in str(problem(role_file(description=value)))


@pytest.mark.parametrize("word", ["yes", "no", "on", "1", "True", "FALSE", "~", ""])
def test_a_flag_is_true_or_false_and_nothing_else(word: str) -> None:
    assert "shell: " in str(problem(role_file(shell=word)))


def test_the_name_is_the_name_of_the_file() -> None:
    assert "names the role 'make'" in str(problem(role_file(), name="makes"))


def test_kinds_are_those_of_the_role() -> None:
    assert "the kinds of this role are" in str(problem(role_file(kinds="[implement]")))
    assert "the kinds of this role are" in str(problem(role_file(kinds="[stub, seam, implement, build, change, plan]")))
    assert "the kinds of this role are" in str(problem(role_file(kinds="[stub, seam, implement, build, change, stub]")))


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("writes", list(Writes))
def test_a_role_writes_its_family_or_nothing(role: Role, writes: Writes) -> None:
    entries = {"name": role, "kinds": f"[{', '.join(KINDS_OF[role])}]", "writes": writes, "shell": "false"}
    text = role_file(**entries)
    if writes in {Writes.NOTHING, FAMILY[role]}:
        assert parse_role(text, role).writes is writes
    else:
        assert "this role writes" in str(problem(text, role))


@pytest.mark.parametrize("role", [Role.CHECK, Role.SIMPLIFY, Role.ORCHESTRATOR])
def test_a_reader_has_no_shell(role: Role) -> None:
    text = role_file(name=role, kinds=f"[{', '.join(KINDS_OF[role])}]", writes="nothing")
    assert "a role that only reads has no shell" in str(problem(text, role))


def test_only_test_has_test_regions() -> None:
    assert "only the role test has test regions" in str(problem(role_file(test_regions="true")))
    text = role_file(name="test", kinds="[write-tests]", writes="tests", test_regions="true")
    assert parse_role(text, "test").test_regions


@pytest.mark.parametrize(
    "text", ["", "You are @make.", "---\nname: make\n", " ---\nname: make\n---\nx", "---\n- a\n---\nx", "---\n---\nx"]
)
def test_a_file_without_front_matter_is_refused(text: str) -> None:
    assert problem(text).problems


def test_an_empty_prompt_is_refused() -> None:
    assert "the prompt after the front matter is empty" in str(problem(role_file().replace("You are @make.", "")))


def test_a_second_document_is_refused() -> None:
    assert problem(role_file(description="x\n--- \nname: check")).problems


@given(st.text(alphabet=string.printable, max_size=200))
@example("a: &x !!int 1\n---")
def test_whatever_stands_in_front_matter_is_refused_in_words(head: str) -> None:
    error = problem(f"---\n{head}\n---\nprompt")
    assert error.problems
    assert all(1 <= fault.line <= len(head.splitlines()) + 3 for fault in error.problems)


@pytest.mark.parametrize("break_", ["\x0b", "\x0c", "\x1c", "\x1e"])
def test_what_only_python_takes_for_the_end_of_a_line_is_refused_in_front_matter(break_: str) -> None:
    assert problem(role_file().replace("\nwrites", f"{break_}writes")).problems


@given(st.text().filter(str.strip))
def test_the_prompt_is_kept_line_by_line(body: str) -> None:
    prompt = parse_role(role_file().replace("You are @make.", body), "make").prompt
    assert prompt == body.replace("\r\n", "\n").replace("\r", "\n").strip()
