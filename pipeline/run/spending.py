"""Counts what a run has spent, what it may still spend, and the share of that which a dispatch gets.

Reserve, then settle: a dispatch that begins gets an equal share of what is left of each limit that it draws from,
side by side with the others that begin with it, so that together they cannot spend more than there is. What it did
spend counts when it is over; until then its whole share does. A dispatch that a crash took away has no share any more,
and counts with what the gateway wrote down of it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pipeline.run.info import DispatchRecord, DispatchResult, Reserved
from pipeline.vocabulary import Role, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pipeline.config.tables import Budget, BudgetPart
    from pipeline.run.run import KeptRun

    AnyRun = KeptRun[Any, Any, Any]

Phase = Literal["plan", "split", "tests", "make", "review", "publish"]

_PHASES: Final[dict[str, Phase]] = {
    "3": "plan",
    "4": "plan",
    "5": "split",
    "5.5": "split",
    "6": "tests",
    "7": "make",
    "6+7": "make",
    "8": "review",
    "9": "publish",
}
_NOTHING_USD: Final = 1e-6
"""Sums of prices are a little off; less than this buys no answer."""
_WITHOUT_MODEL: Final = frozenset({"scripted", "human", "command"})
"""Backends that reach a model through the gateway or not at all; where they could otherwise, a budget is refused."""


@dataclass(frozen=True)
class Spent:
    """What dispatches took together. `cost_usd` and `tokens` are what is known; the others did not say."""

    dispatches: int = 0
    asked: int = 0
    """How many of them asked a model, as far as is known."""
    cost_usd: float = 0.0
    tokens: int = 0
    unpriced: tuple[str, ...] = ()
    """Dispatches whose cost nobody knows."""
    uncounted: tuple[str, ...] = ()
    """Dispatches whose tokens nobody knows."""

    def __str__(self) -> str:
        number = f"{self.dispatches} dispatch" + ("es" if self.dispatches != 1 else "")
        if not self.asked:
            return f"{number}, no model asked"
        if self.unpriced and self.uncounted and not (self.cost_usd or self.tokens):
            return f"{number}, cost and tokens not known"
        cost = _known("at least {:.4f} USD, {} of unknown cost", "{:.4f} USD", self.cost_usd, self.unpriced)
        tokens = _known("at least {} tokens, {} not counted", "{} tokens", self.tokens, self.uncounted)
        return f"{number}, {cost}, {tokens}"

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.dispatches + other.dispatches,
            self.asked + other.asked,
            self.cost_usd + other.cost_usd,
            self.tokens + other.tokens,
            self.unpriced + other.unpriced,
            self.uncounted + other.uncounted,
        )


def _known(part: str, whole: str, value: float, missing: tuple[str, ...]) -> str:
    return part.format(value, len(missing)) if missing else whole.format(value)


@dataclass(frozen=True)
class UsedUp:
    """Why no dispatch may begin."""

    why: str


@dataclass(frozen=True)
class Held:
    """Why none may begin before one that is at work has ended: all that is left is its share."""

    why: str


def phase_of(step: str) -> Phase | None:
    """Return the phase that a step's dispatches are counted in; None for a step that is not the matrix's."""
    return _PHASES.get(Step(step).phase) if step in set(Step) else None


def spent(run: AnyRun) -> Spent:
    """Return what the dispatches took, finished and lost ones."""
    return sum((_of(run, record) for record in run.records.values()), Spent())


def by_role(run: AnyRun) -> dict[str, Spent]:
    """Return what each role took, in the order in which they were first asked."""
    return _by(run, lambda record: record.role)


def by_phase(run: AnyRun) -> dict[str, Spent]:
    """Return what each phase took, in the order of the run."""
    return _by(run, lambda record: phase_of(record.step) or "other")


def _by(run: AnyRun, name_of: Callable[[DispatchRecord], str]) -> dict[str, Spent]:
    found: dict[str, Spent] = {}
    for record in run.records.values():
        name = name_of(record)
        found[name] = found.get(name, Spent()) + _of(run, record)
    return found


def reserve(
    run: AnyRun, budget: Budget, begin: Sequence[tuple[Role, str]], *, beside: int = 0
) -> list[Reserved] | UsedUp | Held:
    """Return what each dispatch of *begin*, a role and a step, may spend; or why none of them may begin.

    Args:
        run: The run; the shares of its dispatches that are at work are taken.
        budget: What it may spend.
        begin: Those that begin now, together.
        beside: How many more may want to begin before one of these is over.
    """
    shares: list[list[Reserved]] = [[] for _ in begin]
    for name, part, drawn in _parts(budget, begin):
        if part.cost_usd is None and part.tokens is None:
            continue
        drawing = [at for at, one in enumerate(begin) if drawn(*one)]
        belongs = [record for record in run.records.values() if drawn(record.role, record.step)]
        left = _left(name, part, sum((_at_most(record, _of(run, record)) for record in belongs), Spent()))
        if isinstance(left, UsedUp):
            return left
        taken = (_at_most(record, _of(run, record, with_share=True)) for record in belongs)
        left = _left(name, part, sum(taken, Spent()))
        if isinstance(left, UsedUp):
            return Held(left.why)
        for at in drawing:
            shares[at].append(_part(left, len(drawing) + beside))
    return [_least(each) for each in shares]


def _parts(
    budget: Budget, begin: Sequence[tuple[Role, str]]
) -> Iterable[tuple[str, BudgetPart, Callable[[Role, str], bool]]]:
    yield "budget", budget, lambda _role, _step: True
    for wanted in Counter(role for role, _ in begin):
        part = cast("BudgetPart", getattr(budget.roles, wanted.value))
        yield f"budget.roles.{wanted}", part, lambda role, _step, wanted=wanted: role is wanted
    for phase in Counter(phase_of(step) for _, step in begin):
        if phase is not None:
            part = cast("BudgetPart", getattr(budget.phases, phase))
            yield f"budget.phases.{phase}", part, lambda _role, step, phase=phase: phase_of(step) == phase


def _left(name: str, part: BudgetPart, taken: Spent) -> Reserved | UsedUp:
    """Return what is left of a limit."""
    if part.cost_usd is not None and taken.cost_usd >= part.cost_usd - _NOTHING_USD:
        return UsedUp(
            f"{taken.cost_usd:.4f} of {name}.cost_usd = {part.cost_usd:g} USD are spent{_with(taken.unpriced)}"
        )
    if part.tokens is not None and taken.tokens >= part.tokens:
        return UsedUp(f"{taken.tokens} of {name}.tokens = {part.tokens} are spent{_with(taken.uncounted)}")
    return Reserved(
        cost_usd=None if part.cost_usd is None else part.cost_usd - taken.cost_usd,
        tokens=None if part.tokens is None else part.tokens - taken.tokens,
    )


def _with(unknown: tuple[str, ...]) -> str:
    return f", with the whole share of {unknown[-1]}, since nobody knows what it took" if unknown else ""


def _part(left: Reserved, among: int) -> Reserved:
    return Reserved(
        cost_usd=None if left.cost_usd is None else left.cost_usd / among,
        tokens=None if left.tokens is None else max(1, left.tokens // among),
    )


def _least(shares: list[Reserved]) -> Reserved:
    return Reserved(
        cost_usd=min((share.cost_usd for share in shares if share.cost_usd is not None), default=None),
        tokens=min((share.tokens for share in shares if share.tokens is not None), default=None),
    )


def _of(run: AnyRun, record: DispatchRecord, *, with_share: bool = False) -> Spent:
    """Return what a dispatch took; *with_share*: of one that is at work what it may take, if that is more."""
    folder = run.folder / "dispatches" / record.dispatch
    # a desk that was offered again: the same dispatch waits there, and nobody was paid
    attempts = [] if record.offered_again else list(folder.parent.glob(f"{folder.name}.lost-*"))
    lost = sum((_lost(record, each) for each in attempts), Spent())
    result = run.results.get(record.dispatch)
    if result is None:
        here = _lost(record, folder) if folder.is_dir() else Spent()
        before = run.at_work.get(record.dispatch) if with_share else None
        if before is None:
            return lost + here
        # what lies there may still be the lost attempt's
        return lost + (_share(record, here) if len(attempts) == before else here + _share(record, Spent()))
    usage = result.usage
    if record.backend in _WITHOUT_MODEL and result.model_traffic is None:
        return lost + Spent(dispatches=1)
    known = usage.input_tokens is not None and usage.output_tokens is not None
    return lost + Spent(
        dispatches=1,
        asked=1,
        cost_usd=max(usage.cost_usd or 0.0, _measured(result)),
        tokens=(usage.input_tokens or 0) + (usage.output_tokens or 0),
        unpriced=() if usage.cost_usd is not None else (record.dispatch,),
        uncounted=() if known else (record.dispatch,),
    )


def _at_most(record: DispatchRecord, took: Spent) -> Spent:
    """Return what a dispatch took, and its share where nobody knows; one that began before the limit had none."""
    share = record.reserved or Reserved()
    return replace(
        took,
        cost_usd=max(took.cost_usd, share.cost_usd or 0.0) if took.unpriced else took.cost_usd,
        tokens=max(took.tokens, share.tokens or 0) if took.uncounted else took.tokens,
    )


def _share(record: DispatchRecord, here: Spent) -> Spent:
    share = record.reserved or Reserved()
    return Spent(
        dispatches=1,
        asked=here.asked,
        cost_usd=max(here.cost_usd, share.cost_usd or 0.0),
        tokens=max(here.tokens, share.tokens or 0),
        unpriced=here.unpriced if share.cost_usd is None else (),
        uncounted=here.uncounted if share.tokens is None else (),
    )


def _measured(result: DispatchResult) -> float:
    """Return what the gateway saw. What a product says of its cost may come from an agent that wants to go on."""
    return (result.model_traffic.cost_usd if result.model_traffic is not None else None) or 0.0


def _lost(record: DispatchRecord, folder: Path) -> Spent:
    """Return what the gateway wrote down of a dispatch that never finished."""
    logs = [folder / "model.jsonl", *sorted(folder.glob("try-*/model.jsonl"))]
    lines = [line for log in logs if log.is_file() for line in _lines(log)]
    answered = [line for line in lines if "tokens" in line]
    begun = (folder / "process.json").exists() or (folder / "stdout.log").exists()
    unknown = record.model is not None and record.service is None and begun and not lines
    costs = [line.get("cost_usd") for line in answered]
    tokens = [line.get("tokens") for line in answered]
    return Spent(
        dispatches=1,
        asked=1 if unknown or lines else 0,
        cost_usd=sum(cost for cost in costs if isinstance(cost, int | float)),
        tokens=sum(_total(each) for each in tokens),
        unpriced=(folder.name,) if unknown or None in costs else (),
        uncounted=(folder.name,) if unknown or None in tokens else (),
    )


def _total(tokens: object) -> int:
    if not isinstance(tokens, dict):
        return 0
    known = cast("dict[str, object]", tokens)
    return sum(count for count in map(known.get, ("input", "output")) if isinstance(count, int))


def _lines(log: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for text in log.read_text("ascii", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):  # a driver that was killed while it wrote
            continue
        if isinstance(line, dict):
            found.append(cast("dict[str, object]", line))
    return found
