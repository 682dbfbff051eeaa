"""Runs `[checks]`: formatters on changed files; linters and type checkers, measured like tests.

The user's hooks are not run: they would run outside of the box over what an agent wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.judge.reports.fields import Concern, Severity
from pipeline.judge.reports.reviews import ReviewFinding
from pipeline.repo import Entry, TreeChange
from pipeline.testing.measure.composed_trees import compose, shares_file
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, changed_paths
from pipeline.testing.measure.project_tools import kit_of, program_for, run_in_copy
from pipeline.trees import opened, opened_parent, opened_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.judge.evidence.observation import Layout

FILES: Final = "{files}"
_TAIL: Final = 1500


async def measure_checks(ctx: MeasurementContext, tree: str, files: Sequence[str] = (), *, over: str) -> dict[str, str]:
    """Return the checks that fail on *tree*: the end of the output by command line.

    Args:
        ctx: The run, or what stands for one.
        tree: The tree to check.
        over: What that is, and what is expected, in words.
        files: What `{files}` stands for; a command that wants files is left out when there are none.

    Raises:
        UnmeasurableError: the box, or a program of a check, does not work.
    """
    wanted = [argv for argv in ctx.config.checks.commands if files or FILES not in argv]
    if not wanted:
        return {}
    failed: dict[str, str] = {}
    what = f"checks over {over}"
    ctx.say(f"    {what} ...")
    async with ctx.copies.one_at_a_time:
        with ctx.copies.lent(tree) as folder, ctx.progress.doing(what) as took:
            there = [name for name in files if (folder / name).is_file()]
            for argv in wanted:
                if FILES not in argv or there:
                    code, output = await _run(ctx, folder, argv, there)
                    if code != 0:
                        said = output if output.strip() else f"exit code {code}, and it printed nothing"
                        failed[" ".join(argv)] = said
    ctx.say(f"    {what}: {f'{len(failed)} of {len(wanted)} fail' if failed else 'all pass'} ({took})")
    return failed


async def fixed(ctx: MeasurementContext, start: str, tree: str, allowed: Sequence[str], layout: Layout) -> str:
    """Return *tree* after the configured formatters ran on files changed since *start*; only *allowed* ones are taken.

    Raises:
        UnmeasurableError: the box, or a fixer, does not work.
    """
    files = [path for path in changed_paths(ctx, start, tree) if path in allowed]
    if not ctx.config.checks.fix or not files:
        return tree
    with ctx.copies.lent(tree) as folder:
        there = [name for name in files if (folder / name).is_file() and not (folder / name).is_symlink()]
        before = {name: (folder / name).read_bytes() for name in there}
        with ctx.progress.doing("fixers over the changed files"):
            for argv in ctx.config.checks.fix:
                if there:
                    await _run(ctx, folder, argv, there)
        modes = {entry.path: entry.mode for entry in ctx.repository.entries(tree)}
        changes: list[TreeChange] = []
        for name, content in before.items():
            now = _content(folder, name)
            if now is not None and now != content:
                oid = ctx.repository.write_blob(now, name, ctx.checkout.tree)
                changes.append(TreeChange(name, Entry(name, modes[name], oid)))
    made = ctx.repository.build_tree(tree, changes)
    # a formatter may not touch the tests beside the code: they are frozen
    return compose(ctx, tree, made, [name for name in before if shares_file(name, layout)], layout).tree


def _content(folder: Path, name: str) -> bytes | None:
    """Return a file's content after a formatter ran, None if it is no regular file; links are not followed."""
    try:
        with opened(folder) as top, opened_parent(top, name) as (parent, last), opened_regular(last, parent) as file:
            return file.read()
    except OSError:
        return None


async def new_failures(ctx: MeasurementContext, start: str, head: str) -> tuple[ReviewFinding, ...]:
    """Return a production finding for each check that fails on *head* and passed on *start*.

    Raises:
        UnmeasurableError: the box, or a program of a check, does not work.
    """
    files = changed_paths(ctx, start, head)
    after = await measure_checks(ctx, head, files, over="the result, must pass")
    before = await measure_checks(ctx, start, files, over="the start, to compare with") if after else {}
    return tuple(
        ReviewFinding(
            severity=Severity.HIGH,
            title=f"check fails: {command}",
            location=command,
            problem=f"`{command}` passes on the start commit and fails on the result.",
            evidence=output,
            concern=Concern.PRODUCTION,
        )
        for command, output in after.items()
        if command not in before
    )


async def _run(
    ctx: MeasurementContext, folder: Path, argv: Sequence[str], files: Sequence[str]
) -> tuple[int | None, str]:
    kit = await kit_of(ctx)
    try:
        program = program_for(ctx, argv[0], kit)
    except (UserError, UnmeasurableError) as error:
        why = error.message if isinstance(error, UserError) else error
        raise UnmeasurableError(f"[checks] {argv[0]}: {why}") from error
    words = [word for part in argv[1:] for word in (files if part == FILES else (part,))]
    limit = ctx.config.toolchains.settings_of(ctx.toolchain.name).timeout_s
    completed, output, errors = await run_in_copy(ctx, folder, program, words, kit, timeout_s=limit)
    return completed.exit_code, (output + errors)[-_TAIL:]
