"""One real run per project; each test in it is one line of the classification table (matrix 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.classify import classify, classify_collection
from pipeline.judge.evidence.observation import Ended, RunState
from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.testing.languages.protocol import Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_classes import Classified, Context


pytestmark = pytest.mark.slow

PROJECT = {
    "pyproject.toml": """
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        pythonpath = ["src"]
        addopts = "-x -q -q --strict-markers --cov=pkg --cov-fail-under=99"
        filterwarnings = ["error"]
        asyncio_mode = "strict"
        asyncio_default_fixture_loop_scope = "function"
        """,
    "src/pkg/__init__.py": "",
    "src/pkg/core.py": """
        from dataclasses import dataclass

        VERSION = "1"

        def greet(name):
            return "hi " + name

        def boom(name):
            raise KeyError(name)

        def stubbed(name):
            raise NotImplementedError

        def unfinished():
            raise NotImplementedError

        def lazily():
            import pkg.absent

        @dataclass
        class Greeter:
            name: str

            def hello(self):
                return None

            def shout(self):
                raise NotImplementedError("later")
        """,
    "conftest.py": "print('a conftest that prints')\n",
    "tests/helpers.py": """
        def check(text):
            assert text == "hello"
        """,
    "tests/test_old.py": """
        import pytest

        def test_old():
            assert True

        @pytest.mark.xfail(strict=True)
        def test_stale():
            assert True

        @pytest.mark.xfail
        def test_tolerated():
            assert True
        """,
}

NEW_TESTS = """
    import asyncio
    import importlib
    import subprocess
    import sys
    import unittest
    from pathlib import Path
    from unittest import mock

    import pytest

    from pkg import core
    from pkg.core import Greeter, boom, greet, lazily, stubbed, unfinished

    class Gone:
        pass

    @pytest.fixture(scope="module")
    def greeting():
        return greet("you")

    @pytest.fixture
    def broken_setup():
        boom("setup")

    @pytest.fixture
    def broken_teardown():
        yield
        boom("teardown")

    def test_assertion():
        assert greet("you") == "hello you"

    def test_assertion_about_a_constant():
        assert core.VERSION == "2"

    def test_assertion_about_a_file():
        assert "license" in Path("pyproject.toml").read_text()

    def test_assertion_about_a_process():
        done = subprocess.run([sys.executable, "-c", "raise SystemExit(3)"])
        assert done.returncode == 0

    def test_assertion_in_a_helper():
        sys.path.insert(0, str(Path(__file__).parent))
        helpers = importlib.import_module("helpers")
        helpers.check(greet("you"))

    def test_assertion_of_a_mock():
        made = mock.Mock()
        greet("you")
        made.assert_called_once_with(1)

    def test_assertion_through_a_shared_fixture(greeting):
        assert greeting == "hello"

    def test_assertion_through_a_shared_fixture_again(greeting):
        assert greeting == "hello again"

    def test_did_not_raise():
        with pytest.raises(ValueError):
            greet("")

    def test_wrong_exception_in_production():
        assert boom("x") == 1

    def test_wrong_exception_inside_raises():
        with pytest.raises(ValueError):
            boom("x")

    def test_wrong_exception_in_setup(broken_setup):
        pass

    def test_wrong_exception_in_teardown(broken_teardown):
        pass

    def test_wrong_exception_of_an_old_stub():
        unfinished()

    def test_wrong_exception_in_a_group():
        async def run():
            boom("x")
        with pytest.MonkeyPatch.context() as patch:
            raise_in_group(boom)

    def raise_in_group(call):
        try:
            call("x")
        except KeyError as error:
            raise ExceptionGroup("many", [error]) from None

    def test_stub():
        assert stubbed("x") == "y"

    def test_stub_of_a_method():
        assert Greeter("x").shout() == "y"

    def test_missing_attribute_of_the_module():
        assert core.farewell("x") == "bye x"

    def test_missing_method():
        assert Greeter("x").farewell() == "bye"

    def test_missing_import():
        from pkg.core import farewell

    def test_missing_module():
        from pkg.letters import write

    def test_missing_in_monkeypatch(monkeypatch):
        monkeypatch.setattr("pkg.core.farewell", None)

    def test_missing_in_mock():
        with mock.patch("pkg.core.farewell"):
            pass

    def test_new_argument():
        assert greet("x", polite=True) == "dear x"

    def test_new_argument_of_init():
        assert Greeter("x", polite=True)

    def test_new_argument_of_another():
        assert boom("x", polite=True) == "dear x"

    def test_missing_method_of_none():
        assert Greeter("x").hello().farewell()

    def test_missing_attribute_not_ours():
        assert core.unheard_of

    def test_missing_import_not_ours():
        from pkg.core import unheard_of

    def test_first_party_module_nobody_adds():
        import pkg.unheard_of

    def test_production_imports_what_nobody_adds():
        lazily()

    def test_third_party_module():
        import surely_not_installed_here

    def test_bare_assert():
        assert False

    def test_bare_fail_with_an_import():
        core
        pytest.fail("not yet")

    def test_bare_raise():
        raise AssertionError("not yet")

    def test_bare_but_reached():
        try:
            greet("")
        except ValueError:
            return
        pytest.fail("no error")

    def test_assertion_about_nothing():
        expected = 1
        assert expected == 2

    def test_name_error():
        assert undefined_name

    def test_syntax_error_at_run_time():
        exec("def broken(:")

    def test_missing_fixture(no_such_fixture):
        pass

    def test_key_error_in_the_test():
        assert {}["x"]

    def test_raises_itself():
        raise NotImplementedError

    @pytest.mark.skip(reason="not today")
    def test_skipped():
        assert False

    def test_skipped_inside():
        greet("x")
        pytest.skip("later")

    @pytest.mark.xfail(reason="known")
    def test_xfailed():
        assert False

    def test_guard():
        assert greet("x")

    def test_unmarked():
        assert greet("x")

    @pytest.mark.parametrize("name", ["a", "b::c[0]"])
    def test_parametrised(name):
        assert greet(name) == "hi a"

    class TestInAClass:
        def test_method(self):
            assert greet("x") == "y"

    class TestUnit(unittest.TestCase):
        def test_unittest(self):
            self.assertEqual(greet("x"), "y")

        def test_unittest_bare(self):
            self.fail("not yet")

        @unittest.expectedFailure
        def test_unittest_expected(self):
            self.assertEqual(greet("x"), "y")

    @pytest.mark.asyncio
    async def test_async():
        await asyncio.sleep(0)
        assert greet("x") == "y"
    """

SYMBOLS = (
    Symbol("src/pkg/core.py", "stubbed"),
    Symbol("src/pkg/core.py", "Greeter.shout"),
    Symbol("src/pkg/core.py", "farewell"),
    Symbol("src/pkg/core.py", "greet", new=False),
    Symbol("src/pkg/core.py", "Greeter", new=False),
)
MISMATCH, MISSING = (RedClass.ASSERTION_MISMATCH, True), (RedClass.MISSING_BEHAVIOR, True)
BROKEN, STRUCTURAL = (RedClass.TEST_BROKEN, False), (RedClass.STRUCTURAL, False)
GROUPS = {
    MISMATCH: (
        "test_assertion test_assertion_about_a_constant test_assertion_about_a_file "
        "test_assertion_about_a_process test_assertion_in_a_helper test_assertion_of_a_mock "
        "test_assertion_through_a_shared_fixture test_assertion_through_a_shared_fixture_again "
        "test_did_not_raise test_wrong_exception_in_production test_wrong_exception_inside_raises "
        "test_wrong_exception_in_setup test_wrong_exception_in_teardown "
        "test_wrong_exception_of_an_old_stub test_wrong_exception_in_a_group test_bare_but_reached "
        "test_parametrised[b::c[0]] TestInAClass::test_method TestUnit::test_unittest test_async"
    ),
    MISSING: (
        "test_stub test_stub_of_a_method test_missing_attribute_of_the_module test_missing_method "
        "test_missing_import test_missing_module test_missing_in_monkeypatch test_missing_in_mock "
        "test_new_argument test_new_argument_of_init"
    ),
    BROKEN: (
        "test_new_argument_of_another test_missing_method_of_none test_missing_attribute_not_ours "
        "test_missing_import_not_ours test_first_party_module_nobody_adds "
        "test_production_imports_what_nobody_adds test_name_error test_syntax_error_at_run_time "
        "test_missing_fixture test_key_error_in_the_test test_raises_itself"
    ),
    (RedClass.ENV_BROKEN, False): "test_third_party_module",
    STRUCTURAL: (
        "test_bare_assert test_bare_fail_with_an_import test_bare_raise test_assertion_about_nothing "
        "TestUnit::test_unittest_bare"
    ),
    (RedClass.SKIPPED, False): "test_skipped test_skipped_inside",
    (RedClass.XFAILED, False): "test_xfailed TestUnit::test_unittest_expected",
    (RedClass.GUARD, True): "test_guard",
    (RedClass.PASSED_UNMARKED, False): "test_unmarked test_parametrised[a]",
}
TABLE = {name: found for found, names in GROUPS.items() for name in names.split()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observation, Context]:
    root = write(tmp_path_factory.mktemp("table"), PROJECT)
    existing = files_of(root)
    write(root, {"tests/test_new.py": NEW_TESTS})
    observation = measure(root, Selection(files=frozenset({"tests/test_new.py", "tests/test_old.py"})), trace=True)
    guard = {"tests/test_new.py::test_guard": "GUARD"}
    created = frozenset({"src/pkg/letters.py"})
    return observation, context_of(observation, existing, symbols=SYMBOLS, expected=guard, task_files=created)


@pytest.mark.parametrize("name", TABLE)
def test_each_line_of_the_table(run: tuple[Observation, Context], name: str) -> None:
    observation, context = run
    found = classify(observation.records[f"tests/test_new.py::{name}"], context)
    assert (found.cls, found.legal) == TABLE[name], found.message


def test_what_else_the_run_says(run: tuple[Observation, Context]) -> None:
    observation, _ = run
    seen = {entry.partition("::")[2] for entry in observation.records if entry.startswith("tests/test_new.py")}
    assert seen == set(TABLE)
    assert observation.state is RunState.COMPLETE, "options that stop early or demand coverage change nothing"
    assert all(record.ran for record in observation.records.values())
    assert observation.records["tests/test_old.py::test_stale"].outcome is Ended.STRICT_XPASS
    assert observation.records["tests/test_old.py::test_tolerated"].outcome is Ended.XPASSED
    record = observation.records["tests/test_new.py::test_parametrised[b::c[0]]"]
    assert record.function == "tests/test_new.py::test_parametrised"
    assert observation.modules["pkg.core"] == "src/pkg/core.py"
    assert observation.foreign_modules == ()


def test_a_package_without_init_is_the_projects_own_as_any_other(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        "firm/shop/cart.py": "class Cart:\n    pass\n",
        "redis/settings.conf": "",
        "tests/test_new.py": """
            import json
            import packaging

            from firm.shop import cart

            def test_missing_attribute():
                assert cart.total() == 0

            def test_missing_method():
                assert cart.Cart().total() == 0

            def test_missing_special_method():
                assert len(cart.Cart()) == 0

            def test_misspelt_name():
                from firm.shop.cart import Crat

            def test_misspelt_module():
                import firm.shop.crat

            def test_misspelt_package():
                import firm.shp

            def test_name_of_a_library():
                assert json.total()

            def test_name_of_a_package_that_is_installed():
                assert packaging.total()

            def test_package_that_is_not_installed():
                from redis import Redis
            """,
        "tests/json/more.py": "",
        "tests/packaging/more.py": "",
    }
    root = write(tmp_path, files)
    observation = measure(root, trace=True)
    symbols = (Symbol("firm/shop/cart.py", "total"), Symbol("firm/shop/cart.py", "Cart.__len__"))
    context = context_of(observation, files_of(root), symbols=symbols)
    found = {record.last_name: classify(record, context) for record in observation.records.values()}
    assert {name.removeprefix("test_"): (one.cls, one.legal) for name, one in found.items()} == {
        **dict.fromkeys(("missing_attribute", "missing_method", "missing_special_method"), MISSING),
        **dict.fromkeys(("misspelt_name", "misspelt_module", "misspelt_package"), BROKEN),
        **dict.fromkeys(("name_of_a_library", "name_of_a_package_that_is_installed"), BROKEN),
        "package_that_is_not_installed": (RedClass.ENV_BROKEN, False),
    }


def test_a_new_name_may_be_patched_wherever_it_is_to_be_but_not_in_what_is_not_the_projects(tmp_path: Path) -> None:
    targets = {
        "module": "core",
        "class": "core.Greeter",
        "object": "core.Greeter('x')",
        "function": "core.greet",
        "empty": "[]",
        "nothing": "None",
        "library": "json",
        "library_class": "json.JSONDecoder",
        "library_object": "json.JSONDecoder()",
    }
    forms = {
        "monkeypatch": "    monkeypatch.setattr({}, 'farewell', 1)",
        "mock": "    with mock.patch.object({}, 'farewell'): pass",
        "misspelt": "    monkeypatch.setattr({}, 'farewel', 1)",
    }
    tests = "".join(
        f"def test_{form}_{name}(monkeypatch):\n{line.format(target)}\n"
        for form, line in forms.items()
        for name, target in targets.items()
    )
    root = write(tmp_path, PROJECT)
    existing = files_of(root)
    write(root, {"tests/test_new.py": "import json\nfrom unittest import mock\nfrom pkg import core\n" + tests})
    observation = measure(root, Selection(files=frozenset({"tests/test_new.py"})), trace=True)
    context = context_of(observation, existing, symbols=SYMBOLS)
    seen = [record for record in observation.records.values() if record.path == "tests/test_new.py"]
    found = {record.last_name: classify(record, context) for record in seen}
    ours = {"monkeypatch_module", "mock_module"}
    ours |= {f"{form}_{name}" for form in forms for name in ("class", "object")}  # any new name of the task's class
    assert {name: (one.cls, one.legal) for name, one in found.items()} == {
        f"test_{form}_{name}": MISSING if f"{form}_{name}" in ours else BROKEN for form in forms for name in targets
    }


def _collect(tmp_path: Path, files: dict[str, str], **more: object) -> dict[str, Classified]:
    root = write(tmp_path, PROJECT)
    existing = files_of(root)
    write(root, files)
    observation = measure(root, Selection.nothing())
    context = context_of(observation, existing, symbols=SYMBOLS, **more)
    return {error.path: classify_collection(error, context) for error in observation.collection_errors}


def test_collection_errors_in_new_and_in_existing_files(tmp_path: Path) -> None:
    wanted = "from pkg.core import farewell\n\ndef test_bye():\n    assert farewell('x') == 'bye x'\n"
    found = _collect(
        tmp_path,
        {
            "tests/test_fresh.py": wanted,
            "tests/test_old.py": wanted,
            "tests/test_fresh_attribute.py": "from pkg import core\nBYE = core.farewell\n\ndef test_it(): assert BYE\n",
            "tests/test_unknown.py": "from pkg.core import unheard_of\n",
            "tests/test_syntax.py": "def test_x(:\n",
            "tests/test_name.py": "nobody_defined_this\n",
            "tests/test_third.py": "import surely_not_installed_here\n",
            "tests/test_module.py": "import pkg.unheard_of\n",
            "tests/test_raises.py": "from pkg.core import boom\nboom('x')\n",
        },
    )
    assert {path: (one.cls, one.legal) for path, one in found.items()} == {
        "tests/test_fresh.py": MISSING,
        "tests/test_fresh_attribute.py": MISSING,
        "tests/test_old.py": (RedClass.IMPORT_HIDES_TESTS, False),
        "tests/test_unknown.py": BROKEN,
        "tests/test_syntax.py": BROKEN,
        "tests/test_name.py": BROKEN,
        "tests/test_third.py": (RedClass.ENV_BROKEN, False),
        "tests/test_module.py": BROKEN,
        "tests/test_raises.py": BROKEN,
    }
    assert "inside the new test" in found["tests/test_old.py"].message


@pytest.mark.broad
def test_a_conftest_that_cannot_be_imported_is_a_broken_test_and_not_a_broken_environment(tmp_path: Path) -> None:
    found = _collect(tmp_path, {"conftest.py": "from pkg.core import unheard_of\n"})
    assert found["conftest.py"].cls is RedClass.TEST_BROKEN
