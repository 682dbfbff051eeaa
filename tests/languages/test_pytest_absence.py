"""A test of something's absence fails today since the thing is there: that is RED, for the right reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import RedClass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_classes import Classified

pytestmark = pytest.mark.slow

PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["."]\n',
    "bye.py": """
        def bye(name):
            return name

        class Greeter:
            def old(self):
                return self

        if __name__ == "__main__":
            print("commands: bye")
        """,
    "cli.py": """
        import argparse

        def main(argv):
            parser = argparse.ArgumentParser()
            parser.add_subparsers().add_parser("bye")
            parser.parse_args(argv)
        """,
    "tests/test_gone.py": """
        import importlib, importlib.util, os, pathlib, subprocess, sys
        import pytest

        def test_a_raises_import_module():
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module("bye")

        def test_b_raises_import():
            with pytest.raises(ImportError):
                import bye

        def test_c_raises_from():
            with pytest.raises(ImportError):
                from bye import bye

        def test_d_hasattr():
            import bye
            assert not hasattr(bye, "bye")

        def test_e_spec():
            assert importlib.util.find_spec("bye") is None

        def test_f_try():
            try:
                import bye
            except ImportError:
                return
            assert False, "bye is there"

        def test_g_file():
            assert not os.path.exists("bye.py")

        def test_h_raises_attr():
            import bye
            with pytest.raises(AttributeError):
                bye.bye

        def test_i_cli():
            done = subprocess.run([sys.executable, "bye.py"], capture_output=True, text=True)
            assert "bye" not in done.stdout

        def test_j_cli_main():
            import cli
            with pytest.raises(SystemExit):
                cli.main(["bye"])

        def test_k_hasattr_cls():
            from bye import Greeter
            assert not hasattr(Greeter, "old")

        def test_l_path():
            assert not (pathlib.Path(__file__).parent.parent / "bye.py").exists()

        def test_m_pytest_fail():
            try:
                importlib.import_module("bye")
            except ModuleNotFoundError:
                pass
            else:
                pytest.fail("bye can be imported")

        def test_n_dir():
            mod = importlib.import_module("bye")
            assert "bye" not in dir(mod)

        def test_o_getattr():
            mod = importlib.import_module("bye")
            assert getattr(mod, "bye", None) is None

        def test_p_sub_import():
            code = subprocess.run([sys.executable, "-c", "import bye"]).returncode
            assert code != 0

        def test_q_nothing():
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module("json")

        def test_r_nothing():
            assert 1 == 2  # bye.py
        """,
}  # fmt: skip
NOTHING = {"test_q_nothing", "test_r_nothing"}
OF_A_FILE = {"test_f_try", "test_g_file", "test_l_path", "test_m_pytest_fail"}
"""Says in a way that tells nothing by itself that a file is there: enough where the task takes that file away."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observation, Path]:
    root = write(tmp_path_factory.mktemp("absence") / "project", PROJECT)
    return measure(root, trace=True), root


def found(seen: tuple[Observation, Path], removed: frozenset[str]) -> Mapping[str, Classified]:
    observation, root = seen
    context = context_of(observation, files_of(root) - {"tests/test_gone.py"}, removed=removed)
    return {entry.rpartition("::")[2]: classify(record, context) for entry, record in observation.records.items()}


def test_that_something_is_still_there_is_red_however_it_is_looked_for(seen: tuple[Observation, Path]) -> None:
    classes = found(seen, frozenset({"bye.py"}))
    assert len(classes) == 18
    assert {name for name, one in classes.items() if not one.legal} == NOTHING
    assert {one.cls for name, one in classes.items() if name not in NOTHING} == {RedClass.ASSERTION_MISMATCH}


def test_a_bare_failure_and_a_look_at_a_file_say_nothing_where_the_file_stays(seen: tuple[Observation, Path]) -> None:
    classes = found(seen, frozenset())
    assert {name for name, one in classes.items() if not one.legal} == NOTHING | OF_A_FILE


def test_a_library_that_a_test_keeps_away_shows_what_the_code_does_without_it(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\npythonpath = ["."]\n',
        "drawing.py": "def draw():\n    import pygments\n    return pygments\n",
        "tests/test_drawing.py": """
            import sys
            import pytest
            from drawing import draw

            def test_it_ends_with_a_word_and_no_traceback(monkeypatch):
                monkeypatch.setitem(sys.modules, "pygments", None)
                with pytest.raises(SystemExit):
                    draw()
            """,
    }
    root = write(tmp_path / "project", files)
    observation = measure(root, trace=True)
    (record,) = observation.records.values()
    judged = classify(record, context_of(observation, files_of(root) - {"tests/test_drawing.py"}))
    assert (judged.cls, judged.legal) == (RedClass.ASSERTION_MISMATCH, True), judged
