"""What a change of a file of tests loosens, in words: two `Suite`s compared, whatever their language.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.policy.suites import NOTHING, Check, Suite, Test, Weakening, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def compare(old: Suite, new: Suite, elsewhere: Iterable[Test] = ()) -> Iterator[Weakening]:
    """Yield what the new file no longer notices; what is only in the new one loosens nothing.

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
        elif not _takes(pool, test.counting):
            yield Weakening(name, f"the {test.what} is removed", test.line)
    for sentence, count in new.whole.items():
        if count > old.whole.get(sentence, 0):
            yield Weakening("", sentence, 1)


def _renamed(test: Test, fresh: Sequence[Test]) -> Test | None:
    """Return the new test that is this one under another name: the same body, or checks of the same things."""
    same = (other for other in fresh if other.body == test.body and other.what == test.what)
    subjects = Counter(check.subject for check in test.counting)
    alike = (other for other in fresh if subjects and Counter(check.subject for check in other.counting) == subjects)
    return next(same, None) or next(alike, None)


def _takes(pool: Counter[Check], wanted: Sequence[Check]) -> bool:
    """Return whether all these checks are made elsewhere; then they are taken out of the pool."""
    needed = Counter(wanted)
    if not needed or needed - pool:
        return False
    pool.subtract(needed)
    return True


def _loosened(name: str, old: Test, new: Test, pool: Counter[Check]) -> Iterator[Weakening]:
    if new.empty and not old.empty:
        yield Weakening(name, f"the {old.what} is emptied", new.line)
    if old.what == "fixture":
        return
    for what in (*_fewer_cases(old, new), *_marked(old, new), *_stood_in(old, new), *_slower(old, new)):
        yield Weakening(name, what, new.line)
    for what, before, after in (
        ("a failing assertion is swallowed", old.swallowed, new.swallowed),
        ("an assertion can never fail", old.vacuous, new.vacuous),
        ("it may end before its assertions", old.leaves, new.leaves),
    ):
        yield from (Weakening(name, what, line) for line in after[len(before) :])
    yield from _discarded(name, old, new)
    if [(c, c.times, c.guards) for c in old.checks] != [(c, c.times, c.guards) for c in new.checks]:
        yield from _compared(name, old.counting, list(new.checks), pool)


def _fewer_cases(old: Test, new: Test) -> Iterator[str]:
    if old.cases is None or new.cases is None or new.cases >= old.cases:
        return
    before, after = (test.cases * sum(check.times for check in test.counting) for test in (old, new) if test.cases)
    if new.cases > 1 or after < before or not before:  # else each case has become an assertion of its own
        yield f"{old.cases - new.cases} of {old.cases} parametrised cases are dropped"


def _marked(old: Test, new: Test) -> Iterator[str]:
    added = Counter(new.marks) - Counter(old.marks)
    yield from (f"{mark} is added" for mark in added)


def _stood_in(old: Test, new: Test) -> Iterator[str]:
    added = new.standins - old.standins
    if added > 0:
        yield f"{added} more thing{'s are' if added > 1 else ' is'} replaced by a stand-in"


def _slower(old: Test, new: Test) -> Iterator[str]:
    if old.timeout is not None and (new.timeout is None or new.timeout > old.timeout):
        yield f"its time limit is {'gone' if new.timeout is None else 'raised'}"


def _discarded(name: str, old: Test, new: Test) -> Iterator[Weakening]:
    """Yield what was looked at and is only called now."""
    known = {text for text, _ in old.discarded}
    for text, line in new.discarded:
        if text not in known and any(text in check.subject for check in old.counting):
            yield Weakening(name, f"what comes of {shown(text)} is not looked at any more", line)


@dataclass
class _Left:
    """The checks of one test that have no counterpart yet."""

    old: list[Check]
    new: list[Check]

    def pairs(self, alike: Mapping[str, str] | None = None) -> Iterator[tuple[Check, Check]]:
        """Yield, and take out, a new check for each old one of the same subject."""
        for check in list(self.old):
            subject = alike.get(check.subject) if alike is not None else check.subject
            other = next((each for each in self.new if each.subject == subject), None)
            if other is not None:
                self.old.remove(check)
                self.new.remove(other)
                yield check, other


def _compared(name: str, old: list[Check], new: list[Check], pool: Counter[Check]) -> Iterator[Weakening]:
    """Pair the checks of the old test with those of the new one: the same first, then those about the same thing."""
    left = _Left(list(old), list(new))
    rarer: dict[str | None, int] = {}
    for check in old:
        if check in left.new:
            left.old.remove(check)
            other = left.new.pop(left.new.index(check))
            rarer.setdefault(_rarer(check, other), other.line)
    for check, other in left.pairs():
        if what := _difference(check, other):
            yield Weakening(name, what, other.line)
        else:
            rarer.setdefault(_rarer(check, other), other.line)
    yield from (Weakening(name, what, line) for what, line in rarer.items() if what is not None)
    for check in list(left.old):
        if pool[check] > 0:  # made by a test that is new
            pool[check] -= 1
            left.old.remove(check)
    left.new = [check for check in left.new if check.strength > NOTHING]
    for check, other in left.pairs(_parts(left)):
        what = f"an assertion is about something else now: {shown(other.subject)} instead of {shown(check.subject)}"
        yield Weakening(name, what, other.line)
    yield from _gone(name, old, left)


def _parts(left: _Left) -> dict[str, str]:
    """Return for what is no longer looked at what is made of it and is looked at instead: `len(x)` for `x`."""
    found: dict[str, str] = {}
    for check in left.old:
        made = (new.subject for new in left.new if check.subject in new.subject and _is_name(check.subject))
        part = next(made, None)
        if part is not None:
            found[check.subject] = part
    return found


def _is_name(subject: str) -> bool:
    return len(subject) > 1 and any(char.isalpha() for char in subject)


def _gone(name: str, old: list[Check], left: _Left) -> Iterator[Weakening]:
    if not left.old:
        return
    total = sum(check.times for check in old)
    gone = sum(check.times for check in left.old) - sum(check.times for check in left.new)
    weakest = min((check.strength for check in left.new), default=NOTHING)
    if gone > 0:
        yield Weakening(name, f"{gone} of {total} assertions are gone", left.old[0].line)
    elif _is_list_now(left) and weakest >= max(check.strength for check in left.old):
        return  # several assertions became one for a list of cases
    else:
        count = sum(check.times for check in left.old)
        yield Weakening(name, f"{count} of {total} assertions are about something else now", left.new[0].line)


def _is_list_now(left: _Left) -> bool:
    return any(check.times > 1 for check in left.new) and all(check.times == 1 for check in left.old)


def _difference(old: Check, new: Check) -> str | None:
    if new.strength == NOTHING:
        return f"a failing assertion is only told: {new.kind} instead of {old.kind}"
    if new.strength < old.strength:
        return f"an assertion is loosened from {old.kind} to {new.kind}"
    if old.tolerance is not None and new.tolerance is not None and new.tolerance > old.tolerance:
        return "a tolerance is raised"
    if old.tolerance is None and new.tolerance is not None:
        return "a tolerance is added"
    if new.loose > old.loose:
        return "a part of what is expected may be anything now"
    if old.expected != new.expected:
        return f"another value is expected: {shown(new.expected)} instead of {shown(old.expected)}"
    return None


def _rarer(old: Check, new: Check) -> str | None:
    if new.times < old.times:
        return f"an assertion is made for {new.times} instead of {old.times} values"
    if new.guards > old.guards:
        return "an assertion is made on a condition only"
    return None
