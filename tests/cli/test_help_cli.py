"""The help of every command: it fits a terminal, `-h` asks for it, and its examples can be copied."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from typing import TYPE_CHECKING

import pytest
from house.documents import command_of, every_command, whole_program
from house.reading import kinds, sentences
from typer.core import TyperGroup

from pipeline.faces.cli.commands import PANELS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

WIDEST = 80
TYPE = re.compile(r"<[^|>]*>| [a-z]+ <.*>")
"""A type of Python, or the name of a parameter, where a word in capitals says what is meant."""


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDEST))


@cache
def help_of(*words: str) -> str:
    with redirect_stdout(io.StringIO()) as said:
        whole_program().main([*words], prog_name="redfirst", standalone_mode=False)
    return said.getvalue()


def examples_in(text: str) -> list[str]:
    """Return the lines of the block at the end."""
    _, _, block = text.partition("  Examples:\n")
    return [line.strip() for line in block.splitlines()]


def test_every_help_fits_a_terminal_and_is_asked_for_by_two_options() -> None:
    groups = {names[:at] for names, _ in every_command() for at in range(len(names))}
    for names in sorted({names for names, _ in every_command()} | groups):
        text = help_of(*names, "-h")
        assert text == help_of(*names, "--help")
        assert [line for line in text.splitlines() if len(line) > WIDEST] == [], names
        assert TYPE.findall(text) == [], names
        usage = text.partition("\n\n")[0]
        assert usage.replace("[OPTIONS]", "").replace("COMMAND [ARGS]...", "").count("{") == 0, usage


LAST = ["--plain", "--json"]
"""Options for programs stand behind those for people."""


def test_every_help_begins_with_one_plain_sentence() -> None:
    groups = {names[:at]: command_of([*names[:at]])[0] for names, _ in every_command() for at in range(len(names))}
    for names, command in [*groups.items(), *every_command()]:
        first, *more = (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
        assert sentences(first) == [first], names
        assert first.endswith("."), names
        assert ";" not in first, names
        told = [sentence for part in (first, *more) for sentence in sentences(part)]
        assert [kind for sentence in told for kind in kinds(sentence)] == [], (names, told)


def test_options_for_programs_stand_last() -> None:
    for names, command in every_command():
        shown = [param.opts[0] for param in command.params if not getattr(param, "hidden", False)]
        options = [option for option in shown if option.startswith("--")]
        assert [option for option in options if option in LAST] == [
            option for option in options[-len(LAST) :] if option in LAST
        ], names


def test_every_command_has_two_examples_that_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for names, _ in every_command():
        examples = examples_in(help_of(*names, "-h"))
        ours = [
            words[1:]
            for line in examples
            for words in (shlex.split(part) for part in line.split(" | "))
            if words[0] == "redfirst"
        ]
        assert len(examples) >= 2, names
        assert any(tuple(words[: len(names)]) == names for words in ours), names
        for words in ours:
            command, rest = command_of(words)
            assert not isinstance(command, TyperGroup), words
            assert command.make_context(" ".join(words), list(rest)), words


def test_no_list_of_commands_cuts_a_sentence() -> None:
    groups = {names[:at] for names, _ in every_command() for at in range(len(names))}
    for names in sorted(groups):
        text = help_of(*names, "-h")
        _, _, commands = text.partition("\nCommands:\n" if names else "\nFirst steps:\n")
        rows = [line for line in commands.splitlines() if line[2:3].strip()]
        assert rows, names
        sentences = " ".join(commands.split())
        assert "..." not in sentences.replace(sentences.partition("Examples:")[2], ""), names


def test_the_help_of_the_program_has_five_panels_with_each_command_once() -> None:
    text = help_of("--help")
    assert len(PANELS) == 5
    assert [line.rstrip(":") for line in text.splitlines() if line.endswith(":") and line[0] != " "] == [
        "Options",
        *PANELS,
    ]
    shown = [name for names in PANELS.values() for name in names]
    assert sorted(shown) == sorted(name for name, command in whole_program().commands.items() if not command.hidden)
    assert [name for name in shown if f"\n  {name} " not in text] == []
