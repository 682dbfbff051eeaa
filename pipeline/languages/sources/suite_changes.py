"""What a change of a file of tests loosens, in words: two `Suite`s compared, whatever their language.

Nothing here says that a change is wrong: a behaviour may have changed. It says what the tests no longer notice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.languages.sources.suites import NOTHING, Check, Suite, Test, Weakening, shown

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
    pool = Counter(made for test in fresh for check in test.counting for made in {check, *check.made})
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
    """Return the new test that is this one under another name: the same body, or checks of the same things."""
    same = [other for other in fresh if other.body == test.body and other.what == test.what]
    first = next((other for other in same if other.checks == test.checks), same[0] if same else None)
    subjects = Counter(check.subject for check in test.counting)
    alike = (other for other in fresh if subjects and Counter(check.subject for check in other.counting) == subjects)
    return first or next(alike, None)


def _takes(pool: Counter[Check], test: Test) -> bool:
    """Return whether all checks of a test are made elsewhere, or all of its cases; then they are out of the pool."""
    for needed in (Counter(test.counting), Counter(made for check in test.counting for made in check.made)):
        if needed and not needed - pool:
            pool.subtract(needed)
            return True
    return False


def _loosened(name: str, old: Test, new: Test, pool: Counter[Check]) -> Iterator[Weakening]:
    if new.empty and not old.empty:
        yield Weakening(name, f"the {old.what} is emptied", new.line)
    if old.what == "fixture":
        yield from _does_less(name, old, new)
        return
    dropped = list(_fewer_cases(old, new))
    for what in (*dropped, *_marked(old, new), *_stood_in(old, new), *_slower(old, new)):
        yield Weakening(name, what, new.line)
    for what, before, after in (
        ("a failing assertion is swallowed", old.swallowed, new.swallowed),
        ("an assertion can never fail", old.vacuous, new.vacuous),
        ("it may end before its assertions", old.leaves, new.leaves),
    ):
        yield from (Weakening(name, what, line) for line in after[len(before) :])
    yield from _discarded(name, old, new)
    if _places(old) != _places(new):
        more = max(1, (new.cases or 1) // max(1, old.cases or 1))
        yield from _compared(name, old.counting, _Left(list(old.counting), list(new.checks), more, bool(dropped)), pool)


def _places(test: Test) -> list[tuple[Check, int, int, tuple[Check, ...]]]:
    return [(check, check.times, check.guards, check.instances) for check in test.checks]


def _does_less(name: str, old: Test, new: Test) -> Iterator[Weakening]:
    """Yield how much of a set-up is gone; what it does otherwise is no loss."""
    gone = list((Counter(old.parts) - Counter(new.parts)).elements())
    if gone and len(new.parts) < len(old.parts) and not new.empty:
        what = f"the {old.what} does less: {shown(gone[0])} is gone"
        more = len(old.parts) - len(new.parts) - 1
        yield Weakening(name, f"{what}, and {more} more" if more > 0 else what, new.line)


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
    """The checks of one test that have no counterpart yet.

    Args:
        old: Those that were.
        new: Those that are.
        more: How many times as many cases the test has now.
        dropped: Whether it is said already that it has fewer.
    """

    old: list[Check]
    new: list[Check]
    more: int = 1
    dropped: bool = False

    def cases(self) -> Iterator[tuple[Check, Check]]:
        """Yield, and take out, an old check for which each case is one of the cases of the new checks."""
        known = {made: check for check in self.new if check.strength > NOTHING for made in check.made}
        pool = Counter(made for check in self.new if check.strength > NOTHING for made in check.made)
        used: list[Check] = []
        for check in list(self.old):
            needed = Counter(check.made)
            if not needed - pool:
                pool.subtract(needed)
                self.old.remove(check)
                used.append(known[check.made[0]])
                yield check, used[-1]
        self.new = [check for check in self.new if not any(check is one for one in used)]

    def pairs(self, alike: Mapping[str, str] | None = None) -> Iterator[tuple[Check, Check]]:
        """Yield, and take out, a new check for each old one of the same subject."""
        for check in list(self.old):
            subject = alike.get(check.subject) if alike is not None else check.subject
            other = next((each for each in self.new if each.subject == subject), None)
            if other is not None:
                self.old.remove(check)
                self.new.remove(other)
                yield check, other


def _compared(name: str, old: list[Check], left: _Left, pool: Counter[Check]) -> Iterator[Weakening]:
    """Pair the checks of the old test with those of the new one: the same first, then those about the same thing."""
    rarer: dict[str | None, int] = {}
    fewer = Counter(made for check in left.new for made in check.made)
    for check in old:
        if check in left.new:
            left.old.remove(check)
            other = left.new.pop(left.new.index(check))
            rarer.setdefault(
                _rarer(check, other) or (None if left.dropped else _other_cases(check, other, fewer)), other.line
            )
    for check, other in left.cases():
        rarer.setdefault(_on_condition(check, other), other.line)
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
    gone = sum(check.times for check in left.old) - left.more * sum(check.times for check in left.new)
    weakest = min((check.strength for check in left.new), default=NOTHING)
    if gone > 0:
        yield Weakening(name, f"{gone} of {total} assertions are gone", left.old[0].line)
    elif _is_list_now(left) and weakest >= max(check.strength for check in left.old):
        return  # several assertions became one for a list of cases
    else:
        count = sum(check.times for check in left.old)
        yield Weakening(name, f"{count} of {total} assertions are about something else now", left.new[0].line)


def _is_list_now(left: _Left) -> bool:
    return (left.more > 1 or any(check.times > 1 for check in left.new)) and all(c.times == 1 for c in left.old)


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
    allowed = sorted(new.allows - old.allows) if old.allows else []
    if allowed:
        return f"more is let pass: {shown(new.kind)} instead of {shown(old.kind)}"
    if old.expected != new.expected and (old.expected or new.strength <= old.strength):
        return f"another value is expected: {shown(new.expected)} instead of {shown(old.expected)}"
    return None


def _rarer(old: Check, new: Check) -> str | None:
    if new.times < old.times:
        return f"an assertion is made for {new.times} instead of {old.times} values"
    return _on_condition(old, new)


def _on_condition(old: Check, new: Check) -> str | None:
    return "an assertion is made on a condition only" if new.guards > old.guards else None


def _other_cases(old: Check, new: Check, made: Counter[Check]) -> str | None:
    """Return how many cases of an assertion are not made any more, none if that is not known."""
    if not old.instances or not new.instances:
        return None
    gone = Counter(old.instances) - made
    what = next(iter(gone), None)
    if what is None:
        return None
    return f"{gone.total()} of {len(old.instances)} cases are gone or changed, such as {shown(_said(what))}"


def _said(check: Check) -> str:
    return f"{check.subject} {check.kind} {check.expected}".strip()
