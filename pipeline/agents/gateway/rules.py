"""Decides which requests an agent may send to its model service: their form, method, path and headers.

Everything is refused or dropped that is not named here: a credential of the agent's own would carry data to an account
that is not the user's, and a request that two programs read differently could be two requests. Nothing here performs
I/O.

The credential is removed from answers, too: some services echo it in their error messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

from pipeline.sandbox.redaction import pattern, secret_encodings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import h11
    from pydantic import SecretStr


HEAD_BYTES: Final = 32_768
"""The largest request line with headers, in bytes."""

_HEADERS: Final = 100
_STRAY: Final = re.compile(rb"(?<!\r)\n|\r(?=[^\n])|[^\t\r\n -~]")
"""Bytes that no head may contain: half a line end, a control character, anything that is not ASCII."""
_FOLDED: Final = re.compile(rb"\r\n[ \t]")
_FRAMING: Final = re.compile(rb"\r\n(content-length|transfer-encoding):[ \t]*([^\r]*)", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")

_PATH: Final = re.compile(r"(/[A-Za-z0-9._~:@+,=-]+)+")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~:@+,=!$&'()*/?%;-]*")
_PARAMETERS: Final = frozenset(
    {
        *("after", "after_id", "alt", "api-version", "before", "before_id", "beta", "client_version", "limit", "order"),
        *("pageSize", "pageToken", "stream"),
    }
)
_PASSED: Final = frozenset(
    b"accept accept-language content-encoding content-type conversation_id idempotency-key openai-beta originator "
    b"session_id user-agent version x-app x-client-request-id x-goog-api-client".split()
)
_PASSED_FAMILIES: Final = (b"anthropic-", b"x-stainless-")
_KEPT_BACK: Final = frozenset(
    b"alt-svc anthropic-organization-id connection content-encoding keep-alive location openai-organization "
    b"openai-project proxy-authenticate proxy-connection set-cookie set-cookie2 strict-transport-security te trailer "
    b"transfer-encoding upgrade".split()
)


@dataclass(frozen=True)
class Refusal:
    """The reason why a request is not forwarded, or not completely.

    Args:
        status: The status of the answer, if there still can be one.
        rule: Stable name of the rule; also in the log.
        why: A sentence for the model.
        again: Whether the same request may work later.
    """

    status: int
    rule: str
    why: str
    again: bool = False


@dataclass(frozen=True)
class Admitted:
    """A request that may be forwarded: `target` and `headers` for the service, without credential and host.

    Args:
        method: GET or POST.
        path: Without the query.
        target: Path and what is left of the query.
        headers: Those that pass, and those of the body's framing.
        length: Of the body, in bytes; None if it is chunked.
    """

    method: str
    path: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    length: int | None


def judge_bytes(head: bytes | bytearray, start: int = 0) -> Refusal | None:
    """Return the fault in the bytes, from *start*, of a head that may be incomplete; None if there is none."""
    if len(head) > HEAD_BYTES:
        return Refusal(431, "head-size", f"The head of a request may have {HEAD_BYTES} bytes.")
    if _STRAY.search(head, start):
        return _malformed("only ASCII text is allowed there, and lines end with CR LF")
    return None


def judge_lines(head: bytes) -> Refusal | None:
    """Return the fault in a complete head that lenient parsers would accept (request smuggling); None if none."""
    if _FOLDED.search(head):
        return _malformed("a header has one line")
    framing = _FRAMING.findall(head)
    if len(framing) > 1:
        return _malformed("it says more than once how long its body is")
    if any(name.lower() == b"content-length" and not _LENGTH.fullmatch(value.rstrip()) for name, value in framing):
        return _malformed("its Content-Length is no number")
    return None


def judge_request(request: h11.Request, endpoints: Sequence[str]) -> Admitted | Refusal:
    """Return *request* in the form to be forwarded, or the refusal.

    Args:
        request: As h11 read it, after `judge_bytes` and `judge_lines`.
        endpoints: `METHOD /path` with an optional `/*` (config `paths`).
    """
    method, (path, _, query) = request.method.decode(), request.target.decode().partition("?")
    if request.http_version != b"1.1":
        return Refusal(505, "http-version", "Ask with HTTP/1.1.")
    if method not in {"GET", "POST"}:
        return Refusal(405, "method", "Only GET and POST reach the model service.")
    if len(request.headers) > _HEADERS:
        return Refusal(431, "head-size", f"A request may have {_HEADERS} headers.")
    if any(name == b"upgrade" for name, _ in request.headers):
        return Refusal(403, "upgrade", "A connection cannot be upgraded; use plain HTTP requests.")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")) or not _QUERY.fullmatch(query):
        return Refusal(403, "target", "The target must be a plain path such as /v1/messages, without any %, . or ..")
    if not any(_fits(f"{method} {path}", endpoint) for endpoint in endpoints):
        return Refusal(403, "path", f"Not among what may be asked of the model service: {', '.join(endpoints)}.")
    kept = "&".join(part for part in re.split("[&;]", query) if unquote_plus(part.partition("=")[0]) in _PARAMETERS)
    framing = {name: value for name, value in request.headers if name in {b"content-length", b"transfer-encoding"}}
    return Admitted(
        method=method,
        path=path,
        target=f"{path}?{kept}" if kept else path,
        headers=(*((name, value) for name, value in request.headers if _passes(name)), *framing.items()),
        length=None if b"transfer-encoding" in framing else int(framing.get(b"content-length", b"0")),
    )


def is_greeting(request: h11.Request) -> bool:
    """Return whether a request only checks that a server is there: one agent begins so, and it is not forwarded."""
    return request.method == b"HEAD" and request.target == b"/"


def answer_headers(headers: Iterable[tuple[bytes, bytes]], origin: str) -> tuple[tuple[bytes, bytes], ...] | Refusal:
    """Return the headers of an answer that the agent gets, or the refusal.

    Args:
        headers: The service's; names in lower case.
        origin: `https://host` of the service: a redirect elsewhere is not passed on.
    """
    found = list(headers)
    names = {name for name, _ in found}
    # The credential is looked for in what comes back, and we asked for no coding.
    if any(name == b"content-encoding" and value.lower() != b"identity" for name, value in found):
        return Refusal(502, "encoded", "The model service answered with an encoding that was not asked for.")
    dropped = _KEPT_BACK | ({b"content-length"} if b"transfer-encoding" in names else set[bytes]())
    places = [place for name, value in found if name == b"location" and (place := _own_place(value, origin))]
    return (
        *((name, value) for name, value in found if name not in dropped),
        *((b"location", place) for place in places[:1]),
        (b"connection", b"close"),
    )


def _fits(asked: str, endpoint: str) -> bool:
    return asked.startswith(endpoint[:-1]) if endpoint.endswith("/*") else asked == endpoint


def _passes(name: bytes) -> bool:
    return name in _PASSED or name.startswith(_PASSED_FAMILIES)


def _own_place(location: bytes, origin: str) -> bytes | None:
    """Return the path that *location* names on the service itself; None if it is elsewhere."""
    place = location.removeprefix(origin.encode())
    return place if place.startswith(b"/") and not place.startswith((b"//", b"/\\")) else None


def _malformed(why: str) -> Refusal:
    return Refusal(400, "malformed", f"The request is malformed: {why}.")


class Mask:
    """Replaces the credential, in every spelling, by as many asterisks, so that no length changes.

    Args:
        credential: At least one character of printable ASCII; None if there is nothing to hide.
    """

    def __init__(self, credential: SecretStr | None) -> None:
        forms = secret_encodings(credential.get_secret_value()) if credential is not None else frozenset[bytes]()
        self._pattern = pattern(forms)
        self._longest = max(map(len, forms), default=1)
        self._forms: dict[int, list[bytes]] = {}
        for form in forms:
            self._forms.setdefault(form[0], []).append(form)

    def cover(self, text: bytes) -> bytes:
        """Return the complete *text* with the credential masked."""
        return text if self._pattern is None else self._pattern.sub(lambda found: b"*" * len(found[0]), text)

    def pending(self, text: bytes) -> int:
        """Return how many bytes at the end of *text* may be the beginning of the credential."""
        end = text[max(0, len(text) - self._longest + 1) :]
        starts = (at for at, byte in enumerate(end) for form in self._forms.get(byte, ()) if form.startswith(end[at:]))
        return len(end) - next(starts, len(end))


class MaskedStream:
    """Masks a stream piece by piece; holds back only bytes that may be the beginning of the credential."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return the masked bytes that can be passed on after *piece* has arrived."""
        text = self._mask.cover(self._held + piece)
        cut = len(text) - self._mask.pending(text)
        self._held = text[cut:]
        return text[:cut]

    def rest(self) -> bytes:
        """Return the bytes that were held back, at the end of the stream."""
        held, self._held = self._held, b""
        return held
