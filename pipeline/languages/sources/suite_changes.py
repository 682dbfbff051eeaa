"""Describes what a change of a test file loosens, by comparing two `Suite`s of any language.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.claims import called_in, is_literal, values_in
from pipeline.languages.sources.suites import NOTHING, Check, Suite, Test, Weakening, Words, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_WRAPPING: Final = frozenset({"Ok", "Err", "Some", "unwrap", "expect", "unwrap_err", "expect_err", "String"})
"""Wrappers that a comparison ignores: `f().unwrap() == 1` and `f() == Ok(1)` check the same."""


def compare(old: Suite, new: Suite, elsewhere: Iterable[Test] = ()) -> Iterator[Weakening]:
    """Yield the weakenings of the new file against the old one; additions loosen nothing.

    Args:
        old: The file as it was.
        new: The file as it is to be.
        elsewhere: Tests that the same change adds in other files: what moved there is not gone.
    """
    fresh = [*(test for name, test in new.tests.items() if name not in old.tests), *elsewhere]
    pool = Counter(check for test in fresh for check in test.counting)
    for name, test in old.tests.items():
        now = new.tests.get(name) or _renamed(test, fresh)
        if now is not None:
            yield from _loosened(name, test, now, pool)
        elif not _takes(pool, test):
            yield Weakening(name, f"the {test.what} is removed", test.line)
    for sentence, count in new.whole.items():
        if count > old.whole.get(sentence, 0):
            yield Weakening("", sentence, 1)


def _renamed(test: Test, fresh: Sequence[Test]) -> Test | None:
    """Return the new test that is an old one renamed, by the same body or equally strict checks; else None."""
    alike = [other for other in fresh if other.what == test.what]
    same = next((other for other in alike if other.body == test.body), None)
    strict = (o for o in alike if test.counting and o.counting and not [*_loosened("", test, o, Counter())])
    return same or next(strict, None)


def _takes(pool: Counter[Check], test: Test) -> bool:
    """Return whether all checks of a test are in the pool of new checks, and remove them from it."""
    needed = Counter(test.counting)
    if not needed or needed - pool:
        return False
    pool.subtract(needed)
    return True


def _loosened(name: str, old: Test, new: Test, pool: Counter[Check]) -> Iterator[Weakening]:
    yield from (Weakening(name, mark, new.line) for mark in Counter(new.marks) - Counter(old.marks))
    yield from (Weakening(name, what, new.line) for what in _lesser(old, new))
    here = _not_moved(old.counting, new, pool)
    pairs, rest = _paired(here, new)
    dropped = _dropped(old, new, here)
    if dropped is not None:
        yield Weakening(name, dropped, rest[0].line if rest else new.line)
    found = [(what, after.line) for before, after in pairs if (what := _difference(before, after)) is not None]
    yield from (Weakening(name, what, line) for what, line in dict.fromkeys(found))
    if pairs and not found and dropped is None and old.what != "fixture":
        yield from (Weakening(name, what, pairs[-1][1].line) for what in _about_else(here, old, new))


def _lesser(old: Test, new: Test) -> Iterator[str]:
    """Yield the lost parts of a set-up or a constant; changed parts are no loss."""
    gone = list((Counter(old.parts) - Counter(new.parts)).elements())
    come = list((Counter(new.parts) - Counter(old.parts)).elements())
    if old.parts and not new.parts:
        yield f"the {old.what} is emptied"
    elif old.what == "constant" and gone:
        yield f"{shown(gone[0])} is {f'{shown(come[0])} now' if come else 'gone'}"
    elif len(gone) > len(come):
        yield f"the {old.what} does less: {shown(gone[0])} is gone"


def _not_moved(checks: Sequence[Check], new: Test, pool: Counter[Check]) -> list[Check]:
    """Return the old test's checks that no other, new test makes."""
    here = Counter(new.checks)
    left: list[Check] = []
    for check in checks:
        if here[check] > 0:
            here[check] -= 1
            left.append(check)
        elif pool[check] > 0:
            pool[check] -= 1
        else:
            left.append(check)
    return left


def _dropped(old: Test, new: Test, here: Sequence[Check]) -> str | None:
    """Return the loss of assertions in words, counted for each case; None if there are as many or more."""
    differ = old.cases is not None and new.cases is not None and old.cases != new.cases
    cases = (old.cases or 0, new.cases or 0) if differ else (1, 1)
    before = cases[0] * sum(check.times for check in here)
    after = cases[1] * sum(check.times for check in new.checks)
    if cases[1] < cases[0] and (after < before or not before):
        return f"{cases[0] - cases[1]} of {cases[0]} parametrised cases are dropped"
    total = cases[0] * sum(check.times for check in old.counting)
    return f"{before - after} of {total} assertions are gone" if after < before else None


def _paired(here: Sequence[Check], new: Test) -> tuple[list[tuple[Check, Check]], list[Check]]:
    """Return each old check with its equal or most similar new one, and the old ones without any."""
    left = list(new.checks)
    pairs = [(check, left.pop(left.index(check))) for check in here if check in left]
    rest = list((Counter(here) - Counter(check for check, _ in pairs)).elements())
    while rest and left:
        check = rest.pop(0)
        words = Counter(check.words)
        best = max(left, key=lambda other: (words & Counter(other.words)).total() - abs(len(words) - len(other.words)))
        left.remove(best)
        pairs.append((check, best))
    return pairs, rest


def _difference(old: Check, new: Check) -> str | None:
    if new.strength == NOTHING:
        return "an assertion can never fail"
    if new.strength < old.strength:
        return f"an assertion is loosened from {old.kind} to {new.kind}"
    if new.tolerance is not None and (old.tolerance is None or new.tolerance > old.tolerance):
        return f"a tolerance is {'added' if old.tolerance is None else 'raised'}"
    if new.guards > old.guards:
        return "an assertion is made on a condition only"
    return _other_value(old.words, new.words)


def _other_value(old: Words, new: Words) -> str | None:
    """Return the changed value in words if nothing else differs, else None."""
    differing = [(one, other) for one, other in zip(old, new, strict=False) if values_in((one,)) != values_in((other,))]
    if len(old) != len(new) or not differing or not all(is_literal(word) for pair in differing for word in pair):
        return None
    if any(one != other and not (is_literal(one) and is_literal(other)) for one, other in zip(old, new, strict=True)):
        return None
    one, other = differing[-1]
    return f"another value is expected: {shown(other)} instead of {shown(one)}"


def _about_else(here: Sequence[Check], old: Test, new: Test) -> Iterator[str]:
    """Yield calls and values that no assertion uses any more."""
    before, after = ([*dict.fromkeys(w for check in checks for w in check.words)] for checks in (here, new.checks))
    calls = {name for check in here for name in called_in(check.words)} - _WRAPPING
    unseen = [word for word in before if word in calls and word not in after]
    if unseen:
        yield f"an assertion is about something else now: {unseen[0]} is not looked at"
        return
    values, others = values_in(tuple(before)) | old.values, values_in(tuple(after)) | new.values
    gone, come = sorted(values - others), sorted(others - values)
    if gone and come:
        yield f"another value is expected: {shown(come[0])} instead of {shown(gone[0])}"
    elif gone and old.body != new.body:
        yield f"the value {shown(gone[0])} is gone"
