"""Adds up what one dispatch spends on models, and limits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.gateway.prices import Tokens
from pipeline.gateway.rules import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.gateway.usage import Reading

UNNAMED: Final = "unknown"
"""The name for a model that no answer named."""


@dataclass(frozen=True)
class Allowance:
    """The most that one dispatch may spend; None is no limit.

    What was begun is not cut short: in the end it is more by at most what ran side by side.

    Args:
        tokens: Input and output together.
        cost_usd: In USD. Nobody can keep to it with a model that has no price (`Spent.unpriced`).
        answers: Answers of a model.
    """

    tokens: int | None = None
    cost_usd: float | None = None
    answers: int | None = None

    def less(self, spent: Spent) -> Allowance:
        """Return the allowance that is left after *spent*; answers are counted for each agent anew."""
        return Allowance(
            None if self.tokens is None else max(0, self.tokens - spent.tokens.total),
            None if self.cost_usd is None else max(0.0, self.cost_usd - spent.priced_usd),
            self.answers,
        )


@dataclass(frozen=True)
class Spent:
    """The known spending on models.

    Args:
        answers: How many requests a model answered.
        by_model: What they took, by the model that answered.
        priced_usd: What that cost, as far as there are prices.
        unpriced: Models that answered and have no price.
        unmetered: Answers that did not say what they took.
        cut: Answers that broke off: they took at least what is counted of them.
    """

    answers: int = 0
    by_model: Mapping[str, Tokens] = field(default_factory=dict[str, Tokens])
    priced_usd: float = 0.0
    unpriced: tuple[str, ...] = ()
    unmetered: int = 0
    cut: int = 0

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of all models together; complete if `unmetered` is 0."""
        return sum(self.by_model.values(), Tokens())

    @property
    def cost_usd(self) -> float | None:
        """Return the total cost in USD; None if part of it is unknown."""
        return None if self.unmetered or self.unpriced else self.priced_usd

    def __add__(self, other: Spent) -> Spent:
        models = dict.fromkeys((*self.by_model, *other.by_model))
        none = Tokens()
        return Spent(
            answers=self.answers + other.answers,
            by_model={model: self.by_model.get(model, none) + other.by_model.get(model, none) for model in models},
            priced_usd=self.priced_usd + other.priced_usd,
            unpriced=tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
            unmetered=self.unmetered + other.unmetered,
            cut=self.cut + other.cut,
        )


def _nobody_knows(_model: str, _tokens: Tokens) -> None:
    return None


@dataclass
class Account:
    """Adds up the spending that answers report.

    Args:
        allowance: What may be taken.
        price: Returns what one answer of a model cost in USD; None if nobody knows.
    """

    allowance: Allowance = Allowance()
    price: Callable[[str, Tokens], float | None] = _nobody_knows
    _answers: int = field(default=0, init=False)
    _by_model: dict[str, Tokens] = field(default_factory=dict[str, Tokens], init=False)
    _priced_usd: float = field(default=0.0, init=False)
    _unpriced: dict[str, None] = field(default_factory=dict[str, None], init=False)
    _unmetered: int = field(default=0, init=False)
    _cut: int = field(default=0, init=False)

    @property
    def spent(self) -> Spent:
        """Return the spending so far."""
        return Spent(
            answers=self._answers,
            by_model=dict(self._by_model),
            priced_usd=self._priced_usd,
            unpriced=tuple(self._unpriced),
            unmetered=self._unmetered,
            cut=self._cut,
        )

    def settle(self, reading: Reading) -> float | None:
        """Add the spending of one answer; return its cost in USD, None if it is unknown."""
        self._answers += 1
        if reading.tokens is None:
            self._unmetered += 1
            return None
        self._cut += not reading.complete
        model = reading.model or UNNAMED
        self._by_model[model] = self._by_model.get(model, Tokens()) + reading.tokens
        cost = self.price(model, reading.tokens)
        if cost is None:
            self._unpriced[model] = None
        self._priced_usd += cost or 0.0
        return cost

    def used_up(self) -> Refusal | None:
        """Return the refusal once the allowance is used up, None before."""
        allowed, spent = self.allowance, self.spent
        if allowed.tokens is not None and spent.tokens.total >= allowed.tokens:
            return _used_up("budget", f"{spent.tokens.total} of {allowed.tokens} tokens")
        if allowed.cost_usd is not None and spent.priced_usd >= allowed.cost_usd:
            return _used_up("budget", f"{spent.priced_usd:.4f} of {allowed.cost_usd:.4f} USD")
        if allowed.answers is not None and spent.answers >= allowed.answers:
            return _used_up("steps", f"{spent.answers} of {allowed.answers} answers of the model")
        return None


def _used_up(rule: str, what: str) -> Refusal:
    # 402 is a status that no agent takes for a reason to ask again.
    return Refusal(402, rule, f"This dispatch has used up its budget: {what}.")
