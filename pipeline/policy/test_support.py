"""Recognises files that serve tests without being tests (data, snapshots, stand-ins) by folder and ending.

pytest, jest, vitest, insta, go and their users all have habits here; none of them asks anybody. What the test runner
itself counts as its own is in its `Layout`, not here.
"""

from __future__ import annotations

import re
from typing import Final

_FOLDERS: Final = re.compile(
    r"__(?:tests|mocks|snapshots|fixtures|image_snapshots)__"
    r"|(?:test|tests|spec|specs)[-_]?(?:data|fixtures|files|assets|resources|cases|helpers|support|utils)"
    r"|(?:tests?|specs?|snapshots|fixtures|golden|goldens|testdata|cassettes)"
)
_NAMES: Final = re.compile(r"conftest\.py|.+\.(?:snap|snap\.new|ambr|golden|approved\.[^./]+|raw)")


def lies_among_tests(path: str) -> bool:
    """Return whether a folder of the file, or its own name, is customary for test support."""
    *folders, name = path.casefold().split("/")
    return _NAMES.fullmatch(name) is not None or any(_FOLDERS.fullmatch(folder) for folder in folders)
