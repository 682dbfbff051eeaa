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
from mutation.snippets import LANGUAGES, source
from tree_sitter import Language, Parser

from pipeline.languages.sources.faults import mutants, spread

pytestmark = pytest.mark.slow

GRAMMARS = {
    "a.rs": tree_sitter_rust.language,
    "a.go": tree_sitter_go.language,
    "a.js": tree_sitter_javascript.language,
    "a.ts": tree_sitter_typescript.language_typescript,
}
pieces = st.lists(st.integers(0, 20), min_size=1, max_size=5)


def parses(path: str, text: bytes) -> bool:
    if path == "a.py":
        ast.parse(text)
        return True
    return not Parser(Language(GRAMMARS[path]())).parse(text).root_node.has_error


@pytest.mark.parametrize("path", LANGUAGES)
@settings(deadline=None, max_examples=25)
@given(numbers=pieces, data=st.data())
def test_every_fault_is_one_span_that_parses(path: str, numbers: list[int], data: st.DataObject) -> None:
    text = source(path, numbers)
    assert parses(path, text)
    count = text.count(b"\n")
    lines = frozenset(data.draw(st.sets(st.integers(1, count), min_size=1)))
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


@pytest.mark.parametrize("path", LANGUAGES)
def test_every_piece_has_faults_unless_it_is_a_test_or_a_type(path: str) -> None:
    for number, piece in enumerate(LANGUAGES[path]):
        text = source(path, [number])
        found = mutants(path, text, range(1, 100))
        left_alone = any(word in piece for word in ("#[test]", "cfg(test)", "TYPE_CHECKING"))
        assert (not found) is left_alone, piece


@settings(deadline=None, max_examples=60)
@given(
    text=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)), name=st.sampled_from([*LANGUAGES])
)
def test_any_bytes_are_read(text: bytes, name: str) -> None:
    for mutant in mutants(name, text, range(1, 30)):
        assert mutant.apply(text) != text


@settings(deadline=None, max_examples=25)
@given(numbers=pieces, seed=st.randoms(use_true_random=False))
def test_the_order_depends_on_the_faults_alone(numbers: list[int], seed: object) -> None:
    found = list(mutants("a.py", source("a.py", numbers), range(1, 200)))
    shuffled = list(found)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    assert list(spread(shuffled)) == list(spread(found))
    assert sorted(map(repr, spread(found))) == sorted(map(repr, found))


def test_no_line_no_fault_and_what_nobody_reads_has_none() -> None:
    text = source("a.py", [0])
    assert mutants("a.py", text, ()) == ()
    assert mutants("a.txt", text, (1,)) == ()
    assert mutants("a.py", b"def broken(:\n", (1,)) == ()
    assert mutants("a.rs", b"fn broken( {", (1,)) == ()
    assert mutants("a.py", b"x = 1 < 2\n" * 200_000, (1,)) == ()


def test_parsers_are_loaded_when_a_file_of_theirs_is_read() -> None:
    script = (
        "import sys; from pipeline.languages.sources import faults; assert faults.mutants('a.py', b'x = 1 < 2', (1,))"
    )
    loaded = "assert not any('javascript' in name or name == 'tree_sitter_rust' for name in sys.modules)"
    subprocess.run([sys.executable, "-c", f"{script}; {loaded}"], check=True)
    assert mutants("a.tsx", b"const a = (x: number) => <b>{x + 1}</b>;\n", (1,))
