"""Turns errors of a model's SDK into a fault and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    OutputTokenLimitExceeded,
)

from pipeline.backends.protocol import Fault
from pipeline.policy.characters import visible

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_SHOWN: Final = 300
_PASSING: Final = (ModelConnectionError, ModelRateLimitError, ModelServerError, ModelUnavailableError)
_RULES: Final = {
    "budget": Fault.BUDGET,
    "steps": Fault.STEPS,
    "max_requests": Fault.STEPS,
    "max_request_bytes": Fault.STEPS,
    "max_response_bytes": Fault.STEPS,
}
"""Faults by the gateway's rule, where the dispatch has used up its allowance."""


@dataclass(frozen=True)
class Failure:
    """The reason why a model gave no answer.

    Args:
        fault: What kind of failure it is; None where only the request was at fault.
        sentence: For people, and for the agent.
        again_s: After how many seconds the same request may work; None if it will not.
    """

    fault: Fault | None
    sentence: str
    again_s: float | None = None


def failure_of(error: Exception, service: str) -> Failure:
    """Return the failure that an exception of the SDK stands for.

    Total: what it raises for an answer is the service's fault, unless the model has made its history unfit to be sent.
    """
    said = _said(error)
    if rule := _own_rule(error):
        return Failure(_RULES.get(rule, Fault.UNAVAILABLE), said, _again(error))
    match error:
        case ContentFilterError():
            return Failure(Fault.REFUSED, "The model declined to answer.")
        case OutputTokenLimitExceeded():
            return _TRUNCATED
        case ModelContextWindowExceededError():
            return Failure(None, "The conversation is longer than the model can take; read less at a time.")
        case ModelAuthenticationError():
            status = getattr(error, "status_code", "")
            return Failure(Fault.UNAUTHORIZED, f"The model service {service} refused the credential ({status}): {said}")
        case ModelQuotaExceededError():
            return Failure(Fault.UNAVAILABLE, f"The account at the model service {service} is used up: {said}")
        case ModelHTTPError():
            sentence = f"The model service {service} answered {error.status_code}: {said}"
            return Failure(Fault.UNAVAILABLE, sentence, _again(error))
        case UnicodeEncodeError() | RecursionError():
            return Failure(None, "The model's words cannot be sent back: they nest too deep, or are no text.")
        case _:
            sentence = f"The model service {service} gave no proper answer: {said}"
            return Failure(Fault.UNAVAILABLE, sentence, _again(error))


def _again(error: Exception) -> float | None:
    if not isinstance(error, _PASSING) or getattr(error, "provider_retry_hint", None) is False:
        return None
    return error.retry_after or 0.0


def fault_in(response: ModelResponse) -> Failure | None:
    """Return why a model's response is no answer, None if it is one."""
    if response.finish_reason == "content_filter":
        return Failure(Fault.REFUSED, "The model declined to answer.")
    if response.finish_reason == "length":
        return _TRUNCATED
    if not response.tool_calls and not (response.text or "").strip():
        return Failure(Fault.EMPTY, "The turn ended without a word.")
    return None


_TRUNCATED: Final = Failure(Fault.TRUNCATED, "The model's answer was cut off at its limit of output; say less at once.")


def _own_rule(error: Exception) -> str | None:
    """Return the gateway's rule if the gateway refused the request, else None."""
    found = _error_of(error)
    return str(found.get("code")) if found.get("type") == "redfirst" else None


def _said(error: Exception) -> str:
    message = _error_of(error).get("message") or str(error) or type(error).__name__
    line = visible(" ".join(str(message).split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."


def _error_of(error: Exception) -> dict[str, Any]:
    """Return the error document of a service or the gateway; each SDK unwraps it differently."""
    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        return {}
    document = cast("dict[str, Any]", body)
    inner = document.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else document
