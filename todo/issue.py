"""An issue as read from its file, with typed values, and the rules for issue ids (contract 3)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from todo.errors import invalid, usage
from todo.frontmatter import Document, Node, Scalar, decode, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

INDEX_NAME: Final = "README.md"
_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,63}")
_DIGITS: Final = frozenset("0123456789")
_PARTS: Final = re.compile(r"[0-9]+|[^0-9]+")
_WORDS: Final = re.compile(r"\w+")
_KEYS: Final = ("id", "title", "status", "parent", "labels", "depends-on")
_COMMENT: Final = re.compile(r"(?s)<!--.*?(?:-->|\Z)")  # linear: what is not closed is the rest
NEAR: Final = 0.8
"""The similarity from which a key counts as misspelt: two swapped letters, or one too many; `reporter` and `estimate`
are keys of their own."""


class Status(StrEnum):
    """The status of an issue."""

    TODO = "Todo"
    IN_PROGRESS = "In Progress"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue; `body` is the text after the front matter."""

    id: str
    title: str
    status: Status
    parent: str | None
    labels: tuple[str, ...]
    depends_on: tuple[str, ...]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIssue:
    """An issue to be created.

    `id`: None = the next free one; `prefix` begins it where no issue has a number yet.
    `parent`: None = a top-level issue, listed in README.md under `category`.
    `provenance` says in one line where the issue comes from; it ends the description.
    """

    title: str
    id: str | None = None
    prefix: str | None = None
    parent: str | None = None
    category: str | None = None
    labels: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    test_hints: str = ""
    provenance: str = ""


def is_issue_id(text: str) -> bool:
    """Return whether a text is a valid issue id: it becomes the name of a file, of a ref and of a run."""
    return (
        _ID.fullmatch(text) is not None
        and text.lower() not in {"readme", "null"}
        and not any(part.lower() in {"lock", "md"} for part in text.split(".")[1:])
    )


def checked_id(text: str) -> str:
    """Return the id unchanged if it is valid.

    Raises:
        TrackerError: usage.
    """
    if not is_issue_id(text):
        raise usage(f"{text!r} is not an issue id. An id has letters, digits, `-`, `_` and inner dots, such as GAL-39.")
    return text


def file_name(issue_id: str) -> str:
    """Return the name of the issue's file."""
    return f"{issue_id}.md"


def id_of_file(name: str) -> str | None:
    """Return the issue id in a file name, None for a file of no issue (README.md, hidden, not .md)."""
    return None if name == INDEX_NAME or name.startswith(".") or not name.endswith(".md") else name[:-3]


def sort_key(issue_id: str) -> tuple[tuple[bool, int, str, str], ...]:
    """Return a key that puts GAL-2 before GAL-10 and GAL-39.1 after GAL-39; any name of a file has one."""
    return tuple(
        (False, len(number), number, part) if part[0] in _DIGITS else (True, 0, "", part)
        for part in _PARTS.findall(issue_id)
        for number in (part.lstrip("0"),)  # of two, the longer one is larger: int() refuses thousands of digits
    )


def normalised_title(title: str) -> str:
    """Return the words of a title for comparison: without case, Unicode form, punctuation and spacing."""
    return " ".join(_WORDS.findall(unicodedata.normalize("NFKC", title).casefold())) or title.strip()


def read_issue(content: bytes, name: str) -> tuple[Issue, Document]:
    """Return the issue in a file, and the parts of the file.

    Raises:
        TrackerError: tracker_invalid, with the line where known.
    """
    document = parse(decode(content, name), name)
    issue_id = _required(document, "id")
    if f"{issue_id}.md" != name:
        message = f"The id is `{issue_id}`, the file is named {name}. Make them agree."
        raise invalid(message, path=name, line=document.line_of("id"))
    issue = Issue(
        id=issue_id,
        title=_required(document, "title"),
        status=_status(document),
        parent=_parent(document),
        labels=_words(document, "labels"),
        depends_on=tuple(_checked_reference(document, "depends-on", word) for word in _words(document, "depends-on")),
        body=document.text[document.body :],
    )
    return issue, document


def is_unwritten(issue: Issue) -> bool:
    """Return whether the issue's text has only headings and comments of a template."""
    said, comments = _COMMENT.subn("", issue.body)
    return comments > 0 and not any(line.strip() and not line.startswith("#") for line in said.splitlines())


def misspelt_keys(document: Document) -> list[tuple[str, str]]:
    """Return the unknown keys that look misspelt, each with the known key it resembles."""
    found = [(key, _meant(key)) for key in document.values]
    return [(key, meant) for key, meant in found if key != meant and meant in _KEYS]


def check_keys(document: Document) -> None:
    """Check that no key is a misspelling of a known one: a misspelt `depends-on` would be no dependency.

    Raises:
        TrackerError: tracker_invalid.
    """
    for key, meant in misspelt_keys(document):
        message = f"The key `{key}` has no effect; `{meant}` is meant. Correct it."
        raise invalid(message, path=document.name, line=document.line_of(key))


def _meant(key: str) -> str:
    """Return the known key most similar to *key*, else *key* itself."""
    plain = key.strip().lower().replace("_", "-")
    if plain in _KEYS:
        return plain
    from difflib import get_close_matches  # noqa: PLC0415  (only where a key is misspelt)

    return next(iter(get_close_matches(plain, _KEYS, n=1, cutoff=NEAR)), plain)


def _required(document: Document, key: str) -> str:
    node = document.values.get(key)
    if node is None:
        raise invalid(f"The front matter has no `{key}`. Add a line `{key}: ...`.", path=document.name)
    if not isinstance(node, Scalar) or node.is_null or not node.text.strip():
        raise invalid(f"`{key}` must have one value.", path=document.name, line=document.line_of(key))
    return node.text


def _status(document: Document) -> Status:
    word = _required(document, "status")
    try:
        return Status(word)
    except ValueError:
        accepted = ", ".join(Status)
        message = f"`{word}` is not a status. Accepted: {accepted}."
        raise invalid(message, path=document.name, line=document.line_of("status")) from None


def _parent(document: Document) -> str | None:
    node = document.values.get("parent")
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return None
    return _checked_reference(document, "parent", _required(document, "parent"))


def _words(document: Document, key: str) -> tuple[str, ...]:
    """Return the list of words under a key; empty if the key is missing or null."""
    node: Node = document.values.get(key, [])
    if isinstance(node, Scalar) and node.is_null:
        return ()
    if not isinstance(node, list):
        example = node.text if isinstance(node, Scalar) else "..."
        message = f"`{key}` must be a list, such as `{key}: [{example}]`."
        raise invalid(message, path=document.name, line=document.line_of(key))
    words = tuple(item.text for item in node if isinstance(item, Scalar) and not item.is_null)
    if len(words) < len(node):
        raise invalid(f"Each item of `{key}` must be a word.", path=document.name)
    return words


def _checked_reference(document: Document, key: str, word: str) -> str:
    if not is_issue_id(word):
        message = f"`{key}` names `{word}`, which is not an issue id."
        raise invalid(message, path=document.name, line=document.line_of(key))
    return word


_NUMBER: Final = re.compile(r"[0-9]{1,64}")
_NUMBERED: Final = re.compile(rf"([A-Za-z][A-Za-z0-9_-]*-)({_NUMBER.pattern})")


def next_sub_id(parent: str, ids: Sequence[str]) -> str:
    """Return the next free id for a sub-issue of *parent*; *ids* are taken."""
    numbers = [
        int(number)
        for other in ids
        if other.startswith(f"{parent}.") and _NUMBER.fullmatch(number := other.removeprefix(f"{parent}."))
    ]
    return f"{parent}.{max(numbers, default=0) + 1}"


def next_id(ids: Sequence[str], prefix: str | None) -> str:
    """Return the next free id with the most common prefix of *ids*, which are taken, and their zero padding.

    Args:
        ids: Ids that may repeat.
        prefix: Of the first one, where none has a number.

    Raises:
        TrackerError: usage, where there is nothing to count on from.
    """
    numbered = [found for found in map(_NUMBERED.fullmatch, dict.fromkeys(ids)) if found is not None]
    if not numbered and prefix is not None:
        return f"{prefix}-1"
    if not numbered:
        raise usage("There is no numbered issue yet to count on from. Give an id, such as GAL-1.")
    most = min(Counter(found[1] for found in numbered).items(), key=lambda counted: (-counted[1], counted[0]))[0]
    last = max((found[2] for found in numbered if found[1] == most), key=int)
    return f"{most}{str(int(last) + 1).zfill(len(last))}"


def find_cycle(start: str, following: Callable[[str], Iterable[str]]) -> tuple[str, ...] | None:
    """Return a cycle that can be reached from `start`, its first node repeated at its end; None if there is none.

    Depth first without recursion; a chain of thousands of issues is only a chain.
    """
    path = {start: iter(following(start))}
    finished: set[str] = set()
    while path:
        last = next(reversed(path))
        node = next(path[last], None)
        if node is None:
            del path[last]
            finished.add(last)
        elif node in path:
            nodes = list(path)
            return (*nodes[nodes.index(node) :], node)
        elif node not in finished:
            path[node] = iter(following(node))
    return None


def arrows(cycle: tuple[str, ...]) -> str:
    """Return the nodes of a cycle joined by arrows."""
    return " -> ".join(cycle)
