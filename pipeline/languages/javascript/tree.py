"""JavaScript and TypeScript as tree-sitter reads them. Importing this module loads the parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from tree_sitter import Node

_JAVASCRIPT: Final = Language(tree_sitter_javascript.language())
_TYPESCRIPT: Final = Language(tree_sitter_typescript.language_typescript())
_TSX: Final = Language(tree_sitter_typescript.language_tsx())


def root_of(source: bytes, path: str) -> Node:
    """Return the root of a source's syntax tree; the ending of its path says which of the languages it is."""
    language = _TSX if path.endswith(".tsx") else _TYPESCRIPT if path.endswith(("ts", "mts", "cts")) else _JAVASCRIPT
    return Parser(language).parse(source).root_node
