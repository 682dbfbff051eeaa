"""A text in the encodings that anybody undoes without a key: for tests of what must not show it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COMPONENT: Final = "!'()*"


def _every_byte(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


ENCODINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "reversed": lambda text: text[::-1],
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, no padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 after one byte": lambda text: base64.b64encode(f":{text}".encode()).decode(),
    "base64 after two bytes": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    "base64 in a text": lambda text: base64.b64encode(f"Bearer {text}, and more".encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 for URLs, after one byte": lambda text: base64.urlsafe_b64encode(f":{text}".encode()).decode(),
    "base64 for URLs, after two bytes": lambda text: base64.urlsafe_b64encode(f"u:{text}".encode()).decode(),
    "percent": lambda text: quote(text, safe=""),
    "percent, small": lambda text: _small(quote(text, safe="")),
    "percent in a path": quote,
    "percent in a form": quote_plus,
    "percent in JavaScript": lambda text: quote(text, safe=_COMPONENT),
    "percent, every byte": _every_byte,
    "percent, every byte, small": lambda text: _every_byte(text).lower(),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
}


def _small(text: str) -> str:
    """Return percent-encoded text with small hexadecimal digits."""
    head, *rest = text.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
