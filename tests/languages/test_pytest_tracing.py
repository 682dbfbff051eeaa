"""What a traced test reaches: each function that it entered, by whichever means this Python tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import measure, write

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.evidence.observation import Reach

PROJECT = {
    "one.py": "def same():\n    return 1\n",
    "two.py": "def same():\n    return 1\n",
    "core.py": """
        def counted():
            yield 1
            yield 2

        def hot(n):
            return n

        class Thing:
            def part(self):
                return [hot(n) for n in range(1000)]

        def slowly():
            return hot(1)
        """,
    "conftest.py": """
        import pytest
        from core import Thing, counted

        @pytest.fixture(scope="session")
        def thing():
            return Thing().part()

        @pytest.fixture(scope="session")
        def running():
            made = counted()
            next(made)
            return made
        """,
    "test_it.py": """
        import threading
        import core, one, two

        def test_first(): assert one.same() == 1
        def test_second(): assert two.same() == 1
        def test_third(): assert one.same() == 1
        def test_uses(thing): pass
        def test_uses_too(thing): pass
        def test_resumes(running): assert next(running) == 2
        def test_in_a_thread():
            thread = threading.Thread(target=core.slowly)
            thread.start()
            thread.join()
        def test_nothing(): pass
        def test_last(): pass  # shared fixtures end here
        """,
}
SHARED = {"core.py::Thing.part", "core.py::hot", "conftest.py::thing"}
REACHED = {
    "test_first": {"one.py::same"},
    "test_second": {"two.py::same"},
    "test_third": {"one.py::same"},
    "test_uses": SHARED,
    "test_uses_too": SHARED,
    "test_resumes": {"core.py::counted", "conftest.py::running"},
    "test_in_a_thread": {"core.py::slowly", "core.py::hot"},
    "test_nothing": set[str](),
}
OTHER_PROFILER = """
import sys

if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "another")
"""


@pytest.mark.broad(but_first=1)
@pytest.mark.slow
@pytest.mark.parametrize("taken", [False, True], ids=["alone", "beside another profiler"])
def test_a_test_reaches_what_it_enters_and_no_more(tmp_path: Path, taken: bool) -> None:
    write(tmp_path, PROJECT)
    if taken:  # a plugin of the project's that is loaded before ours
        write(tmp_path, {"early.py": OTHER_PROFILER, "pytest.ini": "[pytest]\naddopts = -p early\npythonpath = .\n"})
    observation = measure(tmp_path, trace=True)
    reach: dict[str, Reach] = {
        entry.partition("::")[2]: record.reach for entry, record in observation.records.items() if record.reach
    }
    for test, expected in REACHED.items():
        entered = {name for name in reach[test].functions if "<" not in name} - {f"test_it.py::{test}"}
        assert entered == expected, test
        assert set(reach[test].references) <= {"core.py", "one.py", "two.py"}
    assert reach["test_second"].references == ("two.py",)


def test_a_test_that_enters_very_much_is_seen_in_each_file_that_it_enters_or_opens(tmp_path: Path) -> None:
    many = "".join(f"def f{number}(): return {number}\n" for number in range(400))
    files = {
        "a.py": many,
        "z.py": "def late(): return 1\n",
        **{f"data/{number}.txt": "" for number in range(400)},
        "zero.txt": "",
        "test_it.py": """
            from pathlib import Path
            import a, z

            def test_it():
                for number in range(400):
                    getattr(a, f"f{number}")()
                    Path("data", f"{number}.txt").read_text()
                assert z.late() == 1 and not Path("zero.txt").read_text()
            """,
    }
    (record,) = measure(write(tmp_path, files), trace=True).records.values()
    assert record.reach is not None
    assert {"a.py::f0", "z.py::late", "test_it.py::test_it"} < set(record.reach.functions)
    assert len(record.reach.functions) < 400
    assert {"data/0.txt", "zero.txt"} < set(record.reach.doors)
