"""Counts models' tokens and computes their cost. An unknown price is None, never 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.config.providers import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.providers import PriceTable

_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8}|-latest|:latest)$")
"""Suffixes that services add to the requested model's name."""
_NAMED: Final = frozenset({"anthropic", "openai", "google", "openrouter"})
"""Built-in services with the same name in the price list; others are identified by their address alone."""
_NONE: Final[Mapping[str, PriceTable]] = MappingProxyType({})


@dataclass(frozen=True)
class Tokens:
    """The tokens of requests. `input` includes `cache_read` and `cache_write`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Return the sum of input and output tokens."""
        return self.input + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def cost_of(
    provider: str, model: str, tokens: Tokens, prices: Mapping[str, PriceTable] = _NONE, *, url: str | None = None
) -> float | None:
    """Return the cost of a request in USD; None if its price is unknown.

    Prices may rise with the length of a prompt, so ask for each request and not for a sum.

    Args:
        provider: The name of the model service in the configuration.
        model: As the service calls it.
        tokens: What the request consumed.
        prices: The configuration's own (`[prices]`), which hold before all others.
        url: Where the service is. What runs on this machine has no price but its own.
    """
    own = prices.get(model) or prices.get(_DATED.sub("", model))
    if own is not None:
        return _by(own, tokens)
    if url is not None and is_loopback(urlsplit(url).hostname or ""):
        return None
    return _by_the_list(provider, model, tokens, url)


def _by(price: PriceTable, tokens: Tokens) -> float:
    fresh = max(0, tokens.input - tokens.cache_read - tokens.cache_write)
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    usd = fresh * price.input + tokens.cache_read * read + tokens.cache_write * write + tokens.output * price.output
    return usd / _MILLION


def _by_the_list(provider: str, model: str, tokens: Tokens, url: str | None) -> float | None:
    # A megabyte of prices, which most commands never need.
    from genai_prices import Usage  # noqa: PLC0415
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    usage = Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
    )
    for name, address in ((None, url), (provider if provider in _NAMED else None, None)):
        if name is None and address is None:
            continue
        try:
            found = get_snapshot().calc(usage, model, name, address, None)
        except (LookupError, ValueError):  # not known, or figures that contradict each other
            continue
        # A model that is paid by the picture or the second has no price for what we counted.
        if all(getattr(found.model_price, key, None) is not None for key in ("input_mtok", "output_mtok")):
            return float(found.total_price)
    return None
