"""Measures how plainly texts are written: README, docs, prompts, and the messages of the program.

    python tests/house/reading.py README.md docs/how-to pipeline/faces/cli

prints each sentence that is too long, turned round or doubly negated, with file and line. A code span counts as one
word, and so does each value that the program puts into a message.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[2]
MOST_WORDS: Final = 25
MOST_LETTERS: Final = 600
"""Of a paragraph: five lines of a page that is 120 columns wide."""

_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
_CODE: Final = "CODE"
_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*(?:[A-Z0-9@`<*]|redfirst\b))")
_NO_END: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|no)\.\s+$", re.IGNORECASE)
_WORD: Final = re.compile(r"[\w@{][\w@'./{}:%-]*")
_NO_MESSAGE: Final = re.compile(
    r"\(\?|\\[wsdb]|\bSELECT\b|[<{]/?\w+[^>]*>|(?:\s--?[a-zA-Z][\w-]*[^-]*?){3}|@\w+\)"
    r"|^\s*(?:- )?\w+: \S.*\n\s+\w+: |^\s*\w+ = \w+$",
    re.MULTILINE,
)
_FEWEST: Final = 4
"""Words of a text in code that may be a message: names, patterns and single words are none."""

# fmt: off
_VERB: Final = frozenset({
    "is", "are", "was", "were", "has", "have", "had", "can", "cannot", "could", "must", "may", "might", "would",
    "will", "shall", "should", "does", "do", "did", "becomes", "become", "counts", "count", "holds", "hold", "goes",
    "go", "stands", "stand", "passes", "pass", "comes", "come", "gets", "get", "stays", "stay", "asks", "ask",
    "makes", "make", "needs", "need", "takes", "take", "gives", "give", "lies", "lie", "ends", "end", "says", "say",
    "tells", "tell", "leads", "lead", "fails", "fail",
})
# fmt: on
_WHO: Final = frozenset(["you", "it", "we", "they", "he", "she", "one", "i"])
_ARTICLES: Final = frozenset(["a", "an", "the", "this", "these", "each", "no", "your"])
_RELATIVE: Final = re.compile(r"(?:What|Which|Who|Whose|Whatever|Whoever|Whichever)\b")
_FRONTED: Final = re.compile(
    r"(?:Of|To|In|On|With|For|From|By|About|Behind|Beside) (?:what|which|whom|whose|whoever|all that|that which)\b"
    r"|Of [^,.:]* (?:that|which|who)\b"
)
_NOT: Final = re.compile(
    r"(?<![-\w\"'])(?:not|no|never|nothing|nobody|none|nowhere|neither|cannot|without|\w+n't)\b", re.IGNORECASE
)
_CLAUSE: Final = re.compile(r"[,:;()]| (?:and|or|but|nor|so that|because|since|when|where|if|which|who|until|while) ")


@dataclass(frozen=True)
class Text:
    """A text that somebody reads: `words` stand in line `line` of `path`; a page has `paragraph`s and `heading`s."""

    path: Path
    line: int
    words: str
    paragraph: bool = False
    heading: bool = False


@dataclass(frozen=True)
class Fault:
    """What is wrong with a sentence, `kind`: long, turned, negated, or paragraph."""

    path: str
    line: int
    kind: str
    sentence: str

    def __str__(self) -> str:
        """Return one line, as compilers do."""
        return f"{self.path}:{self.line}: {self.kind}: {self.sentence}"


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    found: list[str] = []
    for part in _END.split(" ".join(text.split())):
        if found and _NO_END.search(f"{found[-1]} "):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return [one for one in found if one]


def words(sentence: str) -> int:
    """Return how many words a sentence has."""
    return len(_WORD.findall(sentence))


def is_turned(sentence: str) -> bool:
    """Return whether a sentence begins with what its verb is said of, as a clause: "What you edit counts".

    A question and a label ("What you edit") have no second verb.
    """
    if _FRONTED.match(sentence):
        return True
    if not _RELATIVE.match(sentence) or sentence.rstrip("\"')* ").endswith("?"):
        return False
    _, *clause = _CLAUSE.split(sentence)[0].lower().rstrip(".!").split()
    verbs = [at for at, word in enumerate(clause) if word in _VERB]
    if not verbs:
        return False
    first = verbs[0]
    own = first == 0 or (first == 1 and clause[0] in _WHO) or (first == 2 and clause[0] in _ARTICLES)
    return len(verbs) > own + any(after == before + 1 for before, after in itertools.pairwise(verbs))


def kinds(sentence: str) -> Iterator[str]:
    """Yield what is wrong with a sentence."""
    count = words(sentence)
    if count > MOST_WORDS:
        yield f"long ({count} words)"
    if is_turned(sentence):
        yield "turned"
    if any(len(_NOT.findall(part)) > 1 for part in _CLAUSE.split(sentence)):
        yield "negated"


def faults(text: Text) -> Iterator[Fault]:
    """Yield what is wrong with a text."""
    path = text.path.relative_to(ROOT).as_posix()
    for sentence in sentences(text.words):
        found = (kind for kind in kinds(sentence) if not (text.heading and kind == "turned"))
        yield from (Fault(path, text.line, kind, sentence) for kind in found)
    if text.paragraph and len(text.words) > MOST_LETTERS:
        yield Fault(path, text.line, f"paragraph ({len(text.words)} letters)", text.words[:80])


_HEADINGS: Final = frozenset({"heading_open", "th_open"})


def of_page(path: Path) -> Iterator[Text]:
    """Yield the texts of a Markdown page: paragraphs, items, cells; code and generated blocks are none."""
    source = re.sub(
        r"\A---\n.*?\n---\n",
        lambda found: "\n" * found[0].count("\n"),
        path.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    source = re.sub(
        r"<!-- (?:generated|begin)\b.*?-->.*?<!-- (?:end|/generated)\b.*?-->",
        lambda found: "\n" * found[0].count("\n"),
        source,
        flags=re.DOTALL,
    )
    inside, line = "", 0
    for token in _MARKDOWN.parse(source):
        line = token.map[0] + 1 if token.map else line
        if token.type in {"heading_open", "paragraph_open", "td_open", "th_open"}:
            inside = token.type
        if token.type == "inline":
            yield Text(path, line, plain(token.children or ()), inside == "paragraph_open", inside in _HEADINGS)


def plain(tokens: Sequence[Token]) -> str:
    """Return what is read of a line: code is one word, an image none."""
    said: list[str] = []
    for one in tokens:
        match one.type:
            case "text":
                said.append(one.content)
            case "code_inline":
                said.append(_CODE)
            case "softbreak" | "hardbreak":
                said.append(" ")
            case _:
                pass
    return "".join(said)


def of_code(path: Path) -> Iterator[Text]:
    """Yield the texts in a module that somebody may read; documentation of code is none."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in joined for part in ast.walk(node)} - {id(node) for node in joined}
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) in silent or id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            said = "".join(str(one.value) if isinstance(one, ast.Constant) else _CODE for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        if is_message(said):
            for part in re.split(r"\n\s*\n|\n\s*[*-] |\n#+ ", said):
                yield Text(path, node.lineno, re.sub(r"`[^`]+`", _CODE, part))


def is_message(said: str) -> bool:
    """Return whether a text in code has words for people: no pattern, no command, no query."""
    return words(said) >= _FEWEST and " " in said.strip() and not _NO_MESSAGE.search(said)


def texts(places: Iterable[Path]) -> Iterator[Text]:
    """Yield the texts of files and of all pages and modules in folders."""
    for place in places:
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in found:
            if path.suffix == ".md":
                yield from of_page(path)
            elif path.suffix == ".py":
                yield from of_code(path)


def main(arguments: Sequence[str]) -> int:
    """Print the faults of the files and folders that are named; return 1 where there is one."""
    found = [fault for text in texts(Path(name).resolve() for name in arguments) for fault in faults(text)]
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
