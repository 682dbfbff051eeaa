"""Stops a dispatch whose model service fails persistently, where further requests are useless.

Agents ask again by themselves, some of them for minutes and with a credential that was refused. So a dispatch is
stopped from here: at once where asking again changes nothing, else when the service has done nothing but fail for
longer than an agent should wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.agents.gateway.rules import Refusal


class Trouble(StrEnum):
    """The reasons why a model service fails an agent."""

    UNAUTHORIZED = "unauthorized"
    """The credential is refused, or the account may not ask (401, 402, 403)."""
    UNAVAILABLE = "unavailable"
    """The service is down, overloaded, out of reach, or proves to be somebody else (5xx, no answer, certificate)."""
    RATE_LIMITED = "rate_limited"
    """The account has asked too much for now (429)."""
    NOT_FOUND = "not_found"
    """The service has no such model, or nothing at this address (404)."""
    BUDGET = "budget"
    """The dispatch has used up its tokens or money."""
    STEPS = "steps"
    """The dispatch has used up its number of answers."""


_TROUBLES: Final[Mapping[int, Trouble]] = {
    HTTPStatus.UNAUTHORIZED: Trouble.UNAUTHORIZED,
    HTTPStatus.PAYMENT_REQUIRED: Trouble.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: Trouble.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND: Trouble.NOT_FOUND,
    HTTPStatus.TOO_MANY_REQUESTS: Trouble.RATE_LIMITED,
    HTTPStatus.REQUEST_TIMEOUT: Trouble.UNAVAILABLE,
}
"""The trouble that an HTTP status stands for, beside those of a server."""


@dataclass(frozen=True)
class Halt:
    """The reason why a dispatch is stopped.

    Args:
        trouble: The kind.
        why: A sentence for the user; names the service and its status, never a credential.
        status: What the service answered; None if it did not.
        retry_after_s: How long the service wants to be left alone, in seconds; None if it does not say.
        not_before: When it may be asked again, by the same word.
    """

    trouble: Trouble
    why: str
    status: int | None = None
    retry_after_s: float | None = None
    not_before: datetime | None = None


@dataclass(frozen=True)
class Ending:
    """The result of one request to a model, as it shows the state of the service.

    Args:
        status: What the service answered; None if nothing.
        whole: Whether all of the answer came.
        failed: Whether the service says, within an answer that began well, that it could not go on.
        refusal: What kept the request from being carried, or cut it off.
        retry_after_s: How long the service wants to be left alone, in seconds.
        not_before: When it may be asked again, by the same word.
    """

    status: int | None = None
    whole: bool = False
    failed: bool = False
    refusal: Refusal | None = None
    retry_after_s: float | None = None
    not_before: datetime | None = None


@dataclass(frozen=True)
class Patience:
    """The failures in a row that stop a dispatch: so many requests, over so many seconds."""

    requests: int = 4
    seconds: float = 60.0


PATIENCE: Final = Patience()
_OF_THE_SERVICE: Final = frozenset({"upstream", "certificate", "proxy", "encoded", "timeout_s"})
"""The refusals that are caused by the service and not by the agent's request."""


@dataclass
class Watch:
    """Watches how requests end. `failing` is the last failure if no request has succeeded since.

    Args:
        service: What the user calls it, with its address.
        variable: Where its credential is from; None if it wants none.
        patience: How long it may do nothing but fail.
    """

    service: str
    variable: str | None = None
    patience: Patience = PATIENCE
    failing: Halt | None = field(default=None, init=False)
    halt: Halt | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)
    _stopped: anyio.Event = field(default_factory=anyio.Event, init=False)

    def see(self, ending: Ending, now: float) -> None:
        """Record how a request ended at *now*, in seconds of a monotonic clock."""
        failure = self._failure(ending)
        if failure is None:
            if ending.whole:
                self._failures, self.failing = 0, None
            return
        self._failures, self.failing = self._failures + 1, failure
        if self._failures == 1:
            self._since = now
        tried = self._failures >= self.patience.requests and now - self._since >= self.patience.seconds
        too_long = failure.retry_after_s is not None and failure.retry_after_s > self.patience.seconds
        if failure.trouble is Trouble.UNAUTHORIZED or tried or too_long:
            self.stop(failure)

    def stop(self, halt: Halt) -> None:
        """Stop the dispatch, unless it is stopped already."""
        self.halt = self.halt or halt
        self._stopped.set()

    async def halted(self) -> Halt:
        """Wait until the dispatch should be stopped, and return why."""
        while self.halt is None:
            await self._stopped.wait()
        return self.halt

    def _failure(self, ending: Ending) -> Halt | None:
        status, refusal = ending.status, ending.refusal
        if refusal is not None and refusal.rule in _OF_THE_SERVICE:
            return Halt(Trouble.UNAVAILABLE, f"No answer from {self.service}: {refusal.why}", status)
        if status is None:
            return None
        trouble = _TROUBLES.get(status, Trouble.UNAVAILABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else None)
        if trouble is not None:
            why = f"{self.service} answered {status}: {self._meaning(trouble, status)}."
            return Halt(trouble, why, status, ending.retry_after_s, ending.not_before)
        if ending.failed and status < HTTPStatus.BAD_REQUEST:
            return Halt(Trouble.UNAVAILABLE, f"{self.service} broke off its answer with an error.", status)
        return None

    def _meaning(self, trouble: Trouble, status: int) -> str:
        match trouble:
            case Trouble.UNAUTHORIZED if status == HTTPStatus.PAYMENT_REQUIRED:
                return "the account has nothing left to pay with"
            case Trouble.UNAUTHORIZED if self.variable is None:
                return "it wants a credential, and the configuration names none (credential_env)"
            case Trouble.UNAUTHORIZED:
                return f"it refuses the credential in {self.variable}"
            case Trouble.NOT_FOUND:
                return "it does not know the model, or has nothing at this address"
            case Trouble.RATE_LIMITED:
                return "the account has asked too much for now"
            case _:
                return "it is down or overloaded"
