"""The pieces that fuzzed texts are made of: what is special to some reader of such a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Soup:
    """Pieces of texts, and what may stand around them: often a whole that is accepted, which one piece can spoil."""

    pieces: tuple[str, ...]
    frames: tuple[tuple[str, str], ...] = (("", ""),)


_PATH: Final = (
    "/", ".", "..", " ", ":", "\\", "~", "~1", "~2", ".git", ".GIT", ".Git", "git", "GIT~1", "git~1", "gi7eb~1",
    "GI7EBA~1", ".g", "it", "\u200c", "\u200d", "\u00ad", "\ufeff", "\u202e", "\u2066", "\u180e", "\ufe0f",
    "\U000e0067", "\u0131", "\u0130", "\u017f", "\uff0e", "\uff27", "\u2024", "\u0301", "\u0345", "\u1fb7", "\u00df",
    "e\u0301", "\u00e9", "\u212a", "::$INDEX_ALLOCATION", ":x", ".gitmodules", ".workflow", ".WORKFLOW", "TODO",
    "src", "tests", "test_a.py", "a", "b", "x" * 50, "aux", "con", "\n", "\0", "\x7f", "*", "[", "?", "|", '"', "'",
    "$", "-", "#", "\udcff", "conftest.py", "__pycache__",
)  # fmt: skip

_COMMAND: Final = (
    " ", "  ", "\t", "\n", "\r", "\\", "\\\n", "'", '"', "''", '""', "$", "`", "$(id)", "`id`", "${x}",
    "${x:-$(id)}", "$'\\x3b'", '$"a"', ";", "&", "&&", "|", "||", ">", "<", ">>", "2>&1", "<<E\n", "<(id)", "(", ")",
    "{", "}", "{a,b}", "[[", "]]", "!", "!!", "#", " # ", "~", "~root", "*", "?", "[a]", "=", "A=1 ", "PATH=x ", "@",
    "@file", "-", "--", "-p", "-p evil", "-pevil", "-k", "-k 'a or b'", '"a b"', "'a b'", "a'b'c", "-x", "-q",
    "--tb=short", "--maxfail=1", "pytest", "pytest ", "ls ", "rg ", "wc -l ", "diff a b", "cat ", "git status",
    "git diff ", "cargo test ", "uv run ", "python -m pytest ", "nix develop -c ", "tests/test_a.py",
    "tests/test_a.py::test_b", "test_b[1-2]", "'test_b[a b]'", "src/a.py", "..", "/etc/passwd", "a", "\u00a0",
    "\u2028", "\u200b", "é", "time ", "! ", "then", "coproc ", "\x1b", "\x00", "env ", "sh -c ", "--config",
)  # fmt: skip

_YAML: Final = (
    " ", "  ", "\n", "\n", "\r\n", "\r", "\t", ":", ": ", "- ", "-", "? ", "#", " # x", "[", "]", "{", "}", ",",
    ", ", "|", ">", "|-", ">+\n", "'", '"', "''", "\\", "\\n", "\\u263a", "\\x", "&a ", "*a", "!!str ", "!x ",
    "%YAML 1.1\n", "---", "---\n", "...\n", "~", "null", "yes", "1e3", "2026-01-01", "<<: ", "@", "`", "\u00e9",
    "\u0085", "\u2028", "\ufeff", "\x0b", "\x0c", "\x1c", "\x00", "\x07", "\U0001f980", "a", "b", "key", "key: ",
    "a: b\n", "[a, b]", "- a\n", "\n  b", "\n- a", "=", "&", "*",
)  # fmt: skip

_FRONT_MATTER: Final = (
    *_YAML, "id: GAL-1\n", "title: ", "title: A title\n", "status: Todo\n", "status: Todo # x\n", "parent: null\n",
    "labels: [bug]\n", "depends-on: []\n", "labels: ", "depends-on:\n  - GAL-2\n", "body\n",
)  # fmt: skip

_ROLE_HEAD: Final = "name: test\ndescription: Writes tests.\nkinds: [write-tests]\nwrites: tests\nshell: true\n"
_WHOLE_ROLE: Final = f"{_ROLE_HEAD}network: none\ntimeout_s: 60\n"
_ROLE: Final = (
    *_YAML, _WHOLE_ROLE, _ROLE_HEAD, "network: none\ntimeout_s: 60\n", "network: none\n",
    "network: open\n", "timeout_s: 60\n", "name: test\n", "name: make\n", "description: x\n",
    "kinds: [write-tests]\n", "kinds:\n- write-tests\n", "writes: tests\n", "writes: task\n", "writes: ",
    "true", "false", "shell: true\n", "shell: yes\n", "shell: false\n", "test_regions: true\n", "timeout_s: 1_000\n",
)  # fmt: skip

_REPORT: Final = (
    "{", "}", "[", "]", ",", ":", '"', "\\", "\\u0000", "\\ud800", "\\udc00", "\\n", "null", "true", "false", "NaN",
    "-Infinity", "0", "1", "-1", "1e999", "9" * 5000, "1.5", " ", "\n", "\r\n", "\t", "\x00", "\ufeff", "\udcff",
    "é", "//", "#", "'a'", '"a"', '""', '"\u202e"', "[" * 3000, '{"a":' * 40, "bye\n", "```json\n", "```\n",
    *(f"{json.dumps(key)}: " for key in (
        "verdict", "result", "findings", "problem", "files", "tasks", "title", "acceptance_criteria", "test_files",
        "accepted",
        "diagnosis", "reason", "issues", "item", "severity", "path", "action", "needs", "missing", "blocking_issue",
    )),
    *(json.dumps(word) for word in (
        "ACCEPTABLE", "NEEDS WORK", "BLOCK", "TESTS_READY", "NOT_TESTABLE", "BLOCKED", "COMPLETE", "INCOMPLETE",
        "spec", "create",
    )),
    '{"verdict": "ACCEPTABLE"}', '{"verdict": "ACCEPTABLE", "findings": []}', '{"result": "COMPLETE"}',
    '{"accepted": true}', '{"verdict": "TESTS_READY"}', '{"problem": "p", "files": []}',
    '{"issues": [{"item": 1, "title": "t"}]}',
)  # fmt: skip

PATH: Final = Soup(
    _PATH, (("", ""), ("", ""), ("src/", ""), (".git", ""), ("", ".git"), ("a/.g", "it"), ("\u03b1", "\u0345"))
)
COMMAND: Final = Soup(
    _COMMAND, (("", ""), ("pytest ", ""), ("ls ", " a"), ("pytest -k '", "'"), ('pytest "', '"'), ("wc -l a", ""))
)
FRONT_MATTER: Final = Soup(
    _FRONT_MATTER,
    (
        ("", ""), ("id: GAL-1\n", ""), ("id: GAL-1\n", "\nstatus: Todo\n"), ("'a': b\n", "c: d\n"), ("'a': b", "\n"),
        ("a: [b", "]\n"), ("a: {b: ", "}\n"), ("a: |", "\n  b\n"),
    ),
)  # fmt: skip
ROLE: Final = Soup(
    _ROLE,
    (
        ("", ""), (_WHOLE_ROLE, ""), ("", _WHOLE_ROLE), (_ROLE_HEAD, "network: none\ntimeout_s: 60\n"),
        (_ROLE_HEAD.removesuffix("true\n"), "\nnetwork: none\ntimeout_s: 60\n"),
        (f"{_WHOLE_ROLE}test_regions: ", "\n"),
    ),
)  # fmt: skip
REPORT: Final = Soup(
    _REPORT,
    (
        ("", ""), ("{", "}"), ('{"verdict": "ACCEPTABLE"', "}"), ('{"verdict": "ACCEPTABLE", "findings": [', "]}"),
        ('{"verdict": "ACCEPTABLE", "a": ', "}"), ('{"problem": "', '", "files": []}'),
        ('{"problem": "p", "files": [', "]}"),
    ),
)  # fmt: skip
