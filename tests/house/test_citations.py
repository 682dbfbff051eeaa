"""What code cites is there: sections of the pages in `docs`, decisions of DESIGN.md, files.

A section is cited as `matrix 5`, `contract 1, 2`, `matrix 5 and 6`. After a comma a word with a capital, or one in
backticks, says what in that section is meant: `matrix 5, RED`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from house.documents import DESIGN, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE: Final = ("pipeline", "todo", "redfirst.py", "tests", "bench")
PAGES: Final = ("DESIGN.md", "AGENTS.md", "README.md", "CHANGELOG.md", "docs")

_NUMBERS: Final = r"\d+(?:(?:, | and | to )\d+)*"
SECTION: Final = re.compile(rf"\b(?P<page>contract|matrix) (?P<numbers>{_NUMBERS})(?:, (?P<what>[A-Z]\w+|`[^`]+`))?")
DECISION: Final = re.compile(r"(?<![|\w])ADR(?P<number>-R?\d+)?")
PAGE: Final = re.compile(r"\bdocs/[\w/.-]+\.md\b")


def files(*places: str) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        found = [path] if path.is_file() else sorted(path.rglob("*.py" if place in CODE else "*.md"))
        yield from (file for file in found if file.name != "test_citations.py")


def text_of(path: Path) -> str:
    """Return a file's text, with comments and sentences that go on in the next line as one."""
    return " ".join(line.strip().removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines())


@cache
def sections(page: str) -> dict[int, str]:
    """Return the texts below the numbered headings of a page of `docs`."""
    text = next((ROOT / "docs").rglob(f"{page}.md")).read_text(encoding="utf-8")
    parts = re.split(r"^## (\d+)\. ", text, flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def decisions() -> frozenset[str]:
    """Return what DESIGN.md has decided, as it is cited."""
    text = DESIGN.read_text(encoding="utf-8")
    first, last = re.findall(r"^ADR-(\d+) to ADR-(\d+)", text, re.MULTILINE)[0]
    ours = re.findall(r"^\* \*\*ADR(-R\d+) ", text, re.MULTILINE)
    return frozenset([*ours, *(f"-{number}" for number in range(int(first), int(last) + 1))])


def numbers_in(said: str) -> list[int]:
    """Return the numbers of `5`, `1, 2`, `5 and 9`, `1 to 4`."""
    first, *more = re.split(r"(, | and | to )", said)
    found = [int(first)]
    for joint, number in zip(more[::2], more[1::2], strict=True):
        found += range(found[-1] + 1, int(number) + 1) if joint == " to " else [int(number)]
    return found


def unresolved(text: str) -> Iterator[str]:
    """Yield the citations that lead nowhere."""
    for found in SECTION.finditer(text):
        wanted = [sections(found["page"]).get(number) for number in numbers_in(found["numbers"])]
        what = (found["what"] or "").strip("`").casefold()
        if None in wanted or not any(what in (one or "").casefold() for one in wanted):
            yield found[0]
    yield from (found[0] for found in DECISION.finditer(text) if found["number"] not in decisions())


def test_every_citation_leads_somewhere() -> None:
    found = {path.relative_to(ROOT).as_posix(): list(unresolved(text_of(path))) for path in files(*CODE, *PAGES)}
    assert len(found) > 100
    assert not {path: cited for path, cited in found.items() if cited}


def test_every_page_that_the_program_names_is_there() -> None:
    named = {name: path for path in files(*CODE[:3], *PAGES) for name in PAGE.findall(text_of(path))}
    assert {name: path for name, path in named.items() if not (ROOT / name).exists()} == {}


def test_citations_are_read_as_they_are_written() -> None:
    wrong = ["matrix 77", "contract 1, 99", "matrix 5, Cellar", "ADR-R999", "ADR"]
    assert list(unresolved("; ".join([*wrong, "matrix 1 and 2", "matrix 1 to 4", "matrix 5, RED", "ADR-7"]))) == wrong
