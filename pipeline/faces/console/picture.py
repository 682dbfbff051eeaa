"""Draws where a run stands on its way as SVG: its phases, its gates, and each time that it went back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from pipeline.app.live_view import phases_of
from pipeline.matrix.engine.journal_kinds import GateAnswered
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.actions import Again, Retry, Return
from pipeline.matrix.routing.plain_words import GATE_BEHIND, PHASES, phase_with
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.app.live_view import PhaseShown
    from pipeline.matrix.routing.plain_words import Phase
    from pipeline.run.run import Decided, Run

_PLACE: Final = {phase.number: number for number, phase in enumerate(PHASES)}
_TASK: Final = (_PLACE["6"], _PLACE["7"])
_WORDS: Final = {"done": "done", "now": "now", "ahead": "ahead", "left_out": "left out", "failed": "failed"}
_R: Final = 19


@dataclass(frozen=True)
class Way:
    """What a run did on its way.

    Args:
        phases: How it stands in each.
        gates: Its gates by the place of the phase before, and whether each is open, behind or ahead.
        back: How often it went back from one phase to an earlier one, by their places.
        again: How often a phase was done again without leaving it.
    """

    phases: tuple[PhaseShown, ...]
    gates: dict[int, str]
    back: Counter[tuple[int, int]]
    again: Counter[int]

    def words(self) -> str:
        """Return the same for who does not see the picture."""
        parts = [f"{one.phase.words}: {_WORDS[one.stands]}" for one in self.phases]
        parts += [f"approval point after {PHASES[at].words}: {how}" for at, how in self.gates.items()]
        parts += [f"back from {PHASES[a].words} to {PHASES[b].words}, {n} times" for (a, b), n in self.back.items()]
        parts += [f"{PHASES[at].words} again, {n} times" for at, n in self.again.items()]
        return ". ".join(parts)


def way_of(run: Run) -> Way:
    """Return what a run did on its way."""
    back, again = Counter[tuple[int, int]](), Counter[int]()
    for decided in run.history:
        here, there = phase_with(decided.decision.step), _arrived(decided)
        if here is None or there is None or not isinstance(decided.decision.action, Retry | Return | Again):
            continue
        a, b = _PLACE[here.number], _PLACE[there.number]
        if b < a:
            back[a, b] += 1
        elif a == b:
            again[a] += 1
    return Way(phases_of(run), _gates(run), back, again)


def _arrived(decided: Decided) -> Phase | None:
    after, lane = decided.after, decided.event.lane
    return phase_with(after.lanes[lane if lane in after.lanes else TRUNK].step)


def _gates(run: Run) -> dict[int, str]:
    names = set(run.state.gates) | ({run.state.trunk.gate} - {None})
    passed = {str(line.data.gate) for line in run.journal.of(GateAnswered)}
    found: dict[int, str] = {}
    for name, number in GATE_BEHIND.items():
        if name in names:
            is_open = run.state.trunk.step is Step.GATE and run.state.trunk.gate == name
            found[_PLACE[number]] = "open" if is_open else "passed" if name in passed else "ahead"
    return found


@dataclass(frozen=True)
class Sheet:
    """How the way lies on a picture: from left to right, or from top to bottom."""

    width: int
    height: int
    first: tuple[int, int]
    step: tuple[int, int]

    def at(self, place: float) -> tuple[float, float]:
        """Return the middle of a phase, or of what stands between two."""
        return self.first[0] + self.step[0] * place, self.first[1] + self.step[1] * place


WIDE: Final = Sheet(1080, 212, (54, 120), (108, 0))
TALL: Final = Sheet(340, 640, (120, 36), (0, 62))


def drawn(way: Way, sheet: Sheet, name: str) -> Markup:
    """Return the picture; *name* tells its parts from those of another one on the same page."""
    parts = Markup("").join(_parts(way, sheet))
    top = 0
    if sheet.step[0] > 0:  # no more room above than the widest bow needs
        top = sheet.first[1] - _R - 24 - max((_bow(a, b) // 2 + 8 for a, b in way.back), default=0)
    return Markup(
        '<svg class="way {name}" viewBox="0 {top} {w} {h}" role="img" aria-labelledby="{name}-t {name}-d">'
        '<title id="{name}-t">Where the run stands</title><desc id="{name}-d">{words}</desc>{parts}</svg>'
    ).format(name=name, top=top, w=sheet.width, h=sheet.height - top, words=way.words(), parts=parts)


def _parts(way: Way, sheet: Sheet) -> Iterator[Markup]:
    flat = sheet.step[0] > 0
    (x, y), (x2, y2) = sheet.at(_TASK[0]), sheet.at(_TASK[1])
    box = (x - 48, y - 42, x2 - x + 96, 126) if flat else (x - 44, y - 34, 250, y2 - y + 68)
    yield Markup('<rect class="tasks" x="{}" y="{}" width="{}" height="{}" rx="14"/>').format(*box)
    yield _text(
        *((x + x2) / 2, y + 77) if flat else (x + 200, y2 + 28), "for each task", "small" if flat else "small end"
    )
    for place in range(len(PHASES) - 1):
        (xa, ya), (xb, yb) = sheet.at(place), sheet.at(place + 1)
        dx, dy = (_R, 0) if flat else (0, _R)
        passed = way.phases[place + 1].stands in {"done", "now", "failed"}
        yield Markup('<path class="line {}" d="M{} {}L{} {}"/>').format(
            "been" if passed else "", xa + dx, ya + dy, xb - dx, yb - dy
        )
    for (a, b), times in way.back.items():
        yield from _arc(sheet, a, b, times)
    for place, how in way.gates.items():
        gx, gy = sheet.at(place + 0.5)
        yield Markup('<path class="gate {}" d="M{} {}l9 9l-9 9l-9 -9z"/>').format(how, gx, gy - 9)
    for place, one in enumerate(way.phases):
        yield from _phase(sheet, place, one, way.again[place])


def _phase(sheet: Sheet, place: int, one: PhaseShown, again: int) -> Iterator[Markup]:
    x, y = sheet.at(place)
    yield Markup('<g class="phase {}"><circle cx="{}" cy="{}" r="{}"/>').format(one.stands, x, y, _R)
    yield _text(x, y + 5, one.phase.number, "number")
    flat = sheet.step[0] > 0
    if flat:
        for row, word in enumerate(one.phase.name.split(" ")):
            yield _text(x, y + 42 + 15 * row, word, "name")
    else:
        yield _text(x + 32, y + 5, one.phase.name, "name start")
    yield Markup("</g>")
    if again:
        words = f"again {again}\N{MULTIPLICATION SIGN}"
        yield _text(*((x, y - 27) if flat else (x - 28, y + 4)), words, "small" if flat else "small end")


def _arc(sheet: Sheet, a: int, b: int, times: int) -> Iterator[Markup]:
    (xa, ya), (xb, yb) = sheet.at(a), sheet.at(b)
    bow = _bow(a, b)
    if sheet.step[0] > 0:
        ya, yb = ya - _R - 2, yb - _R - 4
        mid = ((xa + xb) / 2, ya - bow)
        label = (mid[0], (ya + mid[1]) / 2 - 5)
    else:
        xa, xb = xa - _R - 2, xb - _R - 4
        mid = (xa - bow, (ya + yb) / 2)
        label = ((xa + mid[0]) / 2 - 12, mid[1] + 4)
    yield Markup('<path class="back" d="M{} {}Q{} {} {} {}"/>').format(xa, ya, *mid, xb, yb)
    yield Markup('<circle class="tip" cx="{}" cy="{}" r="3.5"/>').format(xb, yb)
    yield _text(*label, f"{times}\N{MULTIPLICATION SIGN}", "small")


def _bow(a: int, b: int) -> int:
    return 26 + 11 * (a - b)


def _text(x: float, y: float, words: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, x, y, words)
