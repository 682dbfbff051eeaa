"""Reads deliveries: proves who sent one, and finds the event, its sender and the issue in it. No I/O.

GitHub signs the body alone, so a body that comes again under another id is the same delivery. Standard Webhooks sign
the id and the time as well.
"""

from __future__ import annotations

import base64
import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.config.triggers import Source, TriggerTable
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from todo import NewIssue, is_issue_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


Body = TypeVar("Body", bound=BaseModel)

LARGEST: Final = 1 << 20
"""The largest body, in bytes."""
TOLERANCE_S: Final = 300
"""By so much the time of a signature may differ from ours."""
_PREFIX: Final = "whsec_"
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_OWN: Final = re.compile(r"^(Run-Id: run-|Assisted-by: redfirst)", re.MULTILINE)
"""The trailers of what a run made: what quotes them came of a run."""


class RefusedError(UserError):
    """A delivery that is not taken.

    Args:
        status: The status of HTTP that says so.
        message: What is wrong, and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, Reason.INPUT_INVALID, details={"status": status})
        self.status = status


@dataclass(frozen=True)
class Incoming:
    """A delivery whose sender is proven.

    Args:
        id: Its name, which the sender gives once.
        digest: What it is also known by: the same delivery under another name.
        event: What happened.
        labels: The labels that it is about.
        sender: Who brought it about; empty where nobody is named.
        issue: The issue that comes with it, or the id of one of the tracker; None where there is none.
        is_own: Whether a run of ours made what is in it.
        cause: The order that it came of.
    """

    id: str
    digest: str
    event: str
    labels: frozenset[str]
    sender: str
    issue: NewIssue | str | None
    is_own: bool = False
    cause: str | None = None


def read(trigger: TriggerTable, secret: str | None, headers: Mapping[str, str], body: bytes, now: datetime) -> Incoming:
    """Return a delivery, once its signature is proven.

    Args:
        trigger: What it is delivered to.
        secret: That of signatures; None where none is wanted.
        headers: By their names in small letters.
        body: As it was sent.
        now: The time.

    Raises:
        RefusedError: the signature or its time is wrong (401), or the body cannot be read (400).
        UserError: the secret is none.
    """
    if trigger.source is Source.GITHUB:
        _prove(secret or "", headers, body)
        return _from_github(_id(headers, "x-github-delivery"), headers.get("x-github-event", ""), body)
    if secret is not None:
        _prove_standard(secret, headers, body, now)
    return _from_anybody(_id(headers, "webhook-id"), body)


def signature(secret: str, name: str, at: str, body: bytes) -> str:
    """Return the signature of a delivery as Standard Webhooks write it.

    Args:
        secret: The key as base64, with or without `whsec_`.
        name: The id of the delivery.
        at: Its time, in seconds since the epoch.
        body: What is sent.

    Raises:
        ValueError: the secret is no base64.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    mac = hmac.digest(key, f"{name}.{at}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(mac).decode()}"


def _prove(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    wanted = f"sha256={hmac.new(secret.encode(), body, sha256).hexdigest()}"
    if not hmac.compare_digest(wanted.encode(), headers.get("x-hub-signature-256", "").encode()):
        raise RefusedError(401, "X-Hub-Signature-256 does not fit the body. Compare the secrets on both sides.")


def _prove_standard(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Return if a delivery is signed as Standard Webhooks say, within the tolerance.

    Raises:
        RefusedError: it is not.
        UserError: the secret is none of that kind.
    """
    try:
        wanted = signature(secret, headers.get("webhook-id", ""), headers.get("webhook-timestamp", ""), body).encode()
    except ValueError:
        raise UserError(
            "The secret of a trigger for Standard Webhooks is whsec_ and base64, such as the output of: "
            'echo "whsec_$(openssl rand -base64 32)"',
            Reason.CONFIG,
        ) from None
    at, given = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(wanted, one.encode()) for one in given):
        raise RefusedError(401, "webhook-signature does not fit the delivery. Compare the secrets on both sides.")
    if not re.fullmatch(r"[0-9]{1,12}", at) or abs(now.timestamp() - int(at)) > TOLERANCE_S:
        minutes = TOLERANCE_S // 60
        raise RefusedError(401, f"webhook-timestamp is over {minutes} minutes away. Sign it anew, or set the clock.")


def _id(headers: Mapping[str, str], name: str) -> str:
    found = headers.get(name, "")
    if not _ID.fullmatch(found):
        raise RefusedError(400, f"The header {name} is missing, or is no id of a delivery.")
    return found


def _parse(model: type[Body], body: bytes) -> Body:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"])) or "the whole"
        raise RefusedError(400, f"The body is not JSON as it is wanted ({where}). Send application/json.") from None


# --- GitHub ----------------------------------------------------------------------------------------------------------


class _Label(BaseModel):
    name: str


class _Account(BaseModel):
    login: str


class _Text(BaseModel):
    body: str | None = None


class _GitHubIssue(_Text):
    number: Annotated[int, Field(ge=1, lt=10**12)]
    title: str
    labels: tuple[_Label, ...] = ()
    html_url: str = ""
    pull_request: dict[str, object] | None = None


class _GitHubBody(BaseModel):
    action: str = ""
    sender: _Account | None = None
    issue: _GitHubIssue | None = None
    label: _Label | None = None
    comment: _Text | None = None


def _from_github(name: str, event: str, body: bytes) -> Incoming:
    said = _parse(_GitHubBody, body)
    found = said.issue
    about = [said.label] if said.label is not None else [*(found.labels if found is not None else ())]
    texts = (one.body or "" for one in (said.issue, said.comment) if one is not None)
    issue = None
    if found is not None and found.pull_request is None:
        issue = NewIssue(
            title=found.title,
            id=f"GH-{found.number}",
            labels=tuple(one.name for one in found.labels if one.name.strip()),
            description=found.body or "",
            provenance=found.html_url,
        )
    return Incoming(
        id=name,
        digest=sha256(body).hexdigest(),
        event=f"{event}.{said.action}" if said.action else event,
        labels=frozenset(one.name for one in about),
        sender=said.sender.login if said.sender is not None else "",
        issue=issue,
        is_own=any(map(_is_own, texts)),
    )


def _is_own(text: str) -> bool:
    return _OWN.search(text.replace("\r\n", "\n")) is not None


# --- anybody else ----------------------------------------------------------------------------------------------------


class _Data(BaseModel):
    id: str
    title: str | None = None
    body: str = ""
    labels: tuple[str, ...] = ()
    sender: str = ""
    cause: str | None = None


class _AnyBody(BaseModel):
    type: str
    data: _Data


def _from_anybody(name: str, body: bytes) -> Incoming:
    said = _parse(_AnyBody, body)
    data = said.data
    if not is_issue_id(data.id):
        raise RefusedError(400, "data.id is no id of an issue: letters, digits, `-`, `_` and inner dots, as SHOP-12.")
    issue = data.id
    if data.title is not None:
        labels = tuple(one for one in data.labels if one.strip())
        issue = NewIssue(title=data.title, id=data.id, labels=labels, description=data.body)
    return Incoming(
        id=name,
        digest=name,
        event=said.type,
        labels=frozenset(data.labels),
        sender=data.sender,
        issue=issue,
        is_own=_is_own(data.body),
        cause=data.cause,
    )
