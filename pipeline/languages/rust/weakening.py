"""Reads the checks of a Rust source: test functions and fixtures, in modules and beside code, and examples.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.asserts import TAKES_OUT, Rust
from pipeline.languages.rust.examples import examples
from pipeline.languages.rust.syntax import parse
from pipeline.languages.sources.claims import values_in
from pipeline.languages.sources.suite_walk import Helper, Walk, digest, marked, parts_of
from pipeline.languages.sources.suites import EXACT, PART, Check, Suite, Test
from pipeline.languages.sources.syntax_trees import line_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from pipeline.languages.sources.suites import Words

_TESTS: Final = frozenset({"test", "rstest", "test_case", "quickcheck", "bench"})
_CFG_TEST: Final = re.compile(r"cfg\((?:test|all\((?:.*,)?test(?:,.*)?\))\)")
_TEST_PLACES: Final = re.compile(r"(?:.*/)?(?:tests?|benches)(?:/.*|\.rs)")
_STANDIN: Final = re.compile(r"Mock[A-Z]\w*|mockito")
_RULES: Final = Rust()


def read(source: bytes, path: str) -> Suite:
    """Return the tests, fixtures and examples of a source; one with errors is read as far as possible."""
    reader = _Reader()
    reader.collect(parse(source), "", (), is_test=_TEST_PLACES.fullmatch(path) is not None)
    return Suite({**{found.name: reader.test(found) for found in reader.found}, **examples(source, _checks_of)})


def _checks_of(code: str) -> tuple[Check, ...]:
    """Return the checks of an example."""
    function = parse(f"fn main() {{\n{code}\n}}".encode()).children[0]
    return tuple(Walk(_RULES, {}).read(function).checks)


@dataclass
class _Found:
    name: str
    node: Node
    attributes: list[str]
    marks: tuple[str, ...]


@dataclass
class _Reader:
    found: list[_Found] = field(default_factory=list[_Found])
    walk: Walk[Node] = field(default_factory=lambda: Walk(_RULES, {}))
    helpers: dict[str, Helper[Node]] = field(default_factory=dict[str, "Helper[Node]"])

    def __post_init__(self) -> None:
        self.walk.helpers = self.helpers

    def collect(self, body: Node, above: str, marks: tuple[str, ...], *, is_test: bool) -> None:
        """Collect the items of a file or module; `marks` are conditions on the modules around it."""
        for item, attributes in _items(body):
            inside = item.child_by_field_name("body")
            name = text(item.child_by_field_name("name")).removeprefix("r#")
            if item.type in {"const_item", "static_item"}:
                self.walk.bind(item, self.walk.constants)
            elif inside is None:
                continue
            elif item.type == "mod_item":
                more = [f"#[{words}] is added" for words in attributes if _is_condition(words)]
                tests = is_test or any(_CFG_TEST.fullmatch(words.replace(" ", "")) for words in attributes)
                self.collect(inside, f"{above}{name}::", (*marks, *more), is_test=tests)
            elif item.type == "impl_item" and is_test:
                self.collect(inside, above, marks, is_test=True)
            elif item.type == "function_item" and any(map(_is_test, attributes)):
                self.found.append(_Found(above + name, item, attributes, marks))
            elif item.type == "function_item" and is_test:
                self.helpers[name] = Helper(_parameters(item), inside)

    def test(self, found: _Found) -> Test:
        """Return a collected function with its checks."""
        body = found.node.child_by_field_name("body") or found.node
        words, read = _RULES.words(body), self.walk.read(body)
        is_fixture = any(_word(words) == "fixture" for words in found.attributes)
        checks = [*read.checks, *_panics(found)]
        others = [check for check in checks if check.kind not in {*TAKES_OUT, "?"}]
        cases = [words for words in found.attributes if _word(words).partition("::")[0] in {"case", "test_case"}]
        given = tuple(word for words in cases for word in re.findall(r'"(?:[^"\\]|\\.)*"|[\w.]+', words))
        marks = [*found.marks, *filter(None, map(_mark, found.attributes))]
        return Test(
            line=line_of(found.node),
            body=digest((*found.attributes, *words)),
            what="fixture" if is_fixture else "test",
            checks=tuple(others or checks),
            cases=max(1, len(cases)) * _listed(found.node),
            values=frozenset(read.values) | values_in(given),
            marks=Counter([*marks, *marked(words, (), _STANDIN)]) + read.marks,
            parts=parts_of(words) if is_fixture else (),
        )


def _items(body: Node) -> Iterator[tuple[Node, list[str]]]:
    attributes: list[str] = []
    for child in body.named_children:
        if child.type == "attribute_item":
            attributes.append(" ".join(text(child).split()).removeprefix("#[").removesuffix("]"))
        elif "comment" not in child.type:
            yield child, attributes
            attributes = []


def _word(attribute: str) -> str:
    return re.split(r"[\s(=\[]", attribute, maxsplit=1)[0]


def _is_test(attribute: str) -> bool:
    last = _word(attribute).rpartition("::")[2]
    return last in _TESTS or last.endswith("_test") or last == "fixture"


def _is_condition(attribute: str) -> bool:
    return _word(attribute) == "cfg" and not _CFG_TEST.fullmatch(attribute.replace(" ", ""))


def _mark(attribute: str) -> str | None:
    word = _word(attribute)
    if word in {"ignore", "should_panic"}:
        return f"{word} is added"
    conditional = word == "cfg_attr" and ("ignore" in attribute or "should_panic" in attribute)
    return f"#[{attribute}] is added" if conditional or _is_condition(attribute) else None


def _panics(found: _Found) -> Iterator[Check]:
    for words in found.attributes:
        if _word(words) == "should_panic":
            message = re.search(r'"(?:[^"\\]|\\.)*"', words)
            kind, strength = ("should_panic(expected)", EXACT) if message is not None else ("should_panic", PART)
            said: Words = ("panics", "==", message[0]) if message is not None else ("panics",)
            yield Check(said, kind, strength, line=line_of(found.node))


def _listed(function: Node) -> int:
    """Return the number of cases from the `#[values(...)]` of a test's parameters."""
    words = _RULES.words(function.child_by_field_name("parameters"))
    at = words.index("values") + 1 if "values" in words else 0
    return max(1, words[at : words.index(")", at)].count(",") + 1) if at and ")" in words[at:] else 1


def _parameters(function: Node) -> tuple[str, ...]:
    given = function.child_by_field_name("parameters")
    found = (child.child_by_field_name("pattern") for child in (given.named_children if given is not None else ()))
    return tuple(text(pattern) for pattern in found if pattern is not None)
