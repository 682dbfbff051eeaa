"""Adds up what one dispatch spends on models and asks of its service, and limits both; nothing else limits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.agents.gateway.rules import Refusal
from pipeline.agents.gateway.usage import Reading, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.config.providers import Provider


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
    spent: Spent = field(default_factory=Spent, init=False)

    def settle(self, reading: Reading) -> float | None:
        """Add the spending of one answer; return its cost in USD, None if it is unknown."""
        cost = None
        if reading.tokens is None:
            answer = Spent(answers=1, unmetered=1)
        else:
            model = reading.model or UNNAMED
            cost = self.price(model, reading.tokens)
            unpriced = (model,) if cost is None else ()
            answer = Spent(1, {model: reading.tokens}, cost or 0.0, unpriced, cut=int(not reading.complete))
        self.spent += answer
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


USED_UP: Final = 402
"""A status that no agent takes for a reason to ask again."""


def _used_up(rule: str, what: str) -> Refusal:
    return Refusal(USED_UP, rule, f"This dispatch has used up its budget: {what}.")


AT_ONCE: Final = 16
"""The most requests of one dispatch at the same time."""


@dataclass(frozen=True)
class GatewayUse:
    """The use of one dispatch: requests forwarded and refused, bytes of bodies, models' tokens and cost."""

    requests: int = 0
    refused: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    spent: Spent = field(default_factory=Spent)

    def __add__(self, other: GatewayUse) -> GatewayUse:
        return GatewayUse(
            self.requests + other.requests,
            self.refused + other.refused,
            self.bytes_up + other.bytes_up,
            self.bytes_down + other.bytes_down,
            self.spent + other.spent,
        )


@dataclass
class Meter:
    """Counts requests and bytes, and refuses what is beyond the provider's caps."""

    provider: Provider
    account: Account = field(default_factory=Account)
    requests: int = 0
    refused: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    running: int = field(default=0, init=False)

    @property
    def use(self) -> GatewayUse:
        """Return the requests, bytes and spending counted so far."""
        return GatewayUse(self.requests, self.refused, self.bytes_up, self.bytes_down, self.account.spent)

    def begin(self, length: int) -> Refusal | None:
        """Count a request with a body of *length* bytes, unless a cap refuses it; the caller ends each with `end`."""
        provider = self.provider
        if self.running >= AT_ONCE:
            return Refusal(429, "at-once", f"{AT_ONCE} requests are running; wait for one of them.", again=True)
        if self.requests >= provider.max_requests:
            return _reached("max_requests", f"this dispatch has made its {provider.max_requests} requests")
        if self.bytes_up + length > provider.max_request_bytes:
            return self._up_reached()
        if self.bytes_down >= provider.max_response_bytes:
            return self._down_reached()
        self.requests += 1
        self.running += 1
        return None

    def end(self) -> None:
        """Count a request as over."""
        self.running -= 1

    def sent(self, length: int) -> Refusal | None:
        """Count bytes that are about to be sent; return the refusal if a cap is reached."""
        if self.bytes_up + length > self.provider.max_request_bytes:
            return self._up_reached()
        self.bytes_up += length
        return None

    def received(self, length: int) -> Refusal | None:
        """Count received bytes; return the refusal if a cap is reached."""
        self.bytes_down += length
        return self._down_reached() if self.bytes_down > self.provider.max_response_bytes else None

    def late(self) -> Refusal:
        """Return the refusal of a request that took too long."""
        return _reached("timeout_s", f"one request may take {self.provider.timeout_s} seconds", again=True)

    def _up_reached(self) -> Refusal:
        return _reached("max_request_bytes", f"this dispatch may send {self.provider.max_request_bytes} bytes")

    def _down_reached(self) -> Refusal:
        return _reached("max_response_bytes", f"this dispatch may receive {self.provider.max_response_bytes} bytes")


def _reached(cap: str, what: str, *, again: bool = False) -> Refusal:
    return Refusal(429 if again else USED_UP, cap, f"A cap of redfirst, {cap}, is reached: {what}.", again=again)
