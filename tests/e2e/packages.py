"""Issues of real packages, each with the tests and the change that settle it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from e2e.sdists import INFLECTION, PARSE, TOOLZ, Sdist
from kit import SPLIT_ACCEPTED

if TYPE_CHECKING:
    from kit import Entry

_ISSUE: Final = """---
id: GAL-1
title: {title}
status: Todo
parent: null
labels: [bug]
depends-on: []
---
# GAL-1: {title}

{why}

## Acceptance criteria
- [ ] {title}
"""


@dataclass(frozen=True)
class Edit:
    """In the file `path` the text `old` becomes `new`; an empty `old` appends."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Case:
    """An issue of a package, and its known answer."""

    sdist: Sdist
    title: str
    why: str
    code: Edit
    tests: Edit
    new_ids: frozenset[str]
    symbols: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def issue(self) -> str:
        """Return the issue file."""
        return _ISSUE.format(title=self.title, why=self.why)

    def answers(self) -> list[Entry]:
        """Return what the program answers to each question of a run without detours."""
        file = {"path": self.code.path, "action": "modify"}
        plan = {
            "problem": self.why,
            "approach": "The smallest change.",
            "files": [{**file, "why": "it is there"}],
            "test_design": {"behaviours": [{"action": self.why, "outcome": self.title}]},
        }
        task = {
            "title": self.title,
            "description": self.why,
            "acceptance_criteria": [self.title],
            "files": [file],
            "test_files": [{"path": self.tests.path, "action": "modify"}],
            "symbols": self.symbols,
        }
        made = {"result": "COMPLETE", "summary": self.title}
        return [
            {"when": {"kind": "plan"}, "report": plan},
            {"when": {"kind": "plan-and-tasks"}, "report": {**plan, "tasks": [task]}},
            {"when": {"kind": "split"}, "report": {"tasks": [task]}},
            SPLIT_ACCEPTED,
            {"when": {"role": "check"}, "report": {"verdict": "ACCEPTABLE"}},
            {"when": {"role": "simplify"}, "report": {"verdict": "JUSTIFIED COMPLEXITY"}},
            {"when": {"kind": "write-tests"}, "edits": [_words(self.tests)], "report": {"verdict": "TESTS_READY"}},
            {"when": {"kind": "implement"}, "edits": [_words(self.code)], "report": made},
        ]


def _words(edit: Edit) -> list[str]:
    return [edit.path, edit.old, edit.new]


_CAMELIZE_TEST: Final = """@pytest.mark.parametrize('upper', [False])
def test_camelize_of_nothing_is_nothing(upper):
    assert '' == inflection.camelize('', upper)


"""
CAMELIZE: Final = Case(
    INFLECTION,
    "Camelize an empty string",
    'camelize("", False) raises IndexError.',
    Edit("inflection/__init__.py", "return string[0].lower() + camelize", "return string[:1].lower() + camelize"),
    Edit(
        "test_inflection.py",
        "def test_camelize_with_underscores():",
        _CAMELIZE_TEST + "def test_camelize_with_underscores():",
    ),
    frozenset({"test_inflection.py::test_camelize_of_nothing_is_nothing[False]"}),
)

_CONTAINS: Final = """    def __contains__(self, name):
        return name in self.named
"""
_GET: Final = '''
    def get(self, name, default=None):
        """Return the named field, or the default."""
        return self.named.get(name, default)
'''
_GET_TESTS: Final = """

def test_get_reads_a_named_field():
    r = parse.parse("{spam}", "ham")
    assert r.get("spam") == "ham"


def test_get_falls_back_to_the_default():
    r = parse.Result((), {"spam": "ham"}, None)
    assert r.get("eggs") is None
    assert r.get("eggs", 3) == 3
"""
GET: Final = Case(
    PARSE,
    "Give Result a get method",
    "A named field that may be missing takes a try statement to read.",
    Edit("parse.py", _CONTAINS, _CONTAINS + _GET),
    Edit("tests/test_result.py", "", _GET_TESTS),
    frozenset(
        {
            "tests/test_result.py::test_get_reads_a_named_field",
            "tests/test_result.py::test_get_falls_back_to_the_default",
        }
    ),
    [{"path": "parse.py", "name": "Result.get", "signature": "(name, default=None)", "new": True}],
)

_TAIL_TEST: Final = """def test_tail_of_length_zero():
    assert tail(0, [1, 2]) == []
    assert tail(0, iter([1, 2])) == ()


"""
TAIL: Final = Case(
    TOOLZ,
    "Return nothing for a tail of length zero",
    "tail(0, [1, 2]) returns [1, 2], for an iterator (1, 2) it returns ().",
    Edit("toolz/itertoolz.py", "        return seq[-n:]\n", "        return seq[-n:] if n else seq[:0]\n"),
    Edit("toolz/tests/test_itertoolz.py", "def test_drop():\n", _TAIL_TEST + "def test_drop():\n"),
    frozenset({"toolz/tests/test_itertoolz.py::test_tail_of_length_zero"}),
)

CASES: Final = {"inflection": CAMELIZE, "parse": GET, "toolz": TAIL}
"""Each by the name of its package; benchmarks take them all."""
