"""Where tests of a language can be, by the path alone: `reports.hygiene` asks this of drafts."""

from __future__ import annotations

import re
from typing import Final

from pipeline.languages.table import has_part, language_of, part_for

_SAYS_TEST: Final = re.compile(r"(?<![a-z])(?:tests?|specs?)(?![a-z])")


def is_plausible(path: str) -> bool:
    """Return whether `path` can be a test file by its name: a folder or name that says test or spec.

    A language where tests stand in other places says so itself.
    """
    own = part_for(path, "test_names")
    if own is not None:
        return own.is_plausible(path)
    language, name = language_of(path), path.rpartition("/")[2]
    is_helper = language is not None and name == language.helper
    return is_helper or any(_SAYS_TEST.search(part.casefold()) for part in path.split("/"))


def why_overlooked(path: str) -> str | None:
    """Return why no test at `path` would be run, None where it would."""
    own = part_for(path, "test_names")
    return own.why_overlooked(path) if own is not None else None


def may_share_file(path: str) -> bool:
    """Return whether tests may stand in a file of production."""
    return has_part(path, "test_regions")
