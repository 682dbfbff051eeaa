"""What Python calls the platform: `sys.platform`, `os.name`, `platform.system()`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language
from tree_sitter_python import language

from pipeline.languages.sources.faults.platforms import Conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.languages.sources.faults.platforms import Platform

_SYSTEMS: Final = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
_CONSTANTS: Final = """
(module (expression_statement (assignment left: (identifier) @name right: (_) @value)))
[(assignment left: (identifier) @bound) (augmented_assignment left: (identifier) @bound)
 (pattern_list (identifier) @bound) (tuple_pattern (identifier) @bound) (for_statement left: (identifier) @bound)
 (named_expression name: (identifier) @bound) (global_statement (identifier) @bound)
 (function_definition name: (identifier) @bound) (class_definition name: (identifier) @bound)
 (parameters [(identifier) @bound (_ . (identifier) @bound) (_ name: (identifier) @bound)])
 (lambda_parameters [(identifier) @bound (_ . (identifier) @bound)])
 (as_pattern_target (identifier) @bound) (aliased_import alias: (identifier) @bound)
 (import_from_statement name: (dotted_name (identifier) @bound))]
"""


def _names(on: Platform) -> Mapping[bytes, str]:
    system = _SYSTEMS.get(on.system)
    if system is None:
        return {}
    name = "nt" if on.system == "win32" else "posix"
    return {b"sys.platform": on.system, b"_sys.platform": on.system, b"os.name": name, b"platform.system()": system}


CONDITIONS: Final = Conditions(
    language=Language(language()),
    hint=re.compile(rb"\bsys\.platform\b|\bos\.name\b|\bplatform\.system\b"),
    names=_names,
    constants=_CONSTANTS,
)
