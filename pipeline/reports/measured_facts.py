"""Facts measured after a dispatch, as booleans; `reduce` weighs a report against them (matrix 3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WriteTestsFacts:
    """The facts measured after @test's work.

    Args:
        env_broken: The tests cannot run for a reason outside the repository.
        any_change: Something was admitted.
        all_new_pass: There are new ids and every one passes.
        adds_tests: Tests that pass are what the task is for: it changes no code.
        unnoticed: None of them notices any of the faults that were put into the code.
        doubtful: One of them notices none, or none could be tried.
        structural_only: Tests never reach production code, or pass on stubs.
        illegal_red: A new test function has no legal RED.
        red_unstable: Two runs disagree.
        changed_old_test: A test was changed that existed before and that the task does not list.
        borrowed: A test that failed before, and that the task does not name, is taken as its own.
    """

    env_broken: bool = False
    any_change: bool = True
    all_new_pass: bool = False
    adds_tests: bool = False
    unnoticed: bool = False
    doubtful: bool = False
    structural_only: bool = False
    illegal_red: bool = False
    red_unstable: bool = False
    changed_old_test: bool = False
    borrowed: bool = False


@dataclass(frozen=True)
class ImplementFacts:
    """The facts measured after @make's work.

    Args:
        green: GREEN as matrix 5 defines it.
        stale_xfail: A strict xfail that passes now is all that is in the way of GREEN.
        regression: A test that passed fails now, 2 of 2.
        hidden: An old test passes as it is now, and fails as it was, 2 of 2.
        unstable: A test failed in some run of these bytes, and in none before the run; nothing else is in the way.
        changed: Something was admitted.
    """

    green: bool = False
    stale_xfail: bool = False
    regression: bool = False
    hidden: bool = False
    unstable: bool = False
    changed: bool = True


@dataclass(frozen=True)
class SeamFacts:
    """The facts measured after the seam pass: whether anything changed, and whether an old test broke."""

    changed: bool = True
    regression: bool = False


@dataclass(frozen=True)
class StubFacts:
    """The facts measured after the stub pass.

    Args:
        complete: Every new symbol of the task is there and the type check passes.
        dirty: A body is more than the stub, or something else was changed.
    """

    complete: bool
    dirty: bool = False
