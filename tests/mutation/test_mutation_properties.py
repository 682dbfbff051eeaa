"""What holds of every fault, whatever the source: one span, it parses, it differs from the source and all others."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
import tree_sitter_go
import tree_sitter_javascript
import tree_sitter_rust
import tree_sitter_typescript
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation.test_mutation_languages import CHANGED
from mutation.test_mutation_platforms import BRANCHES
from mutation.test_mutation_python import CHANGED as CHANGED_PYTHON
from tree_sitter import Language, Parser

from pipeline.testing.languages.sources.faults import mutants

pytestmark = pytest.mark.slow

GRAMMARS = {
    "a.rs": tree_sitter_rust.language,
    "a.go": tree_sitter_go.language,
    "a.js": tree_sitter_javascript.language,
    "a.ts": tree_sitter_typescript.language_typescript,
}
TEXTS = [
    *dict.fromkeys(("a.py", text) for text, *_ in CHANGED_PYTHON if text.isascii()),
    *dict.fromkeys((path, text) for path, text, *_ in CHANGED),
    *BRANCHES,
]


def parses(path: str, text: bytes) -> bool:
    if path == "a.py":
        ast.parse(text)
        return True
    return not Parser(Language(GRAMMARS[path]())).parse(text).root_node.has_error


@pytest.mark.parametrize(("path", "source"), TEXTS)
def test_every_fault_is_one_span_that_parses(path: str, source: str) -> None:
    text = source.encode()
    lines = frozenset(range(1, text.count(b"\n") + 2))
    assert parses(path, text)
    found = mutants(path, text, lines)
    results: set[bytes] = {text}
    for mutant in found:
        result = mutant.apply(text)
        assert result[: mutant.start] == text[: mutant.start]
        assert result[len(result) - (len(text) - mutant.end) :] == text[mutant.end :]
        assert result not in results
        assert parses(path, result)
        assert mutant.line in lines
        assert mutant.what.strip()
        assert mutant.path == path
        results.add(result)
    assert found == mutants(path, text, lines)  # the same question has the same answer
    assert mutants(path, text, lines, at_most=2) == found[:2]


@settings(deadline=None, max_examples=60)
@given(
    text=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)),
    name=st.sampled_from([*GRAMMARS, "a.py"]),
)
def test_any_bytes_are_read(text: bytes, name: str) -> None:
    for mutant in mutants(name, text, range(1, 30)):
        assert mutant.apply(text) != text


def test_no_line_no_fault_and_what_nobody_reads_has_none() -> None:
    text = b"x = 1 < 2\n"
    assert mutants("a.py", text, ()) == ()
    assert mutants("a.txt", text, (1,)) == ()
    assert mutants("a.py", b"def broken(:\n", (1,)) == ()
    assert mutants("a.rs", b"fn broken( {", (1,)) == ()
    assert mutants("a.py", b"x = 1 < 2\n" * 200_000, (1,)) == ()


def test_parsers_are_loaded_when_a_file_of_theirs_is_read() -> None:
    imported = "from pipeline.testing.languages.sources import faults"
    script = f"import sys; {imported}; assert faults.mutants('a.py', b'x = 1 < 2', (1,))"
    loaded = "assert not any('javascript' in name or name == 'tree_sitter_rust' for name in sys.modules)"
    subprocess.run([sys.executable, "-c", f"{script}; {loaded}"], check=True)
    assert mutants("a.tsx", b"const a = (x: number) => <b>{x + 1}</b>;\n", (1,))
