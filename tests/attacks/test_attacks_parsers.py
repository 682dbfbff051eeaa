"""Sources that are small and hard to read: whoever hands one in neither crashes the driver nor blocks it.

Each reader that a driver asks gives an answer to each of them, and what it does not get through it never calls fine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attacks.nasty_sources import LANGUAGES, nasty
from crashes import KILLED, die_at
from e2e.shapes import TRACKER, answers
from kit import BARE_PYTEST, GREET, make_project

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages import readers
from pipeline.testing.languages.go import sources as go_sources
from pipeline.testing.languages.javascript.sources import Sources
from pipeline.testing.languages.rust import sources as cargo_sources
from pipeline.testing.languages.sources import Unspliced, stubs
from pipeline.testing.languages.sources.faults import mutants
from pipeline.testing.languages.sources.mentions import mention_graph
from pipeline.testing.languages.sources.stubs import StubFault
from pipeline.testing.languages.table import language_of
from pipeline.trees import Files

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.testing.languages.toolchain import Toolchain

pytestmark = pytest.mark.slow

PYTHON = "pipeline.testing.languages.python"
SMALL, LARGE, HUGE = 100, 3_000, 100_000
TERMS = "def table():\n    return " + "+".join(["1"] * LARGE) + "\n"
SUMS = "def table():\n    return " + "+".join(["1"] * HUGE) + "\n"


def toolchain_of(path: str) -> Toolchain:
    language = language_of(path)
    assert language is not None
    return language.toolchain


@pytest.mark.parametrize("path", [path for path in LANGUAGES if path != "a.tsx"])
@pytest.mark.broad
def test_every_reader_answers_to_every_nasty_source(path: str, tmp_path: Path) -> None:
    for what, source in nasty(path, SMALL).items():
        text = source.decode("utf-8", "replace")
        more = source + b"\n"
        readers.means(path, None, source)
        readers.examples_lost([(path, source, more)], {path})
        mention_graph({path: text})
        readers.mutants(path, source, frozenset({1, 2}), at_most=2)
        found = toolchain_of(path).stub_faults({path: text}, {path: text + "\n"}, [Symbol(path, "f")])
        assert all(isinstance(one, StubFault) for one in found), what
        readers.edited(source, "1", "2")
        if path == "a.rs":
            readers.region_fault(path, source, more)
            readers.regions_of(source)
            readers.splice(source, more)
            (tmp_path / path).write_bytes(source)
            cargo_sources.read_crate(Files(tmp_path), path, is_test=False)
        if path == "a.go":
            (tmp_path / "a_test.go").write_bytes(source)
            go_sources.read_folder(Files(tmp_path), "", ["a_test.go"])
        if path in {"a.js", "a.ts"}:
            known = Sources(frozenset({path}), {path: source})
            middle = max(1, len(source) // 2)
            known.region_of(path, 1, middle)
            known.is_bare(path, 1, middle)
            known.function_at(path, 1, middle)
            known.looked_at(path, 1, "f", called=True)


def test_thousands_of_terms_are_read_or_refused_and_never_raise() -> None:
    symbols, python = [Symbol("a.py", "table")], toolchain_of("a.py")
    # positive control: the same readers in the driver's own process
    for read in (
        lambda: stubs.stub_symbols(PYTHON, {"a.py": TERMS}, symbols),
        lambda: stubs.stub_faults(PYTHON, {}, {"a.py": TERMS}, symbols),
    ):
        with pytest.raises(RecursionError):
            read()

    # not too many for a child that has nothing else to do
    assert "NotImplementedError" in python.stub_symbols({"a.py": TERMS}, symbols).files["a.py"]
    (fault,) = python.stub_faults({}, {"a.py": TERMS}, symbols)
    assert "body that is more than" in str(fault)

    assert python.stub_symbols({"a.py": SUMS}, symbols).unknown == tuple(symbols)
    (fault,) = python.stub_faults({}, {"b.py": "", "a.py": SUMS}, symbols)
    assert str(fault).startswith("a.py cannot be read: it ")
    assert python.introduced({}, {"b.py": "X = 1\n", "a.py": SUMS}) == (Symbol("b.py", "X"),)


@pytest.mark.slow
def test_tests_in_go_are_found_in_time_however_deep_their_blocks_are(tmp_path: Path) -> None:
    (tmp_path / "a_test.go").write_bytes(nasty("a.go", LARGE)["fatal in a block"])
    found = go_sources.read_folder(Files(tmp_path), "", ["a_test.go"])
    assert list(found.tests) == ["TestA"]
    assert found.unread == {}


@pytest.mark.broad
def test_what_nobody_can_read_is_refused_or_told() -> None:
    deep = b"fn f() { " + b"+".join([b"1"] * HUGE) + b"; }\n"
    rust = b"fn f() {}\n#[cfg(test)]\nmod tests {}\n" + b"/*" * HUGE
    assert readers.region_fault("a.rs", rust, rust + b"\n") is not None
    assert isinstance(readers.regions_of(rust), Unspliced)

    assert readers.mutants("a.rs", deep, frozenset({1}), at_most=5) == ()
    assert mutants("a.rs", b"fn f() -> i32 { 1 + 1 }\n", {1}, at_most=5)


@pytest.mark.broad
def test_a_stub_pass_that_is_hard_to_read_is_no_stub_in_any_language() -> None:
    deep = "(" * HUGE + "1" + ")" * HUGE
    sources = {
        "a.rs": ("fn f() -> i32 { ", ("+".join(["1"] * 20_000), deep)),
        "a.go": ("package a\nfunc f() int { return ", ("+".join(["1"] * 20_000), deep)),
        "a.js": ("export function f() { return ", ("+".join(["1"] * 20_000), deep)),
    }
    for path, (head, bodies) in sources.items():
        for body in bodies:
            (fault,) = toolchain_of(path).stub_faults({}, {path: f"{head}{body} }}\n"}, [Symbol(path, "f")])
            assert "gives f a body that is more than" in str(fault), fault


@pytest.mark.broad
def test_an_unreadable_script_proves_nothing() -> None:
    source = nasty("a.js", 20_000)["functions"]
    known = Sources(frozenset({"a.js"}), {"a.js": source})
    assert known.functions_named("a.js", "f") == ()
    assert known.is_bare("a.js", 1, 30_000), "what a failure looks at is not known"
    assert known.error_in("a.js") == 0


PROJECT = {
    "greet.py": GREET,
    "tests/test_greet.py": "from greet import greet\n\n\ndef test_greets():\n    assert greet('A') == 'Hello, A!'\n",
    "pyproject.toml": BARE_PYTEST + 'pythonpath = ["."]\ntestpaths = ["tests"]\n',
    **TRACKER,
}
NEW_TEST = "from farewell import bye\n\n\ndef test_says_good_bye():\n    assert bye('Ada') == 'Bye, Ada!'\n"
BYE = "def bye(name):\n    return f'Bye, {name}!'\n"


@pytest.mark.parametrize("table", [TERMS, SUMS], ids=["3000 terms", "100000 terms"])
@pytest.mark.broad
def test_a_run_in_which_make_hands_in_such_a_source_goes_on(tmp_path: Path, table: str) -> None:
    project = make_project(tmp_path, PROJECT)
    project.use_script(answers(PROJECT, {"tests/test_farewell.py": NEW_TEST}, {"farewell.py": BYE, "table.py": table}))

    # on its way it ends once, right after the source came, so that a new driver reads it as well
    assert die_at(project, "after journal dispatch_finished", 7, "run", "GAL-1") == KILLED
    document = project.document("resume", "GAL-1")

    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document
    assert "table.py" in project.files_at("work")
