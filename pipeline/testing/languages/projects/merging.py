"""Merges the observations and the test layouts of several runners of one repository; the worst state counts.

Each runner has its own names for test files and its own folders for them; names of one in the folders of another would
make tests of production. So names and folders are bound together, as patterns of whole paths. A star in such a pattern
also stands for `/`: what a runner counts is always counted, and at times a file of its name in a folder further down.
"""

from __future__ import annotations

import posixpath
from collections import ChainMap
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import Layout, Observation, RunState, TestRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_WORST_FIRST: Final = (RunState.UNUSABLE, RunState.TIMED_OUT, RunState.CRASHED, RunState.COMPLETE)
_TAIL: Final = 8_000


def together(seen: Mapping[str, Observation]) -> Observation:
    """Return the merged observation of the runners, named by their keys; for a single runner its own.

    The worst state of them is that of all. Where one may not be believed at all, or two have a test of the same id,
    nothing may be concluded from any of them: then the observation is UNUSABLE, and no collection error excuses it.
    """
    everything = list(seen.values())
    if len(everything) == 1:
        return everything[0]
    problem = _problem(seen)
    state = RunState.UNUSABLE if problem else min((each.state for each in everything), key=_WORST_FIRST.index)
    said = (f"{name}: {each.detail}" for name, each in seen.items() if each.state is state and each.detail)
    errors = () if problem else tuple(error for each in everything for error in each.collection_errors)
    return Observation(
        state=state,
        detail=problem or "; ".join(said),
        records=dict(ChainMap(*(dict(each.records) for each in everything))),
        collection_errors=errors,
        files=dict(ChainMap(*(dict(each.files) for each in everything))),
        layout=one_layout([each.layout for each in everything]),
        modules=dict(ChainMap(*(dict(each.modules) for each in everything))),
        foreign_modules=tuple(module for each in everything for module in each.foreign_modules),
        command=_command(everything),
        tail=_tail(seen),
    )


def collected(seen: Observation) -> Observation:
    """Return the observation without results, as if no test had been run."""
    records = {entry: unrun(record) for entry, record in seen.records.items()}
    return seen.model_copy(update={"records": records, "tail": ""})


def unrun(record: TestRecord) -> TestRecord:
    """Return a test's record as if it had not run."""
    nothing = {"outcome": None, "phase": "", "reason": "", "fault": None, "reach": None}
    return record.model_copy(update=nothing)


def _problem(seen: Mapping[str, Observation]) -> str:
    """Return why nothing may be concluded from the observations, empty if something may."""
    for name, each in seen.items():
        if each.state is RunState.UNUSABLE and each.environment_problem is not None:
            return f"{name}: {each.environment_problem}"
    owners: dict[str, str] = {}
    for name, each in seen.items():
        for entry in each.records:
            if entry in owners:
                return (
                    f"{owners[entry]} and {name} both have a test {entry}, so its evidence could be that of the other. "
                    "Rename one, or say in [toolchains] use which of them measure this repository"
                )
            owners[entry] = name
    return ""


def _command(everything: Sequence[Observation]) -> tuple[str, ...]:
    """Return the commands joined for a shell; if any ran a test, only those."""
    ran = [each for each in everything if any(record.ran for record in each.records.values())]
    commands = [each.command for each in ran or everything if each.command]
    return tuple(word for at, command in enumerate(commands) for word in ((";",) if at else ()) + command)


def _tail(seen: Mapping[str, Observation]) -> str:
    """Return the ends of the runners' output, each shortened to its share."""
    said = {name: each.tail for name, each in seen.items() if each.tail}
    return "\n".join(f"== {name} ==\n{tail[-(_TAIL // len(said)) :]}" for name, tail in said.items())


EVERYWHERE: Final = "."
_FOLDERS: Final = (
    "test", "tests", "__tests__", "spec", "specs", "test[_-]?*", "tests[_-]?*", "?*[_-]test", "?*[_-]tests"
)  # fmt: skip
"""Folder names that `Layout` takes for tests."""
_MOST: Final = 64
"""The most test folders beside code that are listed one by one; of more only their top folders are."""


def below(layout: Layout, folder: str) -> Layout:
    """Return the layout of a runner in `folder`, with paths of the repository."""
    collected = frozenset(f"{folder}/{path}" for path in layout.collected)
    if not layout.testpaths:
        patterns = tuple(f"{folder}/{deep}{name}" for name in _bound(layout) for deep in _depths(name))
        return Layout(testpaths=(EVERYWHERE,), python_files=patterns, collected=collected)
    return Layout(
        testpaths=tuple(posixpath.normpath(f"{folder}/{entry}") for entry in map(_plain, layout.testpaths)),
        python_files=tuple(f"{folder}/{name}" if "/" in name else name for name in layout.python_files),
        collected=collected,
    )


def one_layout(layouts: Sequence[Layout]) -> Layout:
    """Return one layout for several runners of a repository; for a single runner its own."""
    if len(layouts) == 1:
        return layouts[0]
    return Layout(
        testpaths=(EVERYWHERE,),
        python_files=tuple(dict.fromkeys(name for layout in layouts for name in _bound(layout))),
        collected=frozenset(path for layout in layouts for path in layout.collected),
    )


def _bound(layout: Layout) -> Iterator[str]:
    """Yield patterns of test files that need no test folders beside them."""
    folders = [_plain(entry) for entry in layout.testpaths]
    homes = _homes(layout)
    for name in layout.python_files:
        if "/" in name or EVERYWHERE in folders or (homes is None and not folders):
            yield name
        elif folders:
            yield from (pattern for folder in folders for pattern in _in(folder, name))
        else:
            yield from (pattern for home in homes or () for pattern in _beside(home, name))
            yield from (pattern for folder in _FOLDERS for pattern in (*_in(folder, name), *_in(f"*/{folder}", name)))


def _homes(layout: Layout) -> tuple[str, ...] | None:
    """Return the folders with tests whose names do not say so; None if there are no tests yet."""
    if not layout.collected:
        return None
    parents = {posixpath.dirname(path) for path in layout.collected}
    found = sorted(parent for parent in parents if not Layout().is_test_side(f"{parent}/any"))
    if len(found) <= _MOST:
        return tuple(found)
    return tuple(sorted({f"{home.partition('/')[0]}/*" if home else home for home in found}))


def _in(folder: str, name: str) -> tuple[str, ...]:
    return f"{folder}/{name}", f"{folder}/*/{name}"


def _beside(home: str, name: str) -> tuple[str, ...]:
    if home.endswith("/*"):
        return _in(home.removesuffix("/*"), name)
    if home:
        return (f"{home}/{name}",)
    # a slash in the pattern makes it one of whole paths; no path of a repository begins with one
    return (name if name[0] in "*?[" else f"[{name[0]}/]{name[1:]}",)


def _depths(name: str) -> tuple[str, ...]:
    """Return the prefixes between a folder and a pattern: a bare name also matches in subfolders."""
    return ("",) if "/" in name else ("", "*/")


def _plain(entry: str) -> str:
    return entry.removeprefix("./").strip("/") or EVERYWHERE
