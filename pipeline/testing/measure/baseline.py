"""Tells which tests fail before any change: what is not protected, why there is no baseline, what is the box's doing.

Tests that fail or are skipped in the box are run once more outside, on the user's own terms: what differs is its doing.
That starts code of the repository on this machine, with the user's variables and network. So it is done only where the
user asks for it (`[toolchains] outside`, `doctor --tests`), only for these tests, in a copy, and for a bounded time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.characters import as_utf8
from pipeline.judge.evidence.compare import failing, passed, passes
from pipeline.judge.evidence.observation import Ended, Observation
from pipeline.process import Command, Mount
from pipeline.progress import counted, few
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.redaction import redacted_observation
from pipeline.sandbox.views.copies import Copies
from pipeline.testing.languages.protocol import Measurement, OtherBox, Selection, View
from pipeline.testing.measure.measuring import MeasurementContext, environment, working_box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pipeline.judge.evidence.observation import Layout
    from pipeline.repo import Repository


def limit_of(ctx: MeasurementContext) -> float | None:
    """Return the time limit of a single test in seconds, None if there is none."""
    return ctx.config.toolchains.settings_of(ctx.toolchain.name).test_timeout_s


def not_protected(before: Observation, limit_s: float | None, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return a line for each kind of test that failed before and so is not protected.

    Args:
        before: The run of the tests as they were.
        limit_s: How many seconds one test may take, None without a limit.
        without: Ids that are spoken of elsewhere.
    """
    found = [entry for entry in failing(before) if entry not in without]
    files = [error.path for error in before.collection_errors if error.path in found]
    late = [entry for entry in found if entry in before.records and before.records[entry].outcome is Ended.TIMED_OUT]
    failed = [entry for entry in found if entry in before.records and entry not in late]
    in_time = "in time" if limit_s is None else f"within {limit_s:g} s"
    return (
        *_line(failed, "test", "failed before already and {is_} not counted"),
        *_line(late, "test", f"did not end {in_time} before already and {{is_}} not counted"),
        *_line(files, "file", "could not be collected before already, and what is in {it} is not counted"),
    )


def _line(entries: Sequence[str], what: str, said: str) -> tuple[str, ...]:
    if not entries:
        return ()
    one = len(entries) == 1
    words = said.format(is_="is" if one else "are", it="it" if one else "them")
    return (f"{len(entries)} {what}{'' if one else 's'} {words}: {few(entries)}",)


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
    if seen.cut_short:
        odd = odd_name((entry.path for entry in repository.entries("HEAD")), seen.layout)
        return ". ".join(filter(None, (seen.cut_short[0], odd)))
    if not seen.collection_errors or any(map(passed, seen.records.values())):
        return None
    return f"no test passes, and {uncollected(repository, seen)}"


def odd_name(paths: Iterable[str], layout: Layout) -> str | None:
    """Return which of these files holds tests and has a name that a test runner may be unable to say; None if none."""
    odd = next((path for path in paths if layout.is_test(path) and as_utf8(path) != path), None)
    return None if odd is None else f"{as_utf8(odd)} holds tests, and its name is not UTF-8; rename it"


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


LIMIT_S: Final = 300.0
"""So long they may take together; a test that is not reached is not said to differ."""
MEND: Final = (
    "Give the tests what they need there ([toolchains.NAME] env, setup, .worktreeinclude), or let more of them differ: "
    "[toolchains] may_differ"
)
"""What a person can do about tests that fail in the box alone."""
_NOT_THEIRS: Final = ("GIT_", "REDFIRST_", "PYTHON", "PYTEST_", "VIRTUAL_ENV")
"""Variables of the driver's own start, which say where it runs and not how the project's tests are run."""
_SHOWN: Final = 200


def skipped(seen: Observation) -> list[str]:
    """Return the ids of the tests that were skipped: in the box that may be, since something is missing there."""
    return sorted(entry for entry, record in seen.records.items() if record.outcome is Ended.SKIPPED)


async def passing_outside(ctx: MeasurementContext, tree: str, failed: Collection[str]) -> tuple[str, ...] | None:
    """Return which of the tests that failed in the box, or were skipped, pass outside; None where nobody asks for it.

    Raises:
        UnmeasurableError: the tests could not be started.
    """
    if not ctx.config.toolchains.outside or not ctx.box.maps_paths or not failed:
        return None
    env = await environment(ctx)
    limits = ctx.config.toolchains.settings_of(ctx.toolchain.name)
    what = f"{counted(len(failed), 'test')} that failed or were skipped in the box, outside of it"
    ctx.say(f"    {what} ...")
    box = OtherBox(NoBox(), lambda command: _on_own_terms(command, ctx.environ))
    copies = Copies(ctx.checkout, "outside", NoBox(), ctx.copies.watch)
    async with ctx.copies.one_at_a_time:
        with working_box(), copies.lent(tree) as folder, ctx.progress.doing(what) as took:
            view, chosen = View(Mount(folder, folder, writable=True)), Selection(ids=frozenset(failed))
            seconds = min(limits.timeout_s, LIMIT_S)
            asked = Measurement(box, view, env, chosen, timeout_s=seconds, per_test_timeout_s=limits.test_timeout_s)
            seen = redacted_observation(await ctx.toolchain.run_tests(asked), ctx.secrets)
    found = tuple(entry for entry in sorted(failed) if passes(seen, entry))
    ctx.say(f"    {what}: {len(found)} of {len(failed)} pass ({took})")
    return found


def difference(baseline: Observation, found: Collection[str]) -> str:
    """Return in words which tests fail in the box alone, and with what the first of them does."""
    return f"{_how_many(baseline, found)} in the box alone: {which(baseline, found)}"


def untried(baseline: Observation, failed: Collection[str]) -> str:
    """Return in words which tests fail in the box, where nobody has asked what they do outside of it."""
    whether = "whether they pass outside of it, redfirst doctor --tests finds out, or [toolchains] outside = true"
    return f"{_how_many(baseline, failed)} in the box before any change: {which(baseline, failed)}; {whether}"


def _how_many(baseline: Observation, tests: Collection[str]) -> str:
    left_out = set(skipped(baseline)).intersection(tests)
    one, several = ("is skipped", "fail or are skipped") if left_out else ("fails", "fail")
    return f"{counted(len(tests), 'test')} {one if len(tests) == 1 else several}"


def which(baseline: Observation, tests: Collection[str]) -> str:
    """Return the names of tests that fail in the box, and with what the first of them does."""
    first = baseline.records[min(tests)]
    raised = first.fault.chain[0] if first.fault is not None else None
    error = f"{raised.kind}: {raised.message}" if raised is not None else first.reason or str(first.outcome)
    return f"{few(sorted(tests))}; the first with {' '.join(error.split())[:_SHOWN]}"


def _on_own_terms(command: Command, environ: Mapping[str, str]) -> Command:
    """Return a command with the user's variables beneath those of a measurement."""
    theirs = {name: value for name, value in environ.items() if not name.startswith(_NOT_THEIRS)}
    path = ":".join(filter(None, (command.env.get("PATH"), theirs.get("PATH"))))
    return replace(command, env={**theirs, **command.env, "PATH": path})
