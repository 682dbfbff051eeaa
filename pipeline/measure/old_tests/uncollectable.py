"""Explains why tests give no baseline (they never end or cannot be loaded): the first error, and what helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import passed
from pipeline.evidence.observation import RunState
from pipeline.progress import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.evidence.observation import Observation
    from pipeline.git import Repository

_NO_MODULE: Final = re.compile(r"No module named '(?P<name>[\w.]+)'")
_NO_PACKAGE: Final = re.compile(r"Cannot find (?:module|package) '(?P<name>[^.'/][^']*)'")
_TWO_OF_ONE_NAME: Final = "import file mismatch"
"""What a runner says of two test modules of one name that it takes for one: none of them has a fault."""
_ROOTS: Final = ("", "src/", "lib/")


def no_baseline(repository: Repository, seen: Observation) -> str | None:
    """Return why no run can start with these tests: the run did not end, or none passes; None if it can.

    That none passes only counts where files of them cannot be loaded.

    Args:
        repository: The user's; its worktree is only looked at.
        seen: The run of all tests as they were.
    """
    if seen.state is not RunState.COMPLETE:
        return f"the test run did not come to its end ({seen.state}): {seen.detail}"
    if not seen.collection_errors or any(map(passed, seen.records.values())):
        return None
    return f"no test passes, and {uncollected(repository, seen)}"


def uncollected(repository: Repository, seen: Observation) -> str:
    """Return a message with the number of files that cannot be loaded, the first error, and what helps."""
    errors = seen.collection_errors
    first = errors[0].fault.raised
    how_many = counted(len(errors), "file")
    told = f"{how_many} cannot be collected; the first, {errors[0].path}: {first.kind}: {first.message}. "
    return told + _advice(repository, seen)


def why_unloadable(baseline: Observation, named: Iterable[str], made: Iterable[str]) -> str | None:
    """Return why tests that a draft names cannot be measured by anybody: something around them is missing; else None.

    What a task may mend itself is no reason: a test file that is wrong, or that asks for a name that is not there yet.

    Args:
        baseline: The run of all tests as they were.
        named: The files that the draft names.
        made: Those of them that it makes.
    """
    wanted, new = set(named), tuple(made)
    for error in baseline.collection_errors:
        raised = error.fault.raised
        missing = _NO_MODULE.search(raised.message) or _NO_PACKAGE.search(raised.message)
        files = _files_of(missing["name"]) if missing is not None else ()
        is_made = any(f"/{path}".endswith(f"/{file}") for path in new for file in files)
        is_around = missing is not None or _TWO_OF_ONE_NAME in raised.message
        if error.path in wanted and is_around and not is_made:
            return (
                f"{error.path}, which the draft names, cannot be loaded, so nothing about it could be measured: "
                f"{raised.kind}: {raised.message}. Install what is missing where the tests run. If the file belongs to "
                "a project in a folder of its own, name that folder: [toolchains.NAME] folder takes a list"
            )
    return None


def _advice(repository: Repository, baseline: Observation) -> str:
    missing = tuple(_missing(baseline))
    tracked = {entry.path for entry in repository.entries("HEAD")} if missing else set[str]()
    for path in (path for name in missing for path in _files_of(name)):
        if path not in tracked and (repository.worktree / path).is_file():
            told = "write that path into .worktreeinclude and commit that: tests get it"
            return f"{path} is there and git ignores it: {told}"
    if not missing:
        return "Start the tests by hand, and mend what they say"
    return (
        f"If {missing[0]} is the project's own, install the project where its tests run (`pip install -e .`), or name "
        "the folder of its sources: `pythonpath` in pytest's settings. If it is a dependency, install that"
    )


def _missing(baseline: Observation) -> Iterator[str]:
    for error in baseline.collection_errors:
        found = _NO_MODULE.search(error.fault.raised.message)
        if found is not None:
            yield found["name"]


def _files_of(module: str) -> Iterator[str]:
    path = module.replace(".", "/")
    for root in _ROOTS:
        yield from (f"{root}{path}.py", f"{root}{path}/__init__.py")
