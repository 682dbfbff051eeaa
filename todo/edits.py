"""The changes that a tracker operation returns: new contents by file name, and the contents they were computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType


class Edits(Mapping[str, bytes]):
    """An immutable mapping from file name (relative to the tracker folder) to the new content.

    Args:
        contents: The new contents.
        before: The old contents, None for a file that did not exist; a name left out means None. A file whose
            content stays the same is no edit and is dropped.
    """

    def __init__(self, contents: Mapping[str, bytes], before: Mapping[str, bytes | None]) -> None:
        changed = {name: content for name, content in contents.items() if before.get(name) != content}
        self._contents: Mapping[str, bytes] = MappingProxyType(changed)
        self.before: Mapping[str, bytes | None] = MappingProxyType({name: before.get(name) for name in changed})

    def __getitem__(self, name: str) -> bytes:
        return self._contents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __repr__(self) -> str:
        return f"Edits({', '.join(sorted(self._contents)) or 'none'})"

    def then(self, following: Edits) -> Edits:
        """Return these edits followed by `following`, which was computed from a tracker that has these already."""
        return Edits({**self, **following}, {**following.before, **self.before})


NO_EDITS = Edits({}, {})
