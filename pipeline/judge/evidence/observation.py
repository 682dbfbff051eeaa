"""The facts of one measured test run, without any judgement.

A toolchain fills these values from its own records; `classify`, `ledger` and `compare` judge them. Paths are relative
to the workspace and written with `/`, so that two machines observe the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import Field

from pipeline.data_types import Frozen

_TEST_FOLDER: Final = re.compile(r"(tests?|__tests__|__mocks__|testdata|specs?|tests?[_-].+|.+[_-]tests?)")


class Value(Frozen):
    """The base of frozen values in which an unknown key is an error."""


class Ended(StrEnum):
    """The outcome of one test id, over all its phases."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    STRICT_XPASS = "strict_xpass"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


PASSING: Final = frozenset({Ended.PASSED, Ended.XPASSED})
"""Outcomes that count as passed; a non-strict XPASS is a pass that the project tolerates."""


class RunState(StrEnum):
    """How the run as a whole ended, and so whether its results may be used."""

    COMPLETE = "complete"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNUSABLE = "unusable"


class Frame(Value):
    """A traceback frame. `path` is empty outside the workspace, where only the module's name is kept."""

    path: str = ""
    module: str = ""
    line: int = 0
    function: str = ""


class Raised(Value):
    """An exception of a chain, without its traceback. `kind` is the dotted class name, `bases` its ancestors."""

    kind: str
    bases: tuple[str, ...] = ()
    message: str = ""

    def is_a(self, *names: str) -> bool:
        """Return whether the exception is an instance of one of the classes, given by their bare names."""
        return any(entry.rpartition(".")[2] in names for entry in (self.kind, *self.bases))


class Missing(Value):
    """The name that a NameError, AttributeError or ImportError did not find.

    `owner` is the module that lacks the name or, for an attribute, the class of the object (`pkg.core.Greeter`);
    `first_party` says whether the workspace has that module or a top-level package of that name.
    """

    name: str
    owner: str = ""
    first_party: bool = True


class Fault(Value):
    """The exception that ended a phase: its chain (outermost first) and the frames of the decisive one.

    `expectation` marks a failed expectation of the runner itself ("DID NOT RAISE"); `bare` a failing line that states
    failure without looking at anything (`assert False`, `pytest.fail()`); `missing_fixture` one that nobody defines.
    `special` are the methods of which one would have kept an error of Python's own syntax away: `len(x)`, `x + y`.
    """

    chain: tuple[Raised, ...] = Field(min_length=1)
    frames: tuple[Frame, ...] = ()
    missing: Missing | None = None
    special: tuple[Missing, ...] = ()
    expectation: bool = False
    bare: bool = False
    missing_fixture: str = ""

    @property
    def raised(self) -> Raised:
        """Return the decisive exception."""
        return self.chain[0]

    @property
    def last_own_frame(self) -> Frame | None:
        """Return the innermost frame in the workspace, which decides (matrix 5); None if there is none."""
        return next((frame for frame in reversed(self.frames) if frame.path), None)


class Reach(Value):
    """The code that a traced test reached: functions entered (`path::qualname`), names imported, and `doors`.

    `doors` are files of the workspace that it opened and the word `process` when it started one, because production
    can be reached through a command line or a data file too. `named` are files of the workspace whose paths stand in it
    as texts; they say nothing, but of a file that the task takes away.
    """

    functions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


class Case(Value):
    """The argument values of a parametrised test case, where they are plain data.

    `written` says that they stand in the test's own file and that nothing which it imports has a part in them.
    `around` is the hash of all that the test is but its table; "" where the table may be more than values.
    """

    sha256: str
    written: bool
    around: str = ""

    def is_as(self, other: Case) -> bool:
        """Return whether both are known to do the same with the same values, whatever else stands in the table."""
        return bool(self.around) and (self.around, self.sha256) == (other.around, other.sha256)


class TestRecord(Value):
    """The record of one test id: its place, source hash and outcome. `reach` is None when the run was not traced.

    `region_sha256` is empty where a tool speaks of a whole source (style, types): nobody wrote that as a test.
    """

    __test__ = False

    id: str
    function: str
    path: str
    region_sha256: str
    case: Case | None = None
    outcome: Ended | None = None
    phase: Literal["setup", "call", "teardown", ""] = ""
    reason: str = ""
    fault: Fault | None = None
    reach: Reach | None = None

    @property
    def last_name(self) -> str:
        """Return the name of its function alone, as people say it."""
        return self.function.rpartition("::")[2]

    @property
    def ran(self) -> bool:
        """Return whether the test was run, not only collected."""
        return self.outcome is not None


class CollectionError(Value):
    """A file or folder that could not be collected, with the exception."""

    path: str
    fault: Fault


class ForeignModule(Value):
    """A module of the workspace that was loaded from elsewhere: the tests judged other code."""

    name: str
    origin: str


class Layout(Value):
    """The layout of tests: files that the runner collected, and patterns for new ones."""

    testpaths: tuple[str, ...] = ()
    python_files: tuple[str, ...] = ("test_*.py", "*_test.py")
    collected: frozenset[str] = frozenset()

    def is_test(self, path: str) -> bool:
        """Return whether the runner collects a file, or would if it were new.

        Without `testpaths` a new file counts only in a folder of tests, or beside a file that is one: the name alone
        would let a test writer add modules to the package.
        """
        if path in self.collected:
            return True
        pure = PurePosixPath(path)
        if not any(fnmatch(path if "/" in pattern else pure.name, pattern) for pattern in self.python_files):
            return False
        if self.testpaths:
            return self._under_testpaths(pure)
        folders = {str(PurePosixPath(known).parent) for known in self.collected}
        return not folders or str(pure.parent) in folders or self._in_test_folder(pure)

    def is_test_side(self, path: str) -> bool:
        """Return whether a file serves tests: a test file, a conftest.py, or anything in a folder named for tests.

        `testpaths` does not decide here: with tests beside the code it names the package itself.
        """
        pure = PurePosixPath(path)
        return self.is_test(path) or pure.name == "conftest.py" or self._in_test_folder(pure)

    def _under_testpaths(self, pure: PurePosixPath) -> bool:
        wanted = {entry.removeprefix("./").strip("/") or "." for entry in self.testpaths}
        places = [str(pure), *(str(parent) for parent in pure.parents)]
        return any(fnmatch(place, pattern) for place in places for pattern in wanted)

    @staticmethod
    def _in_test_folder(pure: PurePosixPath) -> bool:
        return any(_TEST_FOLDER.fullmatch(part) for part in pure.parts[:-1])


class Observation(Value):
    """The facts of one run. `records` holds every collected id, run or not; `files` the sha256 of every test file seen.

    `modules` are the project's modules that were loaded, by name; `command` is what a person would type; `tail` the end
    of the runner's output, for people and agents only. `touched` are the files of the view that were written while it
    ran, `moved` its folders that were renamed, put back or not; the harness sees that, whatever the runner says.
    """

    state: RunState
    detail: str = ""
    records: Mapping[str, TestRecord] = Field(default_factory=dict[str, TestRecord])
    collection_errors: tuple[CollectionError, ...] = ()
    files: Mapping[str, str] = Field(default_factory=dict[str, str])
    layout: Layout = Layout()
    modules: Mapping[str, str] = Field(default_factory=dict[str, str])
    foreign_modules: tuple[ForeignModule, ...] = ()
    command: tuple[str, ...] = ()
    tail: str = ""
    touched: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def unread(self) -> frozenset[str]:
        """Return the paths of the files that could not be collected."""
        return frozenset(error.path for error in self.collection_errors)

    @property
    def cut_short(self) -> tuple[str, ...]:
        """Return, in words, how the run ended where that is not its end; nothing where it came to it."""
        if self.state is RunState.COMPLETE:
            return ()
        return (f"the test run did not come to its end ({self.state}): {self.detail}",)

    @property
    def environment_problem(self) -> str | None:
        """Return why nothing may be concluded from this run, None if it is usable (ENV_BROKEN, matrix 5)."""
        if self.foreign_modules:
            first = self.foreign_modules[0]
            return f"module {first.name} was loaded from {first.origin}: install this project there as editable"
        if self.state is RunState.UNUSABLE and not self.collection_errors:
            return self.detail or "the test runner left no usable records"
        return None
