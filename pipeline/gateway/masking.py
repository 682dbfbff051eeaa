"""Removes the credential from answers: some services echo it in their error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.secret_encodings import pattern, secret_encodings

if TYPE_CHECKING:
    from pydantic import SecretStr


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
