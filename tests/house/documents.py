"""What the documentation says, in pieces that tests can hold against the program."""

from __future__ import annotations

import itertools
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from markdown_it import MarkdownIt
from typer.core import TyperCommand, TyperGroup

from pipeline.faces.cli.commands import LazyCommand
from pipeline.faces.cli.main import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
PAGES: Final = ROOT / "docs" / "reference" / "agents"
DESIGN: Final = ROOT / "DESIGN.md"
CONTRACT: Final = ROOT / "docs" / "reference" / "contract.md"
DOCUMENTS: Final = (README, *sorted((ROOT / "docs").rglob("*.md")))

_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
_PROGRAM: Final = "redfirst "


@dataclass(frozen=True)
class Row:
    """One agent in the table of docs/reference/agents."""

    page: str
    backend: str
    profile: str | None
    version: str

    @property
    def product(self) -> tuple[str, str | None]:
        """Return what the configuration calls it."""
        return self.backend, self.profile


@cache
def tokens(document: Path) -> tuple[Token, ...]:
    """Return every token, those within a line of text included."""
    parsed = _MARKDOWN.parse(document.read_text(encoding="utf-8"))
    return tuple(one for token in parsed for one in (token, *(token.children or ())))


def tomls(document: Path) -> list[str]:
    """Return the blocks of configuration."""
    return [token.content for token in tokens(document) if token.type == "fence" and token.info == "toml"]


def commands(document: Path) -> list[str]:
    """Return every command of ours that is shown in a block or named in a sentence."""
    found: list[str] = []
    for token in tokens(document):
        if token.type == "fence" and not token.info:
            found += [line.removeprefix("$ ") for line in token.content.splitlines()]
        elif token.type == "fence" and token.info == "console":  # below what is typed stands what is printed
            typed = [line[2:] for line in token.content.splitlines() if line.startswith("$ ")]
            found += [line.partition(" <<")[0] for line in typed]
        elif token.type == "code_inline":
            found.append(" ".join(token.content.split()))
    return [line for line in found if line.startswith(_PROGRAM)]


def commands_in(group: TyperGroup, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    """Yield every command that is no group, with its words."""
    for name, found in group.commands.items():
        command = found.load() if isinstance(found, LazyCommand) else cast("TyperCommand | TyperGroup", found)
        if isinstance(command, TyperGroup):
            yield from commands_in(command, (*above, name))
        else:
            yield (*above, name), command


def every_command() -> list[tuple[tuple[str, ...], TyperCommand]]:
    """Return every command of the program that is no group, with its words."""
    return list(commands_in(whole_program()))


@cache
def whole_program() -> TyperGroup:
    """Return the command line, made once."""
    return program()


def command_of(words: list[str]) -> tuple[TyperCommand | TyperGroup, list[str]]:
    """Return the command that is meant, and the words that follow its name."""
    command: TyperCommand | TyperGroup = whole_program()
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command {words[0]}"
        found, words = command.commands[words[0]], words[1:]
        command = found.load() if isinstance(found, LazyCommand) else cast("TyperCommand | TyperGroup", found)
    return command, words


def words(document: Path) -> dict[str, set[str]]:
    """Return the lists of words that a page marks as such, by their names."""
    fences = [token for token in tokens(document) if token.type == "fence" and token.info.startswith("words ")]
    return {token.info.removeprefix("words "): set(token.content.split()) for token in fences}


def table(document: Path, *titles: str) -> list[list[str]]:
    """Return the rows of the table with these titles, a text for each cell."""
    found: list[list[str]] = []
    lines = iter(document.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if _cells(line) == list(titles):
            next(lines)
            found += [_cells(row) for row in itertools.takewhile(lambda row: row.startswith("|"), lines)]
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def links(document: Path) -> list[str]:
    """Return the links to other files of the repository."""
    targets = [str(token.attrs["href"]) for token in tokens(document) if token.type == "link_open"]
    return [target for target in targets if "://" not in target]


def headings(document: Path) -> set[str]:
    """Return the anchors of a document."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def rows() -> list[Row]:
    """Return the table of agents."""
    found: list[Row] = []
    for line in (PAGES / "README.md").read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| \[[^]]+\]\(([\w.#-]+)\) \| (.+?) \| (.*?) ?\|", line)
        if row is not None:
            said = tomllib.loads(re.sub(r"`, `|`", "\n", row[2]))
            found.append(Row(row[1], said["backend"], said.get("profile"), row[3]))
    return found


def agents_in(toml: str) -> Iterator[dict[str, Any]]:
    """Yield the tables of agents in a block."""
    table: dict[str, Any] = tomllib.loads(toml).get("agents", {})
    yield table
    yield from (value for value in table.values() if isinstance(value, dict))
