"""A project whose tests cannot be loaded: which error comes first, and which setting would help, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.evidence.observation import Observation
    from pipeline.git import Repository

_NO_MODULE: Final = re.compile(r"No module named '(?P<name>[\w.]+)'")
_ROOTS: Final = ("", "src/", "lib/")


def nothing_collected(repository: Repository, baseline: Observation) -> str | None:
    """Return why the tests are of no use: none of them passes, and files of them cannot be loaded. None otherwise.

    Args:
        repository: The user's; its worktree is only looked at.
        baseline: The run of all tests as they were.
    """
    errors = baseline.collection_errors
    if not errors or any(map(passed, baseline.records.values())):
        return None
    first = errors[0]
    told = f"no test passes, and {len(errors)} file(s) cannot be collected; the first, {first.path}: "
    return told + f"{first.fault.raised.kind}: {first.fault.raised.message}. " + _advice(repository, baseline)


def _advice(repository: Repository, baseline: Observation) -> str:
    missing = tuple(_missing(baseline))
    tracked = {entry.path for entry in repository.entries("HEAD")} if missing else set[str]()
    for name in missing:
        for path in _files_of(name):
            if path in tracked or not (repository.worktree / path).is_file():
                continue
            return f"{path} is there and git ignores it: write that path into .worktreeinclude, and tests get it"
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
