"""Go as tree-sitter reads it. Importing this module loads the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser
from tree_sitter_go import language

if TYPE_CHECKING:
    from tree_sitter import Node

_GO: Final = Language(language())


def root_of(source: bytes) -> Node:
    """Return the root of a source's syntax tree."""
    return Parser(_GO).parse(source).root_node
