"""The command gate as a table: what is refused and by which rule, what is allowed and as which argv."""

from __future__ import annotations

import pytest
from policy.command_cases import ALLOWED, CORPUS, NEVER_LISTED, NOT_LITERAL, REFUSED, UNKNOWN

from pipeline.judge.policy.commands import (
    CommandRule,
    CommandRuling,
    judge_argv,
    judge_command,
    judge_selectors,
    refusal_of,
)
from pipeline.judge.policy.listed_commands import HINTS, READING_COMMANDS, ListedCommand
from pipeline.testing.languages.table import listed_commands

BROUGHT = listed_commands()

RUNS_COMMANDS = True


def ruling_on(text: str) -> CommandRuling:
    return judge_command(text, BROUGHT, shell=RUNS_COMMANDS)


@pytest.mark.parametrize(("name", "text", "rule"), CORPUS)
def test_a_case_of_the_corpus_is_refused_by_its_rule(name: str, text: str, rule: str) -> None:
    ruling = ruling_on(text)
    assert (ruling.allowed, ruling.rule, ruling.argv) == (False, rule, ()), ruling.why


@pytest.mark.parametrize(("text", "rule"), [*NOT_LITERAL, *REFUSED])
def test_what_is_not_listed_is_refused_by_its_rule(text: str, rule: str) -> None:
    ruling = ruling_on(text)
    assert (ruling.allowed, ruling.rule, ruling.argv) == (False, rule, ()), ruling.why
    assert ruling.why


@pytest.mark.parametrize("command", NEVER_LISTED)
def test_an_option_that_does_harm_is_listed_in_no_form(command: str) -> None:
    for option in NEVER_LISTED[command].split():
        for form in (option, f"{option} x", f"{option}=x", option[:-1] if option[1] == "-" else f"{option}x"):
            ruling = ruling_on(f"{command} {form}")
            assert (ruling.allowed, ruling.rule, ruling.argv) == (False, UNKNOWN, ()), f"{form}: {ruling.why}"


@pytest.mark.parametrize(("text", "argv"), ALLOWED)
def test_a_listed_command_is_allowed_as_a_literal_argv(text: str, argv: tuple[str, ...]) -> None:
    ruling = ruling_on(text)
    assert (ruling.allowed, ruling.rule, ruling.argv) == (True, CommandRule.ALLOWED, argv), ruling.why
    assert judge_argv(argv, BROUGHT, shell=RUNS_COMMANDS).allowed


@pytest.mark.parametrize("text", ["pytest -q", "ls", "", "rm -rf x", "$("])  # SH-60, SH-61
def test_a_role_without_a_shell_runs_nothing(text: str) -> None:
    assert judge_command(text, BROUGHT, shell=False).rule == "shell"
    assert judge_argv([text], BROUGHT, shell=False).rule == "shell"
    assert judge_selectors([], shell=False).rule == "shell"


@pytest.mark.parametrize("program", sorted(HINTS))
def test_a_program_that_models_reach_for_is_refused_with_what_to_do_instead(program: str) -> None:
    ruling = ruling_on(f"{program} x")
    assert not ruling.allowed
    assert HINTS[program] in ruling.why


def test_a_refused_test_option_names_the_tool_to_use() -> None:
    assert "`run_tests`" in ruling_on("pytest -p evil").why
    assert "`write`" in ruling_on("sed -i s/a/b/ src/app.py").why


def test_wrappers_in_any_number_have_an_answer() -> None:
    assert judge_argv(["uv", "run"] * 900 + ["ls"], BROUGHT, shell=RUNS_COMMANDS).allowed
    assert judge_argv(["uv", "run"] * 9000 + ["ls"], BROUGHT, shell=RUNS_COMMANDS).rule == "too-long"


@pytest.mark.parametrize("word", ["-p", "--", "-", "@file"])
def test_what_looks_like_an_option_is_never_taken_for_a_value(word: str) -> None:
    anything = ListedCommand("anything", "-k .* --key .*", r"[\w:]+")
    assert refusal_of(anything, ["-k", "a"]) is None
    for words in (["-k", word], ["--key", word], [f"--key={word}"], [f"-k{word}"]):
        assert refusal_of(anything, words) is not None


@pytest.mark.parametrize("prefix", [command.words for command in (*BROUGHT, *READING_COMMANDS)])
def test_what_every_tool_refuses(prefix: tuple[str, ...]) -> None:
    for words in ([".."], ["/etc/passwd"], ["--x", "y"], ["@file"], ["-\u00e9"], ["a\nb"]):
        required = ["--check"] if prefix[-1] in {"fmt", "format"} else []
        text_first = ["needle"] if prefix[0] in {"rg", "grep"} else []
        assert not judge_argv([*prefix, *required, *text_first, *words], BROUGHT, shell=RUNS_COMMANDS).allowed, words


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ("tests/test_a.py", True),
        ("tests/test_a.py::Test::test_b[x/y z-1]", True),
        ("tests/test_a.py::test_b[größe]", True),
        ("rust::greet::lib::tests::x", True),
        ("svc/.::TestX/sub", True),
        ("web/a.test.ts::sums > two", True),
        ("", False),
        ("-p", False),
        ("--co", False),
        ("@file", False),
        ("/tests/test_a.py", False),
        ("../test_a.py", False),
        ("tests/..::x", False),
        ("tests/test_a.py::test_b[../x]", False),
        ("tests/test_a.py\n-p evil", False),
        ("tests/\udcff.py", False),
        ("~/x", False),
    ],
)
def test_a_test_is_selected_by_its_id_only(selector: str, allowed: bool) -> None:
    ruling = judge_selectors(["tests", selector], shell=RUNS_COMMANDS)
    assert ruling.allowed is allowed, ruling.why
    assert ruling.argv == (("tests", selector) if allowed else ())
    assert ruling.rule == (CommandRule.ALLOWED if allowed else CommandRule.SELECTOR)
