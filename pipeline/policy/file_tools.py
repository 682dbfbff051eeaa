"""Judges whether a file tool of ours may write a path, as the gate will judge it later.

For agents whose tool loop is ours; the gate judges the result again. It is stricter than the gate in one point: what a
path may look like is asked of existing files too, since here the path is a model's word and not a scan's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.policy.area import effective_writes
from pipeline.policy.paths import TRACKER, collision_key, malformed, protected
from pipeline.policy.ruling import Ruling
from pipeline.policy.scope import Change, ChangeKind, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.policy.area import Covering
    from pipeline.policy.roles import RoleSpec
    from pipeline.policy.scope import Grant, TestScope


def judge_path(
    spec: RoleSpec,
    path: str,
    *,
    exists: bool,
    grants: tuple[Grant, ...] = (),
    tests: TestScope | None = None,
    area: tuple[Covering, ...] | None = None,
    tracker: str = TRACKER,
    contents: tuple[bytes, bytes] | None = None,
    regions: Callable[[str, bytes, bytes], str | None] | None = None,
) -> Ruling:
    """Return the ruling on a role's writing `path`. Total: every text has a ruling.

    Args:
        spec: The role.
        path: What a model wrote, relative to the workspace.
        exists: Whether exactly this path is a file there.
        grants: The production files that the task names.
        tests: What counts as a test, and the task's test files.
        area: The patterns that the dispatch is held to.
        tracker: The folder of the issues.
        contents: What is in the file and what is to be; decides on test regions, for a role that has them.
        regions: Says what else differs there; without it nothing is a test region.
    """
    kind = ChangeKind.MODIFIED if exists else ChangeKind.ADDED
    change = Change(path, kind)
    if exists and contents is not None and regions is not None and spec.test_regions:
        fault = regions(path, *contents)
        change = Change(path, kind, test_regions_only=fault is None, region_fault=fault)
    return _refuse_form(path, grants, tests) or judge(
        effective_writes(spec.writes, area), change, grants, tests, area=area, tracker=tracker
    )


def judge_deletion(
    spec: RoleSpec,
    path: str,
    *,
    grants: tuple[Grant, ...] = (),
    tests: TestScope | None = None,
    area: tuple[Covering, ...] | None = None,
    tracker: str = TRACKER,
) -> Ruling:
    """Return the ruling on a role's deleting `path`."""
    change = Change(path, ChangeKind.DELETED)
    return _refuse_form(path, grants, tests) or judge(
        effective_writes(spec.writes, area), change, grants, tests, area=area, tracker=tracker
    )


def _refuse_form(path: str, grants: tuple[Grant, ...], tests: TestScope | None) -> Ruling | None:
    if fault := protected(path) or malformed(path):
        return Ruling(allowed=False, rule=fault.rule, why=fault.why)
    named = _other_spelling(path, (*grants, *(tests.files if tests else ())))
    if named is None:
        return None
    why = f"{path!r} is not {named!r}, which the task names, though some file systems take it for the same; write that"
    return Ruling(allowed=False, rule="path-collision", why=why)


def _other_spelling(path: str, grants: Iterable[Grant]) -> str | None:
    """Return the granted path that differs from `path` only in case or Unicode form, None if there is none."""
    named = {name for grant in grants for name in (grant.path, grant.from_path) if name is not None}
    if path in named:
        return None
    return next((name for name in sorted(named) if collision_key(name) == collision_key(path)), None)
