"""What code cites is there: sections of the pages in `docs`, decisions of DESIGN.md, files.

A section is cited as `matrix 5`, `contract 1, 2`, `matrix 5 and 6`. After a comma a word with a capital, or one
in backticks, says what in that section is meant: `matrix 5, RED`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest
from house.documents import DESIGN, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES: Final = ("contract", "matrix")
PROGRAM: Final = ("pipeline", "todo", "redfirst.py")
CODE: Final = (*PROGRAM, "tests", "bench")
TEXTS: Final = ("DESIGN.md", "AGENTS.md", "README.md", "CHANGELOG.md", "docs")

_NUMBERS: Final = r"\d+(?:(?:, | and | to )\d+)*"
SECTION: Final = re.compile(rf"\b(?P<page>{'|'.join(PAGES)}) (?P<numbers>{_NUMBERS})(?:, (?P<what>[A-Z]\w+|`[^`]+`))?")
DECISION: Final = re.compile(r"(?<![|\w])ADR(?P<number>-R?\d+)?")
PAGE: Final = re.compile(r"\b(?:docs/[\w/.-]+|[A-Z]{4,}|contract|matrix|testing)\.md\b")
STRANGE: Final = re.compile(
    r"\b(?:contracts|style|seed|sandbox|boxed|house|operation|workflows) \d+\b|\b(?:sandbox|boxed)\.md\b|\bthe seed\b"
)
WRITTEN_BY_OTHERS: Final = frozenset({"PROMPT.md", "AGENTS.md", "GEMINI.md", "CLAUDE.md", "README.md", "SKILL.md"})
"""Files of the user's repository, and of a desk."""


def files(*places: str) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        found = [path] if path.is_file() else sorted(path.rglob("*.py" if place in CODE else "*.md"))
        yield from (file for file in found if file.name != "test_citations.py")


@cache
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
    """Yield the citations of sections and decisions that lead nowhere."""
    for found in SECTION.finditer(text):
        there = sections(found["page"])
        wanted = [there.get(number) for number in numbers_in(found["numbers"])]
        what = (found["what"] or "").strip("`")
        if None in wanted or not any(what.casefold() in (one or "").casefold() for one in wanted):
            yield found[0]
    yield from (found[0] for found in DECISION.finditer(text) if found["number"] not in decisions())


@pytest.mark.parametrize("place", CODE)
def test_every_citation_in_code_leads_somewhere(place: str) -> None:
    found = {path.relative_to(ROOT).as_posix(): list(unresolved(text_of(path))) for path in files(place)}
    assert not {path: cited for path, cited in found.items() if cited}


@pytest.mark.parametrize("place", PROGRAM)
def test_every_page_that_code_names_is_there(place: str) -> None:
    known = {path.name for path in files(*TEXTS)} | WRITTEN_BY_OTHERS
    for path in files(place):
        named = set(PAGE.findall(text_of(path)))
        lost = {name for name in named if not (ROOT / name).exists() and name.rpartition("/")[2] not in known}
        assert not lost, path


@pytest.mark.parametrize("place", PROGRAM)
def test_nothing_is_cited_that_does_not_ship(place: str) -> None:
    for path in files(place):
        assert not STRANGE.findall(text_of(path)), path


@pytest.mark.parametrize("path", list(files(*TEXTS)), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_decision_that_a_page_names_is_there(path: Path) -> None:
    text = text_of(path)
    short = {f"-{number}" for number in re.findall(r"[(\s](R\d+)[,)\s]", text)}
    named = {found["number"] for found in DECISION.finditer(text) if found["number"]} | short
    assert named <= decisions()


def test_citations_are_read_as_they_are_written() -> None:
    assert numbers_in("1, 4, 5 and 6") == [1, 4, 5, 6]
    assert numbers_in("1 to 4") == [1, 2, 3, 4]
    wrong = ["matrix 7", "contract 1, 9", "matrix 5, Cellar", "ADR-R999", "ADR"]
    assert list(unresolved("; ".join([*wrong, "matrix 1 and 2", "matrix 5, RED", "ADR-7"]))) == wrong


def test_a_package_names_only_modules_that_are_there_and_says_in_ten_lines_what_it_is() -> None:
    packages = [path for path in files("pipeline", "todo") if path.name == "__init__.py"]
    assert len(packages) > 20
    for path in packages:
        text = path.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0]
        assert len(text.splitlines()) <= 10, f"{path}: {len(text.splitlines())} lines"
        for name in re.findall(r"`([a-z_/]+\.py)`", text):
            assert any((place / name).is_file() for place in (path.parent, ROOT)), f"{path}: {name} is not there"
