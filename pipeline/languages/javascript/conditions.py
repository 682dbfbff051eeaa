"""What JavaScript calls the platform: `process.platform`, `os.platform()`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.faults.platforms import Conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Language

    from pipeline.languages.sources.faults.platforms import Platform

_CONSTANTS: Final = """
(program [(lexical_declaration (variable_declarator name: (identifier) @name value: (_) @value))
 (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name value: (_) @value)))])
[(variable_declarator name: (identifier) @bound) (assignment_expression left: (identifier) @bound)
 (arrow_function parameter: (identifier) @bound)
 (object_pattern (shorthand_property_identifier_pattern) @bound)]
"""
_PLAIN: Final = "(formal_parameters (identifier) @bound)"
_TYPED: Final = "[(required_parameter pattern: (identifier) @bound) (optional_parameter pattern: (identifier) @bound)]"
_SYSTEMS: Final = frozenset({"linux", "darwin", "win32"})


def conditions(language: Language, *, is_typed: bool) -> Conditions:
    """Return them for a dialect."""
    return Conditions(
        language=language,
        hint=re.compile(rb"\bprocess\.platform\b|\bos\.platform\b"),
        names=_names,
        constants=_CONSTANTS + (_TYPED if is_typed else _PLAIN),
    )


def _names(on: Platform) -> Mapping[bytes, str]:
    known = (b"process.platform", b"os.platform()")
    return dict.fromkeys(known, on.system) if on.system in _SYSTEMS else {}
