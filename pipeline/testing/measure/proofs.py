"""Measures the proof of a finding over the work that it is about; nothing of it stays.

Theory of operation. A reviewer writes nothing, so what it brings along is judged as if @test had written it (a new test
file) or put into production as a fault is (an edit). Both are run twice, in copies, in the box, under the limits of any
measurement. What cannot be run or fails for a reason that is no RED proves nothing and refutes nothing: it is said why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import passed
from pipeline.judge.evidence.red import RedFacts, judge_red
from pipeline.judge.evidence.red_classes import PASSED, Context, Symbol
from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import canonical, is_tracker, protected
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, Writes, judge
from pipeline.judge.reports.proofs import Edit, MeasuredProof, Proof, ProvingTest
from pipeline.progress import counted, few
from pipeline.repo import GITLINK, PLAIN, Entry, TreeChange
from pipeline.repo.settings import paths_git_uses
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.languages.readers import edited
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, measure
from pipeline.testing.measure.mutation import changed_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.judge.evidence.observation import Layout, Observation

MOST_CHARACTERS: Final = 20_000
"""A proof is small: what is longer is read by nobody who has to judge it."""
_NEW_FILE: Final = "100644"
_TOLD: Final = 3


@dataclass(frozen=True)
class Work:
    """The work that a proof is about.

    Args:
        tree: The tree with it.
        start: The tree before it, where an edit has to be of lines that differ.
        layout: Which files are tests.
        scope: Where a new test may lie.
        tests: The tests that were written for it: over an edit they are to pass, whatever they do without.
        symbols: What a test may find missing.
    """

    tree: str
    layout: Layout
    scope: TestScope
    start: str | None = None
    tests: frozenset[str] = frozenset()
    symbols: tuple[Symbol, ...] = ()


async def measure_proof(ctx: MeasurementContext, proof: Proof, work: Work, title: str) -> MeasuredProof:
    """Return what the proof shows over *work*; `title` is the finding's, for who watches."""
    if proof.test is not None:
        return await _of_test(ctx, proof.test, work, title)
    return await _of_edit(ctx, proof.edit, work, title) if proof.edit is not None else _unproved("it is empty")


def with_test(ctx: MeasurementContext, test: ProvingTest, tree: str) -> str:
    """Return *tree* with the file of a proof."""
    oid = ctx.repository.write_blob(test.content.encode(), test.path, ctx.checkout.tree)
    return ctx.repository.build_tree(tree, [TreeChange(test.path, Entry(test.path, _NEW_FILE, oid))])


# --- a test that fails over the work ---------------------------------------------------------------------------------


async def _of_test(ctx: MeasurementContext, test: ProvingTest, work: Work, title: str) -> MeasuredProof:
    refused = refusal_of_test(ctx, test, work)
    if refused is not None:
        return _unproved(refused)
    tree = with_test(ctx, test, work.tree)
    mine = Selection(files=frozenset({test.path}))
    try:
        whole = kept_runs.whole_run(ctx.checkout.root, tree)  # of a proof that is in the result by now
        own = [record for record in whole.records.values() if record.path == test.path] if whole is not None else []
        if whole is not None and own and all(map(passed, own)):
            first = traced = whole
        else:
            first = await measure(
                ctx, tree, mine, what=f"the proof of {title!r} over the result, it fails if that holds"
            )
            traced = await measure(ctx, tree, mine, trace=True, what=f"the proof of {title!r} again, traced")
    except UnmeasurableError as error:
        return _unproved(f"it could not be run: {error}")
    facts = _judged(ctx, test, work, tree, first, traced)
    if facts is None:
        why = first.detail or "the test runner collected no test from it"
        return _unproved(f"{test.path}: {why}")
    ledger, command = facts.ledger, tuple(first.command)
    illegal = [one for one in facts.illegal if one.cls is not None and one.cls not in PASSED]
    red = tuple(sorted(ledger.red))
    written = _written(ctx, work, tree, {*first.touched, *traced.touched})
    if red and written:  # GREEN would not count with it, and what it shows may be its own doing
        return _unproved(f"it writes files of the project while it runs: {', '.join(written[:_TOLD])}", command)
    if facts.env_broken or illegal:
        said = facts.env_broken or "; ".join(one.message for one in illegal[:_TOLD])
        return _unproved(f"it fails for a reason that shows nothing: {said}", command)
    if facts.unstable:
        return _unproved(f"its two runs disagree: {', '.join(facts.unstable[:_TOLD])}", command)
    if not red:
        return MeasuredProof(found="refuted", why=f"{test.path} passes over the result", tree=tree, command=command)
    said = "; ".join(f"{entry}: {ledger.red[entry].message}" for entry in red[:_TOLD])
    return MeasuredProof(
        found="proved",
        why=f"it fails over the result, twice: {said}",
        tests=red,
        guards=tuple(sorted(ledger.guards)),
        files=_reached(traced, red, work.layout),
        tree=tree,
        command=command,
    )


def refusal_of_test(ctx: MeasurementContext, test: ProvingTest, work: Work) -> str | None:
    """Return why @test might not write this file either; None if it might."""
    path = test.path
    too_long = _too_long(test.content)
    if too_long is not None:
        return too_long
    there = {entry.path: entry for entry in ctx.repository.entries(work.tree)}
    if path in there and ctx.repository.blob(there[path].oid) != test.content.encode():
        return f"{path} is there already: a proof is a new file"
    same = next((one for one in there if one != path and _canonical(one) == _canonical(path)), None)
    change = Change(path, ChangeKind.ADDED, collides_with=same)
    named = replace(work.scope, files=(Grant(path, Action.CREATE),))
    places = (*paths_git_uses(ctx.repository), *(one.path for one in there.values() if one.mode == GITLINK))
    ruling = judge(Writes.TESTS, change, tests=named, places=places, tracker=ctx.config.tracker.folder)
    if not ruling.allowed:
        return ruling.why
    if is_control(path):
        return f"{path} controls tests or builds: a proof is a test file"
    if not (work.scope.takes(path) and work.layout.is_test(path)):
        looked = f"; the runner looks only at {few(work.layout.testpaths)}" if work.layout.testpaths else ""
        return f"{path} is no place of a test file here: give one beside the tests, named as they are{looked}"
    return ctx.repository.foreign_filters(ctx.checkout.tree, [path]).get(path)


def _canonical(path: str) -> list[str]:
    return [canonical(part) for part in path.split("/")]


def _judged(
    ctx: MeasurementContext, test: ProvingTest, work: Work, tree: str, first: Observation, traced: Observation
) -> RedFacts | None:
    """Return the facts of two runs by the table of RED; None where there is no test in the file."""
    mine = {entry for entry, record in first.records.items() if record.path == test.path}
    if not mine and test.path not in first.unread:
        return None
    others = {entry: record for entry, record in first.records.items() if entry not in mine}
    errors = tuple(error for error in first.collection_errors if error.path != test.path)
    before = first.model_copy(update={"records": others, "collection_errors": errors})
    seen = {entry: traced.records[entry] for entry in mine if entry in traced.records}
    after = first.model_copy(update={"records": {**first.records, **seen}})
    context = Context(
        symbols=work.symbols,
        existing=frozenset(entry.path for entry in ctx.repository.entries(work.tree)),
        layout=after.layout,
        names=names,
    )
    return judge_red(before, after, first, context, task="proof", tree=tree)


def _written(ctx: MeasurementContext, work: Work, tree: str, touched: set[str]) -> list[str]:
    """Return the sources and tests that were written while a test ran; what builds write (a lock) is none."""
    there = touched & {entry.path for entry in ctx.repository.entries(tree)}
    sources = tuple(ctx.toolchain.sources)
    return sorted(path for path in there if path.endswith(sources) or work.layout.is_test_side(path))


def _reached(traced: Observation, red: Collection[str], layout: Layout) -> tuple[str, ...]:
    found: set[str] = set()
    for record in (traced.records[entry] for entry in red if entry in traced.records):
        found |= {name.partition("::")[0] for name in (record.reach.functions if record.reach is not None else ())}
        found |= {frame.path for frame in (record.fault.frames if record.fault is not None else ())}
    return tuple(sorted(path for path in found if path and not layout.is_test_side(path)))


# --- a wrong program that the tests accept ---------------------------------------------------------------------------


async def _of_edit(ctx: MeasurementContext, edit: Edit, work: Work, title: str) -> MeasuredProof:
    made = _with_edit(ctx, edit, work)
    if not made.startswith("tree "):
        return _unproved(made)
    tree = made.removeprefix("tree ")
    over = f"over the edit of {title!r}"
    try:
        before = await measure(ctx, work.tree, what="the whole suite over the result, to compare with")
        passing = work.tests | {entry for entry, record in before.records.items() if passed(record)}
        own = work.tests or passing
        first = await measure(ctx, tree, Selection(ids=own), what=f"the tests of the work {over}")
        noticing = _noticing(own, first)
        meant = frozenset(noticing) if noticing else passing
        selected = Selection(ids=meant) if noticing else None
        second = await measure(ctx, tree, selected, again=True, what=f"{counted(len(meant), 'test')} {over}, again")
    except UnmeasurableError as error:
        return _unproved(f"it could not be run: {error}")
    command, twice = tuple(second.command), _noticing(meant, second)
    if twice and not noticing and not own.isdisjoint(twice):
        return _unproved(f"two runs over it disagree: {', '.join(sorted(own.intersection(twice))[:_TOLD])}", command)
    if noticing and not twice:
        return _unproved(f"two runs over it disagree: {', '.join(noticing[:_TOLD])}", command)
    if twice:
        why = f"the tests notice the edit: {', '.join(twice[:_TOLD])}"
        return MeasuredProof(found="refuted", why=why, tests=tuple(twice), tree=tree, command=command)
    why = f"all {counted(len(passing), 'test')} pass over the edit of {edit.path}"
    return MeasuredProof(found="proved", why=why, files=(edit.path,), tree=tree, command=command)


def _noticing(meant: Collection[str], seen: Observation) -> list[str]:
    """Return which of these tests do not pass any more; one whose file cannot be read is one of them."""
    return sorted(entry for entry in meant if entry not in seen.records or not passed(seen.records[entry]))


def _with_edit(ctx: MeasurementContext, edit: Edit, work: Work) -> str:
    """Return `tree ` and the tree with the edit, or why it is not one that can prove something."""
    path = edit.path
    too_long = _too_long(edit.old + edit.new)
    if too_long is not None:
        return too_long
    ours = is_tracker(path, ctx.config.tracker.folder) or protected(path) is not None
    if ours or work.layout.is_test_side(path) or is_control(path):
        return f"{path} is no production file: an edit that tests accept is one of the code that they test"
    entry = next((one for one in ctx.repository.entries(work.tree, path) if one.path == path), None)
    content = ctx.repository.blob(entry.oid) if entry is not None and entry.mode in PLAIN else None
    if entry is None or content is None:
        return f"{path} is no file of the result"
    old, new = edit.old.encode(), edit.new.encode()
    if (times := content.count(old)) != 1:
        return f"the text `old` is {times} times in {path}: give so much of it that it is there once"
    text = content.replace(old, new)
    if b"".join(text.split()) == b"".join(content.split()) or edited(content, edit.old, edit.new) is not None:
        return "the edit changes nothing that the program does"
    changed = changed_lines(ctx, work.start, work.tree, lambda one: one == path) if work.start is not None else None
    if changed is not None and changed.get(path, frozenset()).isdisjoint(_lines_of(content, text)):
        return f"the edit is not of lines of {path} that this work has changed"
    oid = ctx.repository.write_blob(text)
    return f"tree {ctx.repository.build_tree(work.tree, [TreeChange(path, Entry(path, entry.mode, oid))])}"


def _lines_of(before: bytes, after: bytes) -> frozenset[int]:
    """Return the numbers of the lines of *before* that differ, of an insertion those around it."""
    old, new = before.split(b"\n"), after.split(b"\n")
    found: set[int] = set()
    for kind, first, last, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "insert":
            found |= {first, first + 1}
        elif kind != "equal":
            found |= set(range(first + 1, last + 1))
    return frozenset(found)


def _too_long(text: str) -> str | None:
    return f"it has more than {MOST_CHARACTERS} characters" if len(text) > MOST_CHARACTERS else None


def _unproved(why: str, command: tuple[str, ...] = ()) -> MeasuredProof:
    return MeasuredProof(found="unproved", why=why, command=command)
