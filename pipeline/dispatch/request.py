"""The request of a step to one slot, from which the dispatcher makes a prompt, a view, a process and a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeline.policy.scope import Grant, TestScope
    from pipeline.process import Mount
    from pipeline.reports.decode import Malformed
    from pipeline.reports.fields import Report
    from pipeline.routing.vocabulary import Question, Role
    from pipeline.scheduling.patterns import Pattern


@dataclass(frozen=True)
class Tools:
    """The mounts, variables and commands that a project's own tools need in a box.

    Args:
        mounts: Read-only mounts.
        env: Variables such as PATH.
        folders: Where the project's programs are on the host; no agent can write there.
        test_command: The toolchain's own command, an argv that runs with test ids behind it; empty if there is none.
        links: Installed packages that the tests find inside the view, where the box shows them through no mount.
    """

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    folders: tuple[Path, ...] = ()
    test_command: tuple[str, ...] = ()
    links: tuple[Mount, ...] = ()


def _nothing(_: str) -> None:
    pass


@dataclass(frozen=True)
class InRun:
    """The place of a dispatch in its run.

    Args:
        phase: The number of the phase, for the prompt.
        why: What led to it, for the prompt.
        on_words: Gets what the agent says while it works, as it is: with secrets.
    """

    phase: str = "-"
    why: str = ""
    on_words: Callable[[str], None] = _nothing


@dataclass(frozen=True)
class Request:
    """The request to one slot.

    Args:
        role: Who.
        kind: What (contract 5).
        base: The tree that the view is made from.
        question: For kind `judge`.
        artifacts: Name -> files of the run folder, in order.
        grants: Production paths that the dispatch may change.
        area: Patterns that it is held to instead; None where it has a task.
        tests: What counts as a test; for @test also which ones it may change.
        about: Paths that the dispatch is about and may not change; instructions of their folders are named, too.
        accept: Says what is wrong with a well-formed report that cannot be true here.
        extra: Short context that only this dispatch has.
        tools: What the project's own tools need in the box, given the view's mount.
        asks: Whether the answer may be a question to a person.
        reasks: How often the slot may be asked again beside what the matrix grants; for what it routes nothing on.
    """

    role: Role
    kind: str
    base: str
    question: Question | None = None
    artifacts: Mapping[str, Sequence[Path]] = field(default_factory=dict[str, "Sequence[Path]"])
    grants: tuple[Grant, ...] = ()
    area: tuple[Pattern, ...] | None = None
    tests: TestScope | None = None
    about: tuple[str, ...] = ()
    accept: Callable[[Report], Malformed | None] | None = None
    extra: str = ""
    tools: Callable[[Mount], Tools] | None = None
    asks: bool = False
    reasks: int = 0
