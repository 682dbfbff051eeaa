"""The whole command line: what is loaded for a question, and that a command is what its line in the help says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.faces.cli.commands import LAZY_COMMANDS

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pipeline.faces.cli.commands import LazyCommand

REDFIRST = Path(sys.executable).with_name("redfirst")
HEAVY = {"anyio", "git", "pydantic", "ruamel", "yaml", "rich", "pipeline.repo", "pipeline.steps", "todo"}


def redfirst(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(REDFIRST), *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("lazy", LAZY_COMMANDS, ids=lambda lazy: str(lazy.name))
def test_a_line_of_the_help_is_the_first_sentence_of_the_command(lazy: LazyCommand) -> None:
    command = lazy.load()
    assert command.name == lazy.name
    sentence = (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
    assert sentence.startswith((lazy.help or "?").removesuffix("."))


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], ["run", "--help"], ["runs", "--help"], ["doctor", "--help"]]
)
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import atexit, sys, redfirst\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "redfirst.main()"
    )
    env = {**os.environ, "PATH": os.defpath}  # git is asked of a folder on PATH below this one
    done = subprocess.run([sys.executable, "-c", code, *argv], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip()
    loaded = set(done.stderr.split())
    assert "redfirst" in loaded
    assert not loaded & (HEAVY if argv[0].startswith("-") else HEAVY - {"pydantic"})  # typer itself parses with it


@pytest.mark.broad
def test_a_command_that_is_loaded_later_is_suggested_for_a_typo() -> None:
    done = redfirst("explian")
    assert done.returncode == 2
    assert "Did you mean 'explain'?" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("issue", "shwo"), "No such command 'shwo'. Did you mean 'show'?"),
        (("runs", "--jsn"), "No such option: --jsn. Did you mean --json?"),
        (("agents", "explain", "maek", "x"), "Did you mean 'make'?"),
        (("agents", "try", "make", "--kind", "implemnt", "--issue", "A-1"), "Did you mean implement?"),
        (("config", "show", "--agent", "mkae=human"), '"mkae" is no role. Did you mean "make"?'),
    ],
)
@pytest.mark.broad
def test_a_word_that_is_nearly_one_of_ours_is_answered_with_it(words: tuple[str, ...], said: str) -> None:
    done = redfirst(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_group_without_a_command_shows_its_help_and_nothing_else() -> None:
    done = redfirst("issue")
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: redfirst issue")
    assert "- redfirst issue --help" not in done.stderr


@pytest.mark.broad
def test_the_shell_completes_commands_that_are_loaded_later() -> None:
    env = {"PATH": os.environ["PATH"], "_REDFIRST_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    words = {**env, "COMP_WORDS": "redfirst agents tr"}
    done = subprocess.run([str(REDFIRST)], env=words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["try"]
