"""Recognises paths at which a language can have tests; `reports.hygiene` uses it on drafts."""

from __future__ import annotations

import re
from typing import Final

from pipeline.languages.table import has_part, language_of, part_for

_SAYS_TEST: Final = re.compile(r"(?<![a-z])(?:tests?|specs?)(?![a-z])")


def is_plausible(path: str) -> bool:
    """Return whether `path` can be a test file: a folder or its name contains test or spec.

    A language where tests stand in other places says so itself.
    """
    own = part_for(path, "test_names")
    if own is not None:
        return own.is_plausible(path)
    language, name = language_of(path), path.rpartition("/")[2]
    is_helper = language is not None and name == language.helper
    return is_helper or any(_SAYS_TEST.search(part.casefold()) for part in path.split("/"))


def why_overlooked(path: str) -> str | None:
    """Return why a test at `path` would not be run, None if it would."""
    own = part_for(path, "test_names")
    return own.why_overlooked(path) if own is not None else None


def may_share_file(path: str) -> bool:
    """Return whether tests may be in a production file."""
    return has_part(path, "test_regions")
