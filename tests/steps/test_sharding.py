"""A whole measurement in parts shows what one in one piece shows, and a part alone condemns nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import anyio
import pytest
from evidence.observed import MISMATCH, observed
from hypothesis import given
from hypothesis import strategies as st
from kit import make_project
from languages.direct import measure as measure_directly
from languages.direct import write
from steps.probed import PYPROJECT, tree_of, without_run

from pipeline.boxes.nobox import NoBox
from pipeline.config.model import Config
from pipeline.evidence import shards
from pipeline.evidence.freeze import canonical
from pipeline.evidence.observation import CollectionError, Ended, Observation, RunState
from pipeline.languages.protocol import Selection
from pipeline.languages.runners import durations
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.process import BoxError, Command, Completed

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path


# --- which files belong together


FILES = st.frozensets(st.text("abc", min_size=1, max_size=4), max_size=12)
SECONDS = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.floats(0, 100))


@pytest.mark.broad
@given(FILES, SECONDS, st.integers(1, 6))
def test_a_plan_has_each_file_once_and_parts_of_one_length(
    files: frozenset[str], seconds: dict[str, float], parts: int
) -> None:
    planned = shards.plan(files, seconds, parts)
    assert sorted(path for part in planned for path in part) == sorted(files)
    assert planned == shards.plan(sorted(files, reverse=True), seconds, parts)
    assert len(planned) == max(1, min(parts, len(files)))
    assert not files or all(planned)
    known = [value for value in seconds.values() if value > 0]
    weights = {path: seconds.get(path, sum(known) / len(known) if known else 1.0) for path in files}
    lengths = [sum(weights[path] for path in part) for part in planned]
    assert max(lengths) - min(lengths) <= max(weights.values(), default=0) + 1e-6


# --- the parts put together


PROJECT = {
    "core.py": "def answer():\n    '''\n    >>> answer()\n    42\n    '''\n    return 42\n",
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef given(): return 42\n",
    "tests/test_a.py": (
        "import pytest\nfrom core import answer\n\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n): assert answer() == n\n"
    ),
    "tests/test_b.py": "import os, pytest\n\ndef test_dies(): os._exit(3)\n\ndef test_b(given): assert given == 42\n",
    "tests/test_c.py": (
        "import pytest\n\n@pytest.mark.xfail(strict=True)\ndef test_c(): assert False\n\n"
        "def test_no(): pytest.skip('no')\n"
    ),
    "tests/test_d.py": "import missing\n\ndef test_d(): pass\n",
    "pytest.ini": "[pytest]\naddopts = --doctest-modules --ignore=setup.py\npythonpath = .\n",
}  # fmt: skip
PARTED = ("core.py", "tests/test_a.py", "tests/test_b.py", "tests/test_c.py")


def partitions(files: tuple[str, ...]) -> list[list[frozenset[str]]]:
    if not files:
        return [[]]
    first, found = files[0], list[list[frozenset[str]]]()
    for smaller in partitions(files[1:]):
        found.append([frozenset({first}), *smaller])
        found += [[*smaller[:at], smaller[at] | {first}, *smaller[at + 1 :]] for at in range(len(smaller))]
    return found


@pytest.mark.broad
def test_every_way_to_part_a_run_shows_what_the_whole_shows(tmp_path: Path) -> None:
    root = write(tmp_path, PROJECT)
    whole = measure_directly(root)

    @cache
    def part(files: frozenset[str]) -> Observation:
        return measure_directly(root, Selection(files=files))

    assert whole.state is RunState.CRASHED
    assert len(whole.collection_errors) == 1
    assert len(partitions(PARTED)) == 15
    for parted in partitions(PARTED):
        together = shards.merged([(files, part(files)) for files in parted], command=whole.command)
        assert as_facts(together) == as_facts(whole), parted


def as_facts(observation: Observation) -> str:
    return canonical(observation.model_copy(update={"tail": ""}))


def cut(observation: Observation, state: RunState) -> Observation:
    return observation.model_copy(update={"state": state, "detail": f"it {state}"})


def test_what_befalls_one_part_takes_nothing_from_the_others() -> None:
    first = observed({"a.py::one": Ended.PASSED, "b.py::two": None})
    second = observed({"a.py::one": None, "b.py::two": Ended.TIMED_OUT, "b.py::three": None})
    both = shards.merged(
        [({"a.py"}, cut(first, RunState.CRASHED)), ({"b.py"}, cut(second, RunState.TIMED_OUT))], command=("x",)
    )
    assert (both.state, both.detail, both.command) == (RunState.TIMED_OUT, "it timed_out", ("x",))
    assert {entry: found.outcome for entry, found in both.records.items()} == {
        "a.py::one": Ended.PASSED, "b.py::two": Ended.TIMED_OUT, "b.py::three": None,
    }  # fmt: skip


def test_a_part_does_not_speak_for_the_tests_of_another() -> None:
    first = observed({"a.py::one": Ended.PASSED, "b.py::two": Ended.PASSED})
    second = observed({"a.py::one": Ended.PASSED, "b.py::two": Ended.FAILED})
    both = shards.merged([({"a.py"}, first), ({"b.py"}, second)], command=())
    assert both.records["b.py::two"].outcome is Ended.FAILED


@pytest.mark.parametrize(
    "other",
    [
        observed({"a.py::one": None, "b.py::two": None, "b.py::more": Ended.PASSED}),
        observed({"a.py::one": None}),
        observed({"a.py::one": None, "b.py::two": None}).model_copy(update={"files": {"b.py": "other"}}),
        observed({"a.py::one": None, "b.py::two": None}).model_copy(
            update={"collection_errors": (CollectionError(path="c.py", fault=MISMATCH),)}
        ),
        cut(observed({"c.py::three": None}), RunState.CRASHED),
    ],
)
def test_parts_that_collect_other_tests_prove_nothing(other: Observation) -> None:
    first = observed({"a.py::one": Ended.PASSED, "b.py::two": None})
    both = shards.merged([({"a.py"}, first), ({"b.py"}, other)], command=())
    assert both.state is RunState.UNUSABLE
    assert "workers = 1" in (both.environment_problem or "")


def test_a_part_that_cannot_be_believed_makes_the_whole_so() -> None:
    broken = Observation(state=RunState.UNUSABLE, detail="somebody wrote there")
    both = shards.merged([({"a.py"}, observed({"a.py::one": Ended.PASSED})), ({"b.py"}, broken)], command=("x",))
    assert both == broken.model_copy(update={"command": ("x",)})


# --- without a run


@dataclass
class Counting(NoBox):
    """A box that counts what ran in it, and fails when told to."""

    runs: list[Command] = field(default_factory=list[Command])
    broken: bool = False

    async def run(self, command: Command) -> Completed:
        self.runs.append(command)
        if self.broken and len(self.runs) % 2 == 0:
            raise BoxError("no room")
        return await super().run(command)


SUITE = {
    "pyproject.toml": PYPROJECT,
    "shared.py": "SEEN = []\n",
    "tests/test_one.py": "import shared\n\ndef test_first():\n    shared.SEEN.append(1)\n",
    "tests/test_two.py": "import shared\n\ndef test_second(): pass\n",
    "tests/test_six.py": "import pytest\n\ndef test_red(): assert False\n\n@pytest.mark.skip\ndef test_no(): pass\n",
}


def parted(workers: int) -> Config:
    return Config.model_validate({"toolchains": {"pytest": {"workers": workers}}})


NEEDS_FIRST = "import shared\n\ndef test_second(): assert shared.SEEN\n"
DOCTESTS = PYPROJECT.replace('["tests"]', '["tests", "later.py"]').replace("-autoload", "-autoload --doctest-modules")
CHANGES: dict[str, tuple[dict[str, str], int]] = {
    "as before": ({"README.md": "new"}, 3),
    "new and green": ({"tests/test_new.py": "def test_new(): pass\n"}, 3),
    "new and red": ({"tests/test_new.py": "def test_new(): assert False\n"}, 4),
    "only in company": ({"tests/test_two.py": NEEDS_FIRST}, 4),
    "gone": ({"tests/test_one.py": "import shared\n"}, 3),
    "mended": ({"tests/test_six.py": "def test_red(): pass\n\ndef test_no(): pass\n"}, 3),
    "cannot be collected": ({"tests/test_six.py": "import nothing\n"}, 4),
    "where nobody looks": ({"pyproject.toml": DOCTESTS, "later.py": "'''\n>>> 1 + 1\n2\n'''\n"}, 4),
    # a crash ends a process: the rest of a part, and of the whole, runs in a new one
    "dies": ({"tests/test_six.py": "import os\n\ndef test_dies(): os._exit(1)\n"}, 6),
}


@pytest.mark.broad
def test_a_measurement_in_parts_says_what_one_piece_says(tmp_path: Path) -> None:
    project = make_project(tmp_path, dict(SUITE))
    base = project.git("rev-parse", "HEAD")
    with without_run(project, box=(box := Counting()), config=parted(3)) as lab:
        anyio.run(lambda: measure(lab, tree_of(lab, base), warm=True))
        taken = durations.read(lab.checkout.root / "pycache")
        assert taken.keys() == {name for name in SUITE if name.startswith("tests/")}
        for what, (change, runs) in CHANGES.items():
            project.git("reset", "--quiet", "--hard", base)
            project.write(change)
            project.commit(what)
            box.runs.clear()
            in_parts = anyio.run(measure, lab, tree_of(lab, "HEAD"))
            assert len(box.runs) == runs, what
            whole = anyio.run(lambda: measure(lab, tree_of(lab, "HEAD"), again=True))
            assert as_facts(in_parts) == as_facts(whole), what


CHANCE = "import os, pytest\n\n@pytest.mark.parametrize('n', [os.urandom(8).hex()])\ndef test_any(n): pass\n"


def test_parts_that_fail_or_differ_are_told_of(tmp_path: Path) -> None:
    project = make_project(tmp_path, dict(SUITE))
    with without_run(project, box=(box := Counting()), config=parted(2)) as lab:
        anyio.run(lambda: measure(lab, tree_of(lab, "HEAD"), warm=True))
        project.write({"tests/test_two.py": CHANCE})
        project.commit("ids by chance")
        with pytest.raises(UnmeasurableError, match=r"did not collect the same tests .*workers = 1"):
            anyio.run(measure, lab, tree_of(lab, "HEAD"))
        box.broken = True
        with pytest.raises(UnmeasurableError, match="no room"):
            anyio.run(measure, lab, tree_of(lab, "HEAD"))


def test_the_slowest_file_is_alone() -> None:
    taken = {"a.py": 0.1, "b.py": 5.0, "c.py": 0.2, "d.py": 0.3}
    assert shards.plan([*taken, "unknown.py"], taken, 3) == ({"b.py"}, {"unknown.py"}, {"a.py", "c.py", "d.py"})


@pytest.mark.parametrize("said", ["", "[]", '{"a": NaN, "b": -1, "c": "x", "d": Infinity, "e": true}', "{"])
def test_durations_that_a_test_made_up_are_harmless(tmp_path: Path, said: str) -> None:
    (tmp_path / ".seconds.json").write_text(said)
    durations.write(tmp_path, {"f": 2.0})
    assert durations.read(tmp_path).items() - {("e", 1.0)} == {("f", 2.0)}


def test_durations_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "else").write_text("{}")
    (tmp_path / ".seconds.json").symlink_to("else")
    durations.write(tmp_path, {"f": 2.0})
    assert (tmp_path / "else").read_text() == "{}"
    assert durations.read(tmp_path) == {"f": 2.0}
