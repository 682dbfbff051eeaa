"""The command gate against texts nobody thought of, and against bash itself."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.command_cases import ALLOWED, CORPUS, NOT_LITERAL, REFUSED

from pipeline.judge.policy.commands import (
    MOST_CHARACTERS,
    CommandRuling,
    judge_argv,
    judge_command,
    judge_selectors,
    literal_words,
)
from pipeline.judge.policy.listed_commands import READING_COMMANDS
from pipeline.testing.languages.table import listed_commands

pytestmark = pytest.mark.slow

BASH = shutil.which("bash")
RUNS_COMMANDS = True
BROUGHT = listed_commands()

PIECES = st.sampled_from([
    "pytest", "cargo", "test", "uv", "run", "nix", "develop", "-c", "rg", "ls", "-q", "-k", "--", "--tb=short", "a",
    "..", "/", "tests/test_a.py::b", "'", '"', "''", "$(id)", "`id`", "${x}", "$x", "\\", "\n", "&&", ">", "2>&1",
    "<<<", "#", "!", "~", "*", "{a,b}", "@f", "==", "=", "x=1", "1", "\u00a0",
    "\u200b", "\u00e9", "[", "]]", "[[", "if", "(", ")",
])  # fmt: skip
SIGNS = " \t'\"\\`$&|;<>(){}[]*?~!#^=%@+,:./-"
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet=SIGNS + "\nabl1"),
    st.lists(PIECES, max_size=12).map(" ".join),
    st.lists(PIECES, max_size=12).map("".join),
)
WORDS = st.one_of(
    st.text(alphabet=SIGNS.replace("\t", "") + "abc", max_size=12),
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8),
    st.sampled_from(["", "==", "=", "-q", "--", "a b", "tests", "'", '"', "$x", "a'b", "{a,b}", "~", "!", "#"]),
)
COMMANDS = st.one_of(
    st.lists(WORDS, max_size=4).map(lambda words: ["rg", "-e", "x", *(f"./{word}" for word in words)]),
    st.lists(WORDS, max_size=4).map(lambda words: ["pytest", *(f"tests/test_a.py::{word}" for word in words)]),
    st.sampled_from([command.words for command in (*BROUGHT, *READING_COMMANDS)]).flatmap(
        lambda prefix: st.lists(WORDS, max_size=4).map(lambda words: [*prefix, *words])
    ),
)


@given(TEXTS)
def test_every_text_has_a_ruling(text: str) -> None:
    ruling = judge_command(text, BROUGHT, shell=RUNS_COMMANDS)
    assert ruling.rule
    assert ruling.why.isprintable()
    assert bool(ruling.argv) is ruling.allowed


@given(st.lists(st.text(), max_size=6))
def test_every_argv_and_every_selection_has_a_ruling(words: list[str]) -> None:
    assert judge_argv(words, BROUGHT, shell=RUNS_COMMANDS).why.isprintable()
    assert judge_selectors(words, shell=RUNS_COMMANDS).why.isprintable()


@given(COMMANDS)
def test_an_allowed_argv_quoted_by_the_book_is_read_back_as_itself(argv: list[str]) -> None:
    ruling = judge_argv(argv, BROUGHT, shell=RUNS_COMMANDS)
    again = judge_command(shlex.join(argv), BROUGHT, shell=RUNS_COMMANDS)
    assert (again.allowed, again.argv) == (ruling.allowed, ruling.argv), again.why


@given(TEXTS)
def test_an_allowed_text_means_what_python_reads_in_it(text: str) -> None:
    ruling = judge_command(text, BROUGHT, shell=RUNS_COMMANDS)
    if ruling.allowed:
        assert ruling.argv == tuple(shlex.split(text))


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(COMMANDS.map(shlex.join), TEXTS), min_size=1, max_size=40))
def test_bash_reads_the_same_words_in_a_literal_text(texts: list[str]) -> None:
    read = {text: words for text in texts if (words := literal_words(text)) and not isinstance(words, CommandRuling)}
    assert all(shown == words for shown, words in zip(read_by_bash(list(read)), read.values(), strict=True))


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_reads_the_same_words_in_every_known_case() -> None:
    texts = [text for _, text, _ in CORPUS] + [text for text, _ in (*NOT_LITERAL, *REFUSED, *ALLOWED)]
    read = {text: words for text in texts if (words := literal_words(text)) and not isinstance(words, CommandRuling)}
    assert len(read) > len(ALLOWED)
    assert read_by_bash(list(read)) == list(read.values())


def read_by_bash(texts: list[str]) -> list[tuple[str, ...]]:
    """Return the words that bash takes each text for; restricted and without PATH, it can neither start nor write."""
    script = "".join(f"printf '%s\\0' {text}\nprintf '\\1'\n" for text in texts)
    done = subprocess.run(
        [str(BASH), "--norc", "--noprofile", "-r", "-c", script],
        env={"PATH": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return [tuple(part.split("\0")[:-1]) for part in done.stdout.decode().split("\1")[:-1]]


@pytest.mark.parametrize("text", ["a|" * 4000, "((a" * 2600, "a=(b " * 1600, "$(" * 4000, "'" * 7999, "== " * 2600])
def test_a_text_made_to_be_slow_is_answered(text: str) -> None:
    assert len(text) <= MOST_CHARACTERS
    assert not judge_command(text, BROUGHT, shell=RUNS_COMMANDS).allowed
