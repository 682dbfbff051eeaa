"""Finds removed examples in documentation, which are tests inside production files."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Collection

_SHOWN: Final = 80


def lost(changes: Collection[tuple[str, bytes | None, bytes | None]], run: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each example that no longer exists unchanged in any file.

    Args:
        changes: Files that are no tests, with their contents before and after, None where there is none.
        run: Files of which examples were run.
    """
    before = {path: _examples(path, old) - _examples(path, new) for path, old, new in changes}
    after = sum((_examples(path, new) - _examples(path, old) for path, old, new in changes), Counter[str]())
    return tuple(
        f"{path}: an example in its documentation is gone, or is another now: `{example[:_SHOWN]}`"
        for path, examples in before.items()
        if path in run
        for example in examples - after
    )


def _examples(path: str, source: bytes | None) -> Counter[str]:
    pattern = next((one.examples for one in LANGUAGES.values() if path.endswith((*one.sources, *one.texts))), "")
    text = source.decode("utf-8", "replace") if source is not None and pattern else ""
    return Counter(" ".join(one[0].split()) for one in re.finditer(pattern, text, re.MULTILINE) if one[0])
