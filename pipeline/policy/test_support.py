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
_DATA: Final = re.compile(
    r".+\.(?:snap|ambr|golden|approved\.[^./]+|json|jsonl|ya?ml|toml|txt|csv|tsv|xml|html?|md|sql|proto|graphql|ini"
    r"|cfg|bin|dat|png|jpe?g|gif|svg|pdf|zip|gz|parquet|pickle|pkl|stdout|stderr|out|expected)"
)


def lies_among_tests(path: str) -> bool:
    """Return whether a folder of the file, or its own name, is customary for test support."""
    *folders, name = path.casefold().split("/")
    return _NAMES.fullmatch(name) is not None or any(_FOLDERS.fullmatch(folder) for folder in folders)


def is_data(path: str) -> bool:
    """Return whether the file is data by its ending, such as input or expected output of tests."""
    return _DATA.fullmatch(path.casefold().rpartition("/")[2]) is not None


def is_snapshot(path: str) -> bool:
    """Return whether the file is a recorded expected result of a snapshot tool."""
    *folders, name = path.casefold().split("/")
    recorded = re.fullmatch(r".+\.(?:snap|ambr|golden|approved\.[^./]+)", name) is not None
    return recorded or not {"__snapshots__", "snapshots", "golden", "goldens", "cassettes"}.isdisjoint(folders)
