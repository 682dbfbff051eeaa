"""What the tests of a Rust source check: test functions and fixtures, in modules and beside the code, and examples.

Importing this module loads the parser.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust import asserts as rust_asserts
from pipeline.languages.rust.examples import examples
from pipeline.languages.rust.rules import COMMENTS, TAKES_OUT, Rust, is_assertion, without_comments
from pipeline.languages.sources.suite_walk import Helper, Walk, below, brief, line_of, text, whole, written
from pipeline.languages.sources.suites import EXACT, PART, Check, Suite, Test

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node


_TESTS: Final = frozenset({"test", "rstest", "test_case", "quickcheck", "bench"})
_CFG_TEST: Final = re.compile(r"cfg\((?:test|all\((?:.*,)?test(?:,.*)?\))\)")
_TIMEOUT: Final = re.compile(r"(?:\w+::)*timeout\((?:.*from_(?P<unit>secs|millis|micros)\()?(?P<number>\d+)")
_UNITS: Final = {"secs": 1.0, "millis": 1e-3, "micros": 1e-6}
_TEST_PLACES: Final = re.compile(r"(?:.*/)?(?:tests?|benches)(?:/.*|\.rs)")


_RULES: Final = Rust()


def read(source: bytes, path: str) -> Suite:
    """Return the tests, fixtures and examples of a source; what has errors in it is read as far as it goes."""
    reader = _Reader(is_whole=_TEST_PLACES.fullmatch(path) is not None)
    root = rust_asserts.parse(source).root_node
    reader.collect(root, "", frozenset(), is_test=reader.is_whole)
    return Suite({**reader.tests(), **examples(source, _checks_of)})


def documented(source: bytes) -> Suite:
    """Return the examples in the documentation of a source, and nothing else."""
    return Suite(examples(source, _checks_of))


def _checks_of(code: str) -> tuple[Check, ...]:
    """Return what an example checks."""
    return Walk(_RULES, {}).checks(rust_asserts.parse(f"fn main() {{\n{code}\n}}".encode()).root_node.children[0])


@dataclass
class _Found:
    name: str
    node: Node
    attributes: list[str]
    marks: frozenset[str]


@dataclass
class _Reader:
    is_whole: bool
    found: list[_Found] = field(default_factory=list[_Found])
    helpers: dict[str, Helper] = field(default_factory=dict[str, Helper])
    constants: dict[str, str] = field(default_factory=dict[str, str])

    def collect(self, body: Node, above: str, marks: frozenset[str], *, is_test: bool) -> None:
        """Take in the items of a file or module; `marks` are conditions on the modules around it."""
        for item, attributes in _items(body):
            inside = item.child_by_field_name("body")
            name = text(item.child_by_field_name("name")).removeprefix("r#")
            if item.type == "mod_item" and inside is not None:
                more = frozenset(f"#[{words}]" for words in attributes if _is_condition(words))
                tests = is_test or any(_CFG_TEST.fullmatch(_plain(words)) for words in attributes)
                self.collect(inside, f"{above}{name}::", marks | more, is_test=tests)
            elif item.type == "function_item" and inside is not None:
                if any(_is_test(words) or _word(words) == "fixture" for words in attributes):
                    self.found.append(_Found(above + name, item, attributes, marks))
                elif is_test:
                    self.helpers[name] = Helper(_parameters(item), inside)
            elif item.type in {"const_item", "static_item"}:
                self.constants[name] = written(item.child_by_field_name("value"), _RULES, self.constants)
            elif item.type == "impl_item" and is_test and inside is not None:
                self.collect(inside, above, marks, is_test=True)

    def tests(self) -> dict[str, Test]:
        """Return what was collected, read."""
        walk = Walk(_RULES, self.helpers, self.constants)
        return {found.name: self._test(found, walk) for found in self.found}

    def _test(self, found: _Found, walk: Walk) -> Test:
        body = found.node.child_by_field_name("body") or found.node
        named = {name: f"parameter {at}" for at, name in enumerate(_parameters(found.node))}
        inside = Walk(_RULES, self.helpers, {**walk.constants, **named}, walk.steps)
        checks = (*inside.checks(body), *_panics(found))
        walk.steps = inside.steps
        if any(check.kind not in TAKES_OUT for check in checks):
            checks = tuple(check for check in checks if check.kind not in TAKES_OUT)
        return Test(
            line=line_of(found.node),
            body=f"{' '.join(found.attributes)} {whole(body, _RULES)}",
            what="fixture" if any(_word(words) == "fixture" for words in found.attributes) else "test",
            checks=checks,
            cases=_cases(found),
            marks=Counter([*found.marks, *filter(None, map(_mark, found.attributes))]),
            standins=sum(_is_standin(node) for node in below(body)),
            timeout=next(filter(None, map(_timeout, found.attributes)), None),
            swallowed=tuple(line_of(node) for node in below(body) if self._swallows(node)),
            vacuous=tuple(_vacuous(body, inside.constants)),
            leaves=tuple(line_of(node) for node in below(body) if node.type == "return_expression"),
            discarded=tuple(_discarded(body, inside.constants)),
            empty=not without_comments(body),
        )

    def _swallows(self, node: Node) -> bool:
        called = _RULES.call(node)
        if called is None or called.name != "catch_unwind":
            return False
        inside = [other for argument in called.arguments for other in below(argument)]
        calls = (_RULES.call(other) for other in inside)
        return any(map(is_assertion, inside)) or any(call.name in self.helpers for call in calls if call is not None)


def _items(body: Node) -> Iterator[tuple[Node, list[str]]]:
    attributes: list[str] = []
    for child in body.named_children:
        if child.type == "attribute_item":
            attributes.append(" ".join(text(child).split()).removeprefix("#[").removesuffix("]"))
        elif child.type not in COMMENTS:
            yield child, attributes
            attributes = []


def _word(attribute: str) -> str:
    return re.split(r"[\s(=\[]", attribute, maxsplit=1)[0]


def _plain(attribute: str) -> str:
    return attribute.replace(" ", "")


def _is_test(attribute: str) -> bool:
    last = _word(attribute).rpartition("::")[2]
    return last in _TESTS or last.endswith("_test")


def _is_condition(attribute: str) -> bool:
    return _word(attribute) == "cfg" and not _CFG_TEST.fullmatch(_plain(attribute))


def _mark(attribute: str) -> str | None:
    word = _word(attribute)
    if word in {"ignore", "should_panic"}:
        return word
    conditional = word == "cfg_attr" and ("ignore" in attribute or "should_panic" in attribute)
    return f"#[{attribute}]" if conditional or _is_condition(attribute) else None


def _panics(found: _Found) -> Iterator[Check]:
    for words in found.attributes:
        if _word(words) == "should_panic":
            message = re.search(r'"((?:[^"\\]|\\.)*)"', words)
            kind = "should_panic(expected)" if message is not None else "should_panic"
            strength = EXACT if message is not None else PART
            yield Check("panics", kind, strength, message[1] if message is not None else "", line=line_of(found.node))


def _cases(found: _Found) -> int:
    named = sum(_word(words).partition("::")[0] in {"case", "test_case"} for words in found.attributes)
    product = max(named, 1)
    for node in below(found.node.child_by_field_name("parameters") or found.node):
        if node.type == "attribute" and text(node.named_children[0]) == "values" and len(node.named_children) > 1:
            product *= max(1, sum(token.type == "," for token in node.named_children[1].children) + 1)
    return product


def _timeout(attribute: str) -> float | None:
    found = _TIMEOUT.match(attribute)
    return float(found["number"]) * _UNITS[found["unit"] or "millis"] if found is not None else None


def _parameters(function: Node) -> tuple[str, ...]:
    given = function.child_by_field_name("parameters")
    found = (child.child_by_field_name("pattern") for child in (given.named_children if given is not None else ()))
    return tuple(text(pattern) for pattern in found if pattern is not None)


def _is_standin(node: Node) -> bool:
    return (
        node.type in {"identifier", "type_identifier"} and re.fullmatch(r"Mock[A-Z]\w*|mockito", text(node)) is not None
    )


def _vacuous(body: Node, constants: Mapping[str, str]) -> Iterator[int]:
    names = dict(constants)
    for node in below(body):
        for name, made in _RULES.bindings(node, names):
            names[name] = brief(made)
        if node.type == "macro_invocation" and rust_asserts.vacuous(node, _RULES, names):
            yield line_of(node)


def _discarded(body: Node, constants: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    names = dict(constants)
    for node in below(body):
        for name, made in _RULES.bindings(node, names):
            names[name] = brief(made)
        thrown: Node | None = None
        if node.type == "let_declaration" and text(node.child_by_field_name("pattern")) == "_":
            thrown = node.child_by_field_name("value")
        elif node.type == "expression_statement" and text(node).endswith(".ok();"):
            thrown = node.named_children[0]
        if thrown is not None and any(part.type == "call_expression" for part in below(thrown)):
            yield rust_asserts.bare(written(thrown, _RULES, names)).removesuffix(".ok()"), line_of(node)
