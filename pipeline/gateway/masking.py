"""Takes the credential out of what a service sends back: some echo what they were sent in their error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pydantic import SecretStr


class Mask:
    """Replaces the credential by as many asterisks, so that no length changes.

    Args:
        credential: At least one character of printable ASCII; None if there is nothing to hide.
    """

    def __init__(self, credential: SecretStr | None) -> None:
        plain = credential.get_secret_value() if credential is not None else ""
        # As it is, in a URL, and in JSON that escapes slashes.
        forms = {plain, quote(plain, safe=""), plain.replace("/", r"\/")} - {""}
        self._needles = tuple(form.encode() for form in sorted(forms, key=len, reverse=True))

    def cover(self, text: bytes) -> bytes:
        """Return *text*, which is complete, without the credential."""
        for needle in self._needles:
            text = text.replace(needle, b"*" * len(needle))
        return text

    def pending(self, text: bytes) -> int:
        """Return how many bytes at the end of *text* may be the beginning of the credential."""
        longest = max(map(len, self._needles), default=1) - 1
        starts = range(max(0, len(text) - longest), len(text))
        return next(
            (len(text) - at for at in starts if any(needle.startswith(text[at:]) for needle in self._needles)), 0
        )


class MaskedStream:
    """Masks piece by piece; holds back no more than what may be the beginning of the credential."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what can be passed on."""
        text = self._mask.cover(self._held + piece)
        cut = len(text) - self._mask.pending(text)
        self._held = text[cut:]
        return text[:cut]

    def rest(self) -> bytes:
        """Return what was held back, at the end."""
        held, self._held = self._held, b""
        return held
