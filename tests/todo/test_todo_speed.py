from __future__ import annotations

import importlib
import pkgutil
import re
import time
from pathlib import Path
from typing import Final

import pytest

import todo
from todo import FolderSource, MappingSource, Rule, Tracker, lint
from todo.outline import outline

pytestmark = pytest.mark.slow


def folder_of(tmp_path: Path, count: int, labels: str) -> Path:
    for number in range(1, count + 1):
        (tmp_path / f"GAL-{number}.md").write_text(
            f"---\nid: GAL-{number}\ntitle: Issue number {number}\nstatus: {'Done' if number % 2 else 'Todo'}  # now\n"
            f"parent: null\nlabels: {labels}\ndepends-on: [GAL-{max(1, number - 1)}]\n---\n" + "text \n" * 200
        )
    return tmp_path


def seconds_until_ready(folder: Path) -> float:
    """Return the processor time of the quickest of three: what else the process does meanwhile is not asked for."""
    taken: list[float] = []
    for _ in range(3):
        begin = time.process_time()
        ready = Tracker(FolderSource(folder)).ready()
        taken.append(time.process_time() - begin)
        assert len(ready) == 500
    return min(taken)


def test_the_ready_queue_of_a_thousand_issues_takes_below_a_second(tmp_path: Path) -> None:
    assert seconds_until_ready(folder_of(tmp_path, 1000, "[bug]")) < 1.0


# --- texts that strangers made to take long ---------------------------------------------------------------------------

LONG: Final = 100_000
LONGEST_S: Final = 0.5
"""Of what is linear; what is not takes seconds for so long a text."""

# by module and pattern: how the code asks it, and texts of which every repeated part is tried
PATTERNS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "frontmatter._END": ("finditer", ("k: v\r\nx\n\r",)),
    "frontmatter._FRONT": ("match", ("---\nk: v\n--- \n", "--- \r\n\n---\n")),
    "frontmatter._SAFE": ("fullmatch", ("a b (c).", "ab")),
    "index._BOX": ("search", ("- [ ] [x](y)",)),
    "index._LINK": ("search", ('[a](<./b.md#c> "d")', "[a](b.md)", "](a.md.md#x ")),
    "index._LIST_LINE": ("match", (" - x", "12. x", "| x", " [")),
    "issue._COMMENT": ("finditer", ("<!-- x -->", "<!--")),
    "issue._ID": ("fullmatch", ("GAL-1.2",)),
    "issue._PARTS": ("finditer", ("GAL-12",)),
    "issue._WORDS": ("finditer", ("a b, c",)),
    "outline._LINES": ("finditer", ("a\r\nb\rc\n",)),
    "outline._LIST_LINE": ("match", ("- x", "12. x")),
    "render._ENDS": ("finditer", ("a\r\nb\rc\n",)),
    "render._OPENING": ("match", ("``` x", "~~~ x")),
    "render._SPACE": ("finditer", ("a \t\n b",)),
    "render._UNPRINTABLE": ("finditer", ("a\x00b",)),
    "issue._NUMBER": ("fullmatch", ("12",)),
    "issue._NUMBERED": ("fullmatch", ("A-12",)),
}


def patterns_of_the_library() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.iter_modules(todo.__path__):
        names = vars(importlib.import_module(f"todo.{module.name}")).items()
        found |= {f"{module.name}.{name}": value for name, value in names if isinstance(value, re.Pattern)}
    return found


def stretched(text: str) -> set[str]:
    """Return the text with each of its parts repeated, or a blank in its place, and something at the end."""
    found: set[str] = set()
    for at in range(len(text) + 1):
        for part in {" ", text[at : at + 1], text[at : at + 2], text[at : at + 3]} - {""}:
            for rest in (text[at:], "", text[at + len(part) :]):
                found |= {text[:at] + part * (LONG // len(part)) + rest + end for end in ("", "!", "\x00")}
    return found


def test_every_pattern_is_timed() -> None:
    assert patterns_of_the_library().keys() == PATTERNS.keys()
    for module in pkgutil.iter_modules(todo.__path__):  # a pattern in a call escapes us
        source = importlib.import_module(f"todo.{module.name}").__file__
        assert source is not None
        calls = re.findall(r"\bre\.(?!compile|Pattern|Match)\w+", Path(source).read_text("utf-8"))
        assert not calls, (module.name, calls)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.broad(but_first=1)
def test_a_pattern_takes_long_for_no_text(name: str) -> None:
    method, samples = PATTERNS[name]
    ask = getattr(patterns_of_the_library()[name], method)
    for text in sorted({long for sample in samples for long in stretched(sample)}):
        begin = time.process_time()
        found = ask(text)
        if method == "finditer":
            for _ in found:
                pass
        assert time.process_time() - begin < LONGEST_S, (text[:30], text[-30:])


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "line",
    [
        "# a" + " " * LONG + "a",
        "# a" + " #" * LONG,
        "#" * LONG,
        "- " * LONG,
        "1. " * LONG,
        "\t" * LONG + "- x",
        "- " * LONG + "\n" + " - x\n" * 5_000,
        "```" * LONG,
        "- ```\n" * 5_000,
        "<!--" * LONG,
        "- [x](" * LONG,
        "- " + "](a.md" * LONG,
        "- " + '](a.md "' * LONG,
    ],
    ids=lambda line: ascii(line[:8]) + ascii(line[-4:]),
)
def test_a_page_takes_long_for_no_line(line: str) -> None:
    begin = time.process_time()
    outline(line.splitlines(keepends=True))
    problems = lint(Tracker(MappingSource({"README.md": f"# Issues\n\n{line}\n".encode()})))
    assert time.process_time() - begin < 2 * LONGEST_S
    assert {problem.rule for problem in problems} <= {Rule.UNCLOSED}


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "front",
    [
        "k: [" + " " * 60_000 + "!",
        "k: " + "[" * 60_000,
        "k: " + "{a: " * 15_000,
        "? " * 30_000,
        "k: " + "a " * 30_000 + "{",
        "k: " + "- " * 30_000,
        "k: '" + "'" * 60_000,
        "k: |\n" + " \n" * 30_000,
        "k: " + "!" * 60_000,
        "- " * 30_000,
        "k: [" + "a: b, " * 10_000,
        "k: [" + "a, " * 20_000 + "]",
        "k:\n" + "".join(f" k{n}:\n" for n in range(6_000)),
    ],
    ids=lambda front: ascii(front[:8]) + ascii(front[-4:]),
)
def test_front_matter_takes_long_for_no_text(front: str) -> None:
    text = f"---\nid: A-1\ntitle: t\nstatus: Todo\n{front}\n---\n"
    begin = time.process_time()
    lint(Tracker(MappingSource({"A-1.md": text.encode()})))
    assert time.process_time() - begin < 20 * LONGEST_S
