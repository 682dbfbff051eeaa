"""Selects nodes of a Python syntax tree for small faults. Types, decorators, messages and logging are left alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Node, Query, QueryCursor
from tree_sitter_python import language

from pipeline.testing.languages.sources.faults import Rank, quoted
from pipeline.testing.languages.sources.faults.operators import Edit, Grammar, replaced, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator


_PLATFORMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "win32"}
_NAMES: Final = {
    b"sys.platform": _PLATFORMS,
    b"_sys.platform": _PLATFORMS,
    b"os.name": {"linux": "posix", "darwin": "posix", "win32": "nt"},
    b"platform.system()": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"},
}
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


_ROLES: Final = r"""
[(import_statement) (import_from_statement) (future_import_statement) (global_statement) (nonlocal_statement)
 (type_alias_statement) (type) (decorator) (interpolation)] @skipped
(expression_statement . [(string) (concatenated_string)] .) @skipped
(concatenated_string (string) @skipped)
(class_definition superclasses: (_) @skipped)
(except_clause value: (_) @skipped)
((if_statement condition: (_) @_test) @skipped (#match? @_test "(^|[.])TYPE_CHECKING$|^__name__\\b"))
((decorated_definition (decorator) @_mark) @skipped (#match? @_mark "\\b(overload|abstractmethod)$"))
([(call function: (_) @_log) (expression_statement (call function: (_) @_log))] @skipped
 (#match? @_log "(?i)(^|[.])_*(log|logger|logging|warnings)_*[.]\\w+$")
 (#match? @_log "[.](debug|info|warn|warning|error|exception|critical|fatal|log|trace|success)$"))
((call function: (_) @_made) @skipped
 (#match? @_made "(^|[.])(TypeVar|TypeVarTuple|ParamSpec|NewType|TypeAliasType|sleep)$"))
((call function: (_) @_cast arguments: (argument_list . (_) @skipped)) (#match? @_cast "(^|[.])cast$"))
((keyword_argument name: (_) @_wait) @skipped (#any-of? @_wait "timeout" "timeout_s" "interval" "delay"))
((subscript value: (_) @_type) @skipped
 (#match? @_type "(^|[.])(Literal|Annotated|Optional|Union|Callable|ClassVar|Final|Type)$"))
((assignment left: (_) @_dunder) @skipped (#match? @_dunder "^__\\w+__$"))
((assignment type: (_) @_alias) @skipped (#match? @_alias "TypeAlias$"))
((raise_statement (_) @_stub) @skipped (#match? @_stub "^NotImplementedError\\b"))

(function_definition name: (_) @name) @function
(class_definition name: (_) @name)
[(raise_statement) (assert_statement)] @message
((call function: (_) @_print) @message (#eq? @_print "print"))

[(if_statement condition: (_) @branch) (elif_clause condition: (_) @branch)]
(conditional_expression "if" . (_) @choice)
(case_clause guard: (if_clause (_) @guard))
(_ (for_in_clause) (if_clause (_) @filter))
(while_statement condition: (_) @loop)
(for_statement right: (_) @series)
(boolean_operator left: (_) @conjunct operator: "and" right: (_) @conjunct)
(boolean_operator left: (_) @disjunct operator: "or" right: (_) @disjunct)
[(comparison_operator operators: _ @token) (boolean_operator operator: _ @token) (binary_operator operator: _ @token)
 (augmented_assignment operator: _ @token) (true) @token (false) @token]
[(unary_operator "-" @sign) (not_operator "not" @sign)]
[(integer) (float)] @number
[(string) (concatenated_string)] @text
(list . (_)) @list
(dictionary . (_)) @dictionary
(argument_list (keyword_argument) @argument)
((argument_list (_) (_) @argument .) (#not-match? @argument "^[*#]"))
(except_clause (block) @caught)
(return_statement (_) @returned)
(yield . "yield" . (_) @yielded)
(raise_statement) @ending
(assert_statement) @assertion
((return_statement) @effect (#eq? @effect "return"))
[(continue_statement) (break_statement) (delete_statement) (expression_statement [(call) (await)])
 (expression_statement (augmented_assignment))
 (expression_statement (assignment left: [(attribute) (subscript)] right: (_)))
] @effect
(expression_statement (assignment left: [(identifier) (pattern_list) (tuple_pattern)] right: (_))) @assigned
"""
_PYTHON: Final = Language(language())
_BOUND: Final = Query(
    _PYTHON,
    """
    (parameters [(identifier) @name (_ . (identifier) @name) (_ name: (identifier) @name)])
    [(assignment left: [(identifier) (pattern_list) (tuple_pattern)] @name right: (_)) (for_statement left: (_) @name)]
    """,
)


def _assigned(node: Node, function: Node) -> Iterator[Edit]:
    """Yield the edit that removes an assignment to names with an earlier value: without one the code would stop."""
    target = node.named_children[0].child_by_field_name("left")
    cursor = QueryCursor(_BOUND)
    cursor.set_byte_range(function.start_byte, node.start_byte)
    bound: list[Node] = cursor.captures(function).get("name", [])
    known = {name for one in bound if one.end_byte <= node.start_byte for name in _names(one)}
    if target is not None and known.issuperset(_names(target)):
        yield replaced(node, b"pass", f"{quoted(source_of(node))} is left out", Rank.EFFECT)


def _names(target: Node) -> list[bytes]:
    return re.findall(rb"[^\W\d]\w*", source_of(target))


_GRAMMAR: Final = Grammar(
    language=_PYTHON,
    roles=_ROLES,
    words={
        "true": b"True",
        "false": b"False",
        "nothing": b"None",
        "no items": b"()",
        "no list": b"[]",
        "no dictionary": b"{}",
        "left out": b"pass",
        "raised again": b"raise",
    },
    own={"assigned": _assigned},
    hint=re.compile(rb"\bsys\.platform\b|\bos\.name\b|\bplatform\.system\b"),
    names=_NAMES,
    constants=_CONSTANTS,
)
GRAMMARS: Final = {".py": _GRAMMAR}
