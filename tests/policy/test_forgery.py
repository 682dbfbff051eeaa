from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.sources.forgery import notes


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("import pytest\n", "imports pytest"),
        ("import os, _pytest.reports as r\n", "imports _pytest"),
        ("from unittest.mock import patch\n", "imports unittest"),
        ("def f():\n    from redfirst_evidence import Records\n", "imports redfirst_evidence"),
        ("import importlib\nimportlib.import_module('pytest')\n", "imports pytest"),
        ("__import__('gc').get_objects()\n", "imports gc"),
        ("import ctypes\n", "imports ctypes"),
        ("import atexit\n", "imports atexit"),
        ("import sys\nsys.modules['x'] = None\n", "sys.modules"),
        ("from sys import modules\n", "sys.modules"),
        ("import inspect\ninspect.stack()\n", "inspect.stack"),
        ("import sys\nsys._getframe(1)\n", "sys._getframe"),
        ("import os\nos._exit(0)\n", "os._exit"),
        ("from os import _exit\n", "os._exit"),
        ("import os\nTESTED = 'PYTEST_CURRENT_TEST' in os.environ\n", "PYTEST_CURRENT_TEST"),
        ("class A:\n    def __eq__(self, other):\n        return True\n", "__eq__"),
        ("class A:\n    __eq__ = lambda self, other: True\n", "__eq__"),
        (
            "class A:\n    def __contains__(self, item):\n        if item:\n            return 1\n        return 1\n",
            "__con",
        ),
        ("import sys\nsys.pycache_prefix = '/tmp'\n", "pycache_prefix"),
        ("from importlib.util import cache_from_source\n", "cache_from_source"),
        ("import runpy\n", "imports runpy"),
        ("from zipimport import zipimporter\n", "imports zipimport"),
        ("exec('x = 1')\n", "calls exec"),
        ("def f(text):\n    return eval(text)\n", "calls eval"),
        ("import os\nos.write(3, b'{}')\n", "os.write"),
        ("from os import writev\n", "os.writev"),
        ("import os\nos.dup2(1, 5)\n", "os.dup2"),
        ("import os\nos.fdopen(4, 'w')\n", "os.fdopen"),
        ("import socket\nsocket.socket(fileno=3)\n", "takes a descriptor"),
        ("import socket\nsocket.fromfd(3, 1, 1)\n", "socket.fromfd"),
        ("open(4, 'wb')\n", "takes a descriptor"),
        ("NAME = '/proc/self/fd/4'\n", "/proc/"),
        ("def f(:\n", "can be parsed"),
        ("x = 1\0\n", "can be parsed"),
    ],
)
def test_a_means_of_forgery_is_noted_once_with_its_line(source: str, word: str) -> None:
    (note,) = notes("src/app.py", b"x = 1\n", source.encode())
    assert word in note
    assert note.startswith("src/app.py")


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __eq__(self, other):\n        return isinstance(other, A)\n",
        "class A:\n    def __eq__(self, other):\n        return NotImplemented\n",
        "class A:\n    def __eq__(self, o):\n        if o is None:\n            return False\n        return True\n",
        "class A:\n    def __eq__(self, other): ...\n",
        "import os, sys, inspect, gcsfs\nsys.exit(os.getpid())\ninspect.signature(print)\n",
        "from .pytest import helper\n",
        "import re, socket\nre.compile('x')\nsocket.socket()\nopen('a.txt')\nmodel.eval()\n",
        "TEXT = 'run pytest'  # os._exit\n",
    ],
)
def test_honest_code_has_no_note(source: str) -> None:
    assert notes("src/app.py", None, source.encode()) == ()


def test_the_line_is_the_first_one() -> None:
    assert notes("a.py", None, b"x = 1\nimport gc\nimport gc\n") == (
        "a.py:2 imports gc (every object of the process); test results can be forged so",
    )


def test_what_was_there_before_is_nobodys_news() -> None:
    old = b"import gc\n\nimport os\nos._exit(0)\n"
    assert notes("a.py", old, b"# moved\n" + old) == ()
    assert len(notes("a.py", old, old + b"import atexit\n")) == 1
    assert len(notes("a.py", b"not ( python", old)) == 2


def test_another_language_is_not_looked_at() -> None:
    assert notes("src/lib.rs", None, b"import pytest") == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at_without_a_crash(content: bytes) -> None:
    found = notes("a.py", None, content)
    try:
        ast.parse(content)
    except (SyntaxError, ValueError):
        assert len(found) == 1
