"""The examples in Python documentation, which doctest runs as tests: by what they document."""

from __future__ import annotations

import ast
import doctest
from typing import TYPE_CHECKING, Final

from pipeline.languages.python.asserts import Python
from pipeline.languages.python.weakening import parsed
from pipeline.languages.sources.suites import EXACT, PART, THE_FILE, Check, Suite, Test
from pipeline.languages.table import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SKIP: Final = doctest.OPTIONFLAGS_BY_NAME["SKIP"]
_RULES: Final = Python()
_ELLIPSIS: Final = doctest.OPTIONFLAGS_BY_NAME["ELLIPSIS"]


def read(source: bytes, path: str) -> Suite | None:
    """Return the examples of a source or a text, those of one docstring together; None if it is no Python."""
    if not path.endswith(PYTHON.sources):
        return _examples_of_text(source)
    module = parsed(source)
    if module is None:
        return None
    return Suite(
        {f"examples of {name}": test for name, text, line in _docstrings(module, "") if (test := _test(text, line))}
    )


def _examples_of_text(source: bytes) -> Suite:
    """Return the examples in a text that is no source, all together."""
    test = _test(source.decode("utf-8", "replace"), 1)
    return Suite({f"examples of {THE_FILE}": test} if test is not None else {})


def _docstrings(node: _Documented, above: str) -> Iterator[tuple[str, str, int]]:
    text = ast.get_docstring(node, clean=False)
    if text is not None:
        yield above.removesuffix(".") or THE_FILE, text, node.body[0].lineno
    for child in node.body if isinstance(node, ast.Module | ast.ClassDef) else []:
        if isinstance(child, _Documented):
            yield from _docstrings(child, f"{above}{child.name}." if not isinstance(child, ast.Module) else above)


def _test(text: str, line: int) -> Test | None:
    try:
        found = doctest.DocTestParser().get_examples(text)
    except ValueError:  # its indentation is wrong: doctest itself would not run it
        return None
    if not found:
        return None
    skipped = sum(bool(example.options.get(_SKIP)) for example in found)
    checks = tuple(check for example in found for check in _checks(example, line))
    body = "\n".join(f"{example.source}{example.want}" for example in found)
    return Test(line=line, body=body, checks=checks, marks={"SKIP is added": skipped})


def _checks(example: doctest.Example, line: int) -> Iterator[Check]:
    at = line + example.lineno
    said = example.source.partition("# doctest:")[0].strip()
    if example.options.get(_SKIP):
        return
    if example.want:
        is_part = bool(example.options.get(_ELLIPSIS)) and "..." in example.want
        words = (said, "==", f"'{' '.join(example.want.split())}'")
        yield Check(words, "..." if is_part else "==", PART if is_part else EXACT, line=at)
    module = parsed(example.source.encode())
    for node in ast.walk(module) if module is not None else ():
        yield from _RULES.checks(node, lambda words: words)
