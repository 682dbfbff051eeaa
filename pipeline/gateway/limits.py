"""Limits how much one dispatch may request of its model service; nothing else limits the agent (ADR-R37)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.gateway.rules import Refusal
from pipeline.gateway.spending import Account, Spent

if TYPE_CHECKING:
    from pipeline.config.providers import Provider

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
    return Refusal(429, cap, f"A cap of redfirst, {cap}, is reached: {what}.", again=again)
