"""Commands that an agent's tool may run: their beginnings, and which words may follow each.

What languages bring stands in their folders. An option that is not here is refused, so that a new version of a program
widens nothing: none here loads code, takes another configuration, writes, starts programs, or leaves tests out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_OPERANDS: Final = ""
PATHS: Final = ".*"

_KINDS: Final[Mapping[str, str]] = {
    "NUMBER": r"\d{1,6}",
    "NAME": r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    "EXPRESSION": r"[A-Za-z0-9_(\[][\w ()\[\].,:=<>+/'\"-]*",
    "TEXT": r"[^-@].*",
}
_NOT_JOINED: Final = frozenset({"NAME", "EXPRESSION", "TEXT"})


@dataclass(frozen=True)
class Value:
    """The allowed values of an option: a pattern for a whole value, and whether a short option may join it (`-n5`)."""

    pattern: str
    is_joinable: bool


@dataclass(frozen=True)
class ListedCommand:
    """An allowed command: a program or subcommand, and the words that may follow it.

    Args:
        beginning: The words that it begins with.
        options: The options, spelled in full. Behind one that takes a value stands its kind, or a pattern.
        operands: A pattern for each word that is no option; it must also be a path inside the workspace.
        rest: Judges what stands after `--`; None where `--` only ends the options.
        required: Options of which one must be there.
        is_search: Whether the first operand is a pattern, unless an option gives it.
        has_single_dash_values: Whether `-name=value` is a form (Go).
        is_wrapper: Whether another listed command follows.
    """

    beginning: str
    options: str = ""
    operands: str = PATHS
    rest: ListedCommand | None = None
    required: str = ""
    is_search: bool = False
    has_single_dash_values: bool = False
    is_wrapper: bool = False

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words that the command begins with."""
        return tuple(self.beginning.split())

    @cached_property
    def values(self) -> Mapping[str, Value | None]:
        """Return the allowed values by option, None for an option without a value."""
        values: dict[str, Value | None] = {}
        option = ""
        for word in self.options.split():
            if word.startswith("-"):
                option = word
                values[option] = None
            else:
                values[option] = Value(_KINDS.get(word, word), word not in _NOT_JOINED)
        return values


ANY_NUMBER: Final = "-20"
"""The placeholder among options for the old form `-NUMBER`."""

_COLOR: Final = "--color=auto --color=always --color=never"
_CONTEXT: Final = (
    "-A NUMBER -B NUMBER -C NUMBER -m NUMBER "
    "--after-context NUMBER --before-context NUMBER --context NUMBER --max-count NUMBER"
)
_COUNT: Final = r"\+?\d{1,9}"
_ENDS: Final = f"-q --quiet -v --verbose {ANY_NUMBER} -n {_COUNT} --lines {_COUNT} -c {_COUNT} --bytes {_COUNT}"

READING_COMMANDS: Final = (
    ListedCommand(
        "rg",
        "-n --line-number -N --no-line-number -i --ignore-case -s --case-sensitive -S --smart-case -w --word-regexp -x"
        " --line-regexp -F --fixed-strings -P -v --invert-match -l --files-with-matches --files-without-match -c"
        " --count -o --only-matching -U --multiline --multiline-dotall -H -I --no-filename --files --hidden --no-ignore"
        " --heading --no-heading --column --vimgrep --trim --stats -q --quiet --json --no-config -a --text"
        f" --count-matches -e TEXT --regexp TEXT {_CONTEXT} -d NUMBER --max-depth NUMBER -g TEXT --glob TEXT"
        " --iglob TEXT -t [a-z0-9]+ --type [a-z0-9]+ -T [a-z0-9]+ --type-not [a-z0-9]+"
        " --color auto|always|never|yes|no --sort path|modified|none",
        is_search=True,
    ),
    ListedCommand(
        "grep",
        "-n --line-number -i --ignore-case -v --invert-match -w --word-regexp -x -c --count -l --files-with-matches"
        " -L --files-without-match -o -q --quiet -E --extended-regexp -F --fixed-strings -G -P --perl-regexp -r"
        " --recursive -h --no-filename -H --with-filename -s --no-messages -a --text -I -b --only-matching"
        f" --line-regexp {ANY_NUMBER} -e TEXT --regexp TEXT {_CONTEXT} --include TEXT --exclude TEXT --exclude-dir TEXT"
        f" --color --colour {_COLOR}",
        is_search=True,
    ),
    ListedCommand(
        "find",
        "-print -empty -not -o -or -a -and -prune -name TEXT -iname TEXT -path TEXT -ipath TEXT -type [fdl]"
        " -maxdepth NUMBER -mindepth NUMBER",
    ),
    ListedCommand("head", _ENDS),
    ListedCommand("tail", _ENDS),
    ListedCommand("cat", "-n --number -b -s -A -E -T -v"),
    ListedCommand(
        "ls",
        "-l -a -A -1 -R -h -t -r -S -d -F -p -i -s --all --almost-all --recursive --human-readable --reverse"
        f" --color {_COLOR}",
    ),
    ListedCommand("wc", "-l --lines -w --words -c --bytes -m --chars -L"),
    ListedCommand(
        "diff",
        "-u -r --recursive -N --new-file -q --brief -w -b -B -i -a -s -U NUMBER -C NUMBER --unified --context"
        f" --color {_COLOR}",
    ),
    ListedCommand("nix develop -c", is_wrapper=True),
    ListedCommand("nix develop --command", is_wrapper=True),
)
"""Commands that every project may use: programs that only read, and a shell that starts one of the others."""

HINTS: Final[Mapping[str, str]] = {
    program: hint
    for programs, hint in {
        "git": "what you change is seen by the program itself, and nothing is committed here; read the files instead",
        "sh bash dash zsh env xargs eval exec command sudo time timeout nohup": (
            "there is no shell and nothing that starts other programs. Give the program itself"
        ),
        "python python3 node perl ruby": "write a test and run it with the tool `run_tests`",
        "sed awk tee touch cp mv rm mkdir ln chmod dd truncate install patch": (
            "read and change files with the tools `read`, `write` and `delete`"
        ),
        "pip pip3 uv npm npx pnpm yarn poetry curl wget ssh": (
            "there is no network: nothing is installed or fetched. Ask for what is missing in your report"
        ),
        "cd pushd pwd": "every command runs at the top of the workspace; name paths from there",
        "make just tox nox": "run the tests with the tool `run_tests`",
    }.items()
    for program in programs.split()
}
"""What to do instead of a refused command, by its program."""
