"""Which tests a change touches: what sources of four languages mention, what traced tests entered, and the order."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.judge.evidence.impact import Graph, Subject, distances, impacted
from pipeline.judge.evidence.observation import Reach, TestRecord
from pipeline.testing.languages.sources.mentions import mention_graph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


def ids_of(changed: Collection[str], graph: Graph, *paths: str, **reach: Reach) -> tuple[str, ...]:
    """Return what is impacted of one test in each file; of `x_py=...` that of `x.py` was traced."""
    records = [TestRecord(id=f"{path}::it", function=f"{path}::it", path=path, region_sha256="") for path in paths]
    traced = {f"{name.removesuffix('_py')}.py::it": entered for name, entered in reach.items()}
    return impacted(changed, graph, records, traced)


def uses(sources: Mapping[str, str], path: str) -> set[str]:
    return set(mention_graph(sources)[path])


# --- Python


PYTHON = {
    "src/shop/__init__.py": "from shop.cart import Cart\nfrom .prices import *\n",
    "src/shop/cart.py": "from . import tax\n\nclass Cart: ...\n",
    "src/shop/tax.py": "RATE = 1\n",
    "src/shop/prices.py": "from .money.units import CENT\n",
    "src/shop/money/__init__.py": "",
    "src/shop/money/units.py": "CENT = 1\n",
    "src/shop/plugin.py": "",
    "src/shop/loader.py": (
        "import importlib\nimportlib.import_module('shop.plugin')\nimportlib.import_module('.tax', __package__)\n"
    ),
    "tests/conftest.py": "pytest_plugins = ['tests.fixtures']\n",
    "tests/fixtures.py": "import shop.prices as p\n",
    "tests/helpers.py": "import shop.cart\n",
    "tests/unit/conftest.py": "",
    "tests/unit/test_cart.py": "from shop import Cart\n",
    "tests/unit/test_patched.py": (
        "from unittest import mock\n\ndef test_it():\n    with mock.patch('shop.loader.importlib'): ...\n"
    ),
    "tests/test_star.py": "from shop import CENT\nimport helpers\n",
}


_STAR = {"src/shop/__init__.py", "src/shop/prices.py", "tests/helpers.py"}


def test_a_private_module_is_mentioned_with_its_underscore() -> None:
    sources = {
        "src/shop/__init__.py": "from ._cart import Cart\n",
        "src/shop/_cart.py": "class Cart: ...\n",
        "tests/test_it.py": "from shop import Cart\n\ndef test_a_cart(): ...\n",
        "tests/test_other.py": "def test_a_cart(): ...\n",
    }
    assert uses(sources, "tests/test_it.py") == {"src/shop/__init__.py", "src/shop/_cart.py"}
    assert uses(sources, "tests/test_other.py") == set()


def test_of_a_package_that_is_where_a_name_comes_from() -> None:
    assert uses(PYTHON, "tests/unit/test_cart.py").isdisjoint({"src/shop/tax.py", "src/shop/money/units.py"})


def test_only_what_stands_for_its_folder_passes_on() -> None:
    # else, step by step, each file would use nearly every other one
    graph = mention_graph(PYTHON)
    assert "src/shop/money/units.py" not in graph["tests/test_star.py"]
    assert distances(graph, {"src/shop/money/units.py"})["tests/test_star.py"] == 2, "by way of prices.py"


def test_a_python_test_uses_each_conftest_above_it() -> None:
    assert {"tests/conftest.py", "tests/unit/conftest.py"} <= uses(PYTHON, "tests/unit/test_cart.py")
    assert uses(PYTHON, "tests/unit/conftest.py") == {"tests/conftest.py"}


def test_nearer_tests_come_first_and_others_not_at_all() -> None:
    tests = ("tests/unit/test_patched.py", "tests/unit/test_cart.py", "tests/test_star.py", "tests/test_none.py")
    sources = {**PYTHON, "tests/test_none.py": "import json\n", "tests/conftest.py": "", "src/shop/__init__.py": ""}
    graph = mention_graph(sources)
    assert ids_of({"src/shop/tax.py"}, graph, *tests) == ("tests/unit/test_patched.py::it", "tests/test_star.py::it")
    by_name_too = ("tests/test_star.py::it", "tests/unit/test_cart.py::it")
    assert ids_of({"src/shop/cart.py"}, graph, *tests) == by_name_too


def test_what_cannot_be_read_is_known_by_its_name() -> None:
    tests = ("test_a.py", "test_b.py", "test_core.py")
    sources = {"core.py": "", "test_a.py": "", "test_b.py": "import core\n", "test_core.py": "def ("}
    assert ids_of({"core.py"}, mention_graph(sources), *tests) == ("test_b.py::it", "test_core.py::it")
    assert ids_of({"core.py"}, {}, *tests) == ("test_core.py::it",)
    assert ids_of({"core.json"}, mention_graph(sources), *tests) == ("test_core.py::it",)
    assert ids_of({"data.json"}, mention_graph(sources), *tests) == ()


@pytest.mark.parametrize(
    ("changed", "test", "named"),
    [
        ("shop/prices.py", "tests/test_prices.py", True),
        ("shop/prices.py", "tests/prices/test_it.py", True),
        ("shop/_prices.py", "tests/TestPRICES.py", False),
        ("shop/_prices.py", "tests/test-Prices.py", True),
        ("shop/net.ts", "tests/internet.test.ts", False),
        ("shop/part1.py", "tests/test_part10.py", False),
        ("shop/__init__.py", "tests/test_shop.py", True),
        ("src/index.js", "test/src.test.js", False),
        ("shop/a+b.py", "tests/test_a+b.py", True),
    ],
)
def test_a_name_is_a_word_of_the_path(changed: str, test: str, named: bool) -> None:
    assert ids_of({changed}, {}, test) == ((f"{test}::it",) if named else ())


def test_a_name_is_the_last_thing_that_counts() -> None:
    sources = {"shop/prices.py": "", "tests/other.py": "import shop.prices\n", "tests/test_prices.py": ""}
    tests = ("tests/test_prices.py", "tests/test_core.py", "tests/other.py")
    assert ids_of({"shop/prices.py"}, mention_graph(sources), *tests) == (
        "tests/other.py::it",
        "tests/test_prices.py::it",
    )


def test_what_traced_tests_entered_comes_before_imports() -> None:
    sources = {"core.py": "", "test_imports.py": "import core\n"}
    reach = {
        "test_door_py": Reach(doors=("core.py",)),
        "test_entered_py": Reach(functions=("core.py::changed", "util.py::f")),
        "test_far_py": Reach(functions=("util.py::f",), doors=("process",)),
    }
    tests = ("test_imports.py", "test_far.py", "test_door.py", "test_entered.py", "core.py")
    found = ids_of({"core.py"}, mention_graph(sources), *tests, **reach)
    assert found == ("test_entered.py::it", "core.py::it", "test_door.py::it", "test_imports.py::it")


# --- Rust


CRATES = {
    "Cargo.toml": '[workspace]\nmembers = ["core-lib", "app"]\n',
    "core-lib/Cargo.toml": '[package]\nname = "core-lib"\n',
    "core-lib/src/lib.rs": (
        "mod parse;\npub mod deep;\nmod unused;\npub use parse::Parser as Reader;\npub use deep::*;\n"
    ),
    "core-lib/src/parse.rs": (
        "use crate::deep::inner::helper;\npub struct Parser;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"
    ),
    "core-lib/src/deep/mod.rs": "pub mod inner;\npub use self::inner::Thing;\n",
    "core-lib/src/deep/inner.rs": "pub struct Thing;\npub fn helper() {}\n",
    "core-lib/src/unused.rs": "",
    "core-lib/tests/reads.rs": "mod common;\nuse core_lib::Reader;\n",
    "core-lib/tests/common/mod.rs": "",
    "core-lib/tests/macros.rs": "#[test]\nfn it() { assert_eq!(core_lib::unused::nothing(1), 2); }\n",
    "app/Cargo.toml": '[package]\nname = "app"\n[[bin]]\nname = "app"\npath = "bin/start.rs"\n',
    "app/bin/start.rs": (
        '#[path = "../shared.rs"]\nmod other;\nuse core_lib::{deep::Thing, self};\nfn main() { other::run() }\n'
    ),
    "app/shared.rs": "pub fn run() {}\n",
}


# --- JavaScript and TypeScript


SCRIPTS = {
    "package.json": '{"name": "shop", "main": "./lib/entry.js"}',
    "lib/entry.js": "export * from './cart.js';\nexport { default } from './tax';\n",
    "lib/cart.ts": (
        "import type { Price } from './types';\nimport units = require('./units');\nexport const x: Price = 1;\n"
    ),
    "lib/types.d.ts": "export type Price = number;\n",
    "lib/types.ts": "export type Price = number;\n",
    "lib/units/index.mts": "",
    "lib/tax.jsx": "const lazy = () => import('./late.mjs');\nexport default <b/>;\n",
    "lib/late.mjs": "",
    "packages/ui/package.json": '{"name": "@shop/ui", "exports": {".": {"import": "./src/main.tsx"}}}',
    "packages/ui/src/main.tsx": "export const A = () => <div>{1}</div>;\n",
    "packages/ui/src/button.tsx": "",
    "test/cart.test.js": "jest.mock('../lib/late.mjs');\nconst { x } = require('shop');\nrequire('fs');\n",
    "test/ui.test.ts": "import { A } from '@shop/ui';\nimport '@shop/ui/button';\nimport data from './data.json';\n",
    "test/data.json": "{}",
}


# --- Go


GO = {
    "go.mod": "// ours\nmodule example.org/shop\n\ngo 1.21\n",
    "shop.go": 'package shop\n\nimport "example.org/shop/internal/tax"\n',
    "shop_test.go": 'package shop_test\n\nimport (\n\t"testing"\n\t. "example.org/shop"\n)\n',
    "internal/tax/tax.go": "package tax\n",
    "internal/tax/rates.go": "package tax\n",
    "internal/tax/tax_test.go": 'package tax\n\nimport "testing"\n',
    "tool/go.mod": "module example.org/shop/tool\n",
    "tool/main.go": 'package main\n\nimport alias "example.org/shop"\n',
    "tool/sub/sub.go": 'package sub\n\nimport "example.org/shop/tool"\n',
}


@pytest.mark.parametrize(
    ("sources", "path", "expected"),
    [
        (PYTHON, "src/shop/__init__.py", {"src/shop/cart.py", "src/shop/prices.py"}),
        (PYTHON, "src/shop/cart.py", {"src/shop/__init__.py", "src/shop/tax.py"}),
        (
            PYTHON,
            "src/shop/prices.py",
            {"src/shop/__init__.py", "src/shop/money/__init__.py", "src/shop/money/units.py"},
        ),
        (PYTHON, "src/shop/loader.py", {"src/shop/__init__.py", "src/shop/plugin.py", "src/shop/tax.py"}),
        (PYTHON, "tests/conftest.py", {"tests/fixtures.py"}),
        (PYTHON, "tests/unit/test_cart.py", {"src/shop/__init__.py", "src/shop/cart.py"}),
        (PYTHON, "tests/unit/test_patched.py", {"src/shop/__init__.py", "src/shop/loader.py"}),
        (PYTHON, "tests/test_star.py", _STAR),
        (
            CRATES,
            "core-lib/src/lib.rs",
            {"core-lib/src/parse.rs", "core-lib/src/deep/mod.rs", "core-lib/src/unused.rs"},
        ),
        (CRATES, "core-lib/src/parse.rs", {"core-lib/src/deep/inner.rs"}),
        (CRATES, "core-lib/src/deep/mod.rs", {"core-lib/src/deep/inner.rs"}),
        (CRATES, "core-lib/src/deep/inner.rs", set[str]()),
        (
            CRATES,
            "core-lib/tests/reads.rs",
            {
                "core-lib/tests/common/mod.rs",
                "core-lib/src/lib.rs",
                "core-lib/src/parse.rs",
                "core-lib/src/deep/mod.rs",
            },
        ),
        (CRATES, "core-lib/tests/macros.rs", {"core-lib/src/unused.rs"}),
        (SCRIPTS, "lib/entry.js", {"lib/cart.ts", "lib/tax.jsx"}),
        (SCRIPTS, "lib/cart.ts", {"lib/types.ts", "lib/units/index.mts"}),
        (SCRIPTS, "lib/tax.jsx", {"lib/late.mjs"}),
        (SCRIPTS, "test/cart.test.js", {"lib/late.mjs"}),
        (SCRIPTS, "test/ui.test.ts", {"packages/ui/src/main.tsx", "packages/ui/src/button.tsx"}),
        (GO, "shop.go", {"internal/tax/tax.go", "internal/tax/rates.go"}),
        (GO, "shop_test.go", {"shop.go"}),
        (GO, "internal/tax/tax_test.go", {"internal/tax/tax.go", "internal/tax/rates.go"}),
        (GO, "internal/tax/tax.go", {"internal/tax/rates.go"}),
        (GO, "tool/main.go", {"shop.go"}),
        (GO, "tool/sub/sub.go", {"tool/main.go"}),
    ],
)
def test_what_a_file_mentions_leads_to_files(sources: dict[str, str], path: str, expected: set[str]) -> None:
    assert uses(sources, path) >= expected


# --- properties


MODULES = ["alpha", "beta", "pack.one", "pack.two", "pack.sub.three"]
STYLES = st.sampled_from(
    ["import {0}", "from {1} import {2}", "import {0} as other", "import importlib\nimportlib.import_module('{0}')"]
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), STYLES), max_size=8), st.sampled_from(MODULES))
def test_whatever_the_interpreter_loads_is_in_the_graph(
    tmp_path_factory: pytest.TempPathFactory, imports: list[tuple[int, int, str]], start: str
) -> None:
    root = tmp_path_factory.mktemp("modules")
    sources = {"pack/__init__.py": "from .one import VALUE\n", "pack/sub/__init__.py": "from .. import two\n"}
    for place, module in enumerate(MODULES):
        lines = ["VALUE = 1"]
        for source, target, style in imports:
            if source == place and target > source:  # no cycles: the interpreter would stop at some
                parent, _, name = MODULES[target].rpartition(".")
                lines.append(style.format(MODULES[target], parent, name) if parent else f"import {name}")
        sources[f"{module.replace('.', '/')}.py"] = "\n".join(lines) + "\n"
    for path, text in sources.items():
        _write(root / path, text)
    say = "print(*(getattr(m, '__file__', None) for m in list(sys.modules.values())), sep='\\n')"
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r}); import {start}; {say}"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    loaded = {name for name in sources if str(root / name) in said}
    graph = mention_graph(sources)
    first = f"{start.replace('.', '/')}.py"
    assert first in loaded
    for path in loaded - {first}:
        assert first in distances(graph, {path}), (path, sources)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CARTS = """from shop import Cart


def test_adds():
    assert Cart().add(1).total == 1


def test_empty():
    assert Cart().total == 0


class TestDiscounts:
    def test_of_ten(self):
        cart = Cart().add(10)
        assert cart.apply_discount(5) == 5

    def test_of_none(self):
        assert Cart().add(10).total == 10
"""


def test_what_a_test_says_of_the_subject_brings_it_to_the_front() -> None:
    """All of them import the file; only one calls what is changed, and one more has it in its name."""
    graph = {"shop.py": frozenset[str](), **{f"tests/test_{n}.py": frozenset({"shop.py"}) for n in ("a", "b", "z")}}
    ids = [f"tests/test_a.py::test_{n}" for n in range(40)] + [
        "tests/test_b.py::test_adds", "tests/test_b.py::test_empty", "tests/test_b.py::TestDiscounts::test_of_ten",
        "tests/test_b.py::TestDiscounts::test_of_none", "tests/test_z.py::test_apply_discount_rounds[1]",
    ]  # fmt: skip
    records = [TestRecord(id=i, function=i.split("[")[0], path=i.split("::")[0], region_sha256="") for i in ids]
    texts = {"tests/test_a.py": "import shop\n", "tests/test_b.py": CARTS}
    found = impacted({"shop.py"}, graph, records, {}, Subject(frozenset({"apply_discount"}), texts))
    assert set(found[:2]) == {ids[42], ids[44]}
    assert found[2] == ids[43], "a part of the name stands in its own"
    assert found[3:] == tuple(entry for entry in ids if entry not in found[:3])
    assert impacted({"shop.py"}, graph, records, {}) == tuple(ids)
    beside = impacted({"shop.py", "tests/test_a.py"}, graph, records, {}, Subject(frozenset({"apply_discount"}), texts))
    assert set(beside[:40]) == set(ids[:40]), "tests beside those that were written come first, whatever others say"


def test_a_rare_name_says_more_than_a_common_one() -> None:
    text = "def test_a():\n    load(); save()\n\ndef test_b():\n    load()\n\ndef test_c():\n    load(); rare()\n"
    records = [
        TestRecord(id=f"t.py::{n}", function=f"t.py::{n}", path="t.py", region_sha256="")
        for n in ("test_a", "test_b", "test_c")
    ]
    subject = Subject(frozenset({"load", "rare"}), {"t.py": text})
    assert impacted({"x.py"}, {"t.py": frozenset({"x.py"})}, records, {}, subject)[0] == "t.py::test_c"


def test_a_file_that_is_called_like_the_changed_one_comes_before_its_equals() -> None:
    graph: Graph = {path: frozenset({"src/cart.py"}) for path in ("tests/test_a.py", "tests/test_cart.py")}
    assert ids_of({"src/cart.py"}, graph, *graph)[0] == "tests/test_cart.py::it"


@pytest.mark.parametrize(
    ("path", "text", "function"),
    [
        ("a.test.js", "it('adds', () => { f(); });\nit('applies discount', () => { discount(); });\n",
         "a.test.js::applies discount"),
        ("src/lib.rs", "fn discount() {}\nmod t {\n fn adds() { f() }\n fn ten() { discount() }\n}\n",
         "src/lib.rs::t::ten"),
        ("a_test.go", "func TestAdds(t *testing.T) { f() }\nfunc TestTen(t *testing.T) { discount() }\n",
         "a_test.go::TestTen"),
    ],
)  # fmt: skip
def test_the_text_of_a_test_is_found_in_any_language(path: str, text: str, function: str) -> None:
    other = {"a.test.js": "adds", "src/lib.rs": "t::adds", "a_test.go": "TestAdds"}[path]
    records = [
        TestRecord(id=name, function=name, path=path, region_sha256="") for name in (f"{path}::{other}", function)
    ]
    found = impacted({path}, {}, records, {}, Subject(frozenset({"discount"}), {path: text}))
    assert found[0] == function
