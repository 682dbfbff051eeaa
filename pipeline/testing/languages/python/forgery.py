"""Words of Python code that detects or ends its own tests: see `sources.forgery`."""

from __future__ import annotations

import sys
from typing import Final

from pipeline.testing.languages.sources.forgery import Words

_MODULES: Final = "(?:_?pytest|unittest|redfirst_evidence|gc|ctypes|atexit|runpy|zipimport)"
_SHARED: Final = "|".join(("_?pytest", "pluggy", *sorted(sys.stdlib_module_names)))
"""The names of modules that a test runner consists of."""
_IMPORT: Final = r"^[ \t]*(?:import|from)[ \t]+(?:[\w., ]+,[ \t]*)?"
_COMPARISON: Final = "__(?:eq|ne|lt|le|gt|ge|contains)__"
_CONSTANT: Final = r"(?:True|False|-?\d+)\b"

WORDS: Final = Words(
    comment="#",
    words={
        "the test runner": "pluginmanager PYTEST_*",
        "how the process was started": "sys.argv",
        "how modules are loaded": "sys.modules meta_path path_hooks pycache_prefix cache_from_source PY_IGNORE_*",
        "its callers": "inspect.stack _getframe* currentframe extract_stack walk_stack",
        "a frame": "tb_frame gi_frame cr_frame f_back f_code f_locals f_globals",
        "every line that runs": "sys.monitoring settrace setprofile addaudithook",
        "the end of the process": "_exit",
        "what an earlier measurement left": "HYPOTHESIS_* hypothesis.database",
        "where relative names of files lead": "chdir fchdir",
        "what others have opened": "os.write os.writev os.pwrite os.sendfile os.dup dup2 fdopen fromfd",
    },
    shapes={
        "the inside of the process": rf"{_IMPORT}{_MODULES}\b|\b(?:__import__|import_module)\(\s*['\"]{_MODULES}\b",
        "a name of these modules": r"^[ \t]*from (?:sys|os) import .*\b(?:modules|argv|monitoring|writev?|dup)\b",
        "a plugin of pytest": r"\bdef pytest_\w+",
        "a descriptor that others have opened": r"(?<![\w.])open\(\s*\d+|\bsocket\([^)\n]*\bfileno\b",
        "code that nobody reads": r"(?<![\w.])(?:exec|eval)\(",
        "a file of tests": r"['\"/](?:test_\w+|\w+_test|conftest)\.py['\"]",
        "the same answer for everything": (
            rf"\bdef {_COMPARISON}\([^)]*\)[^:\n]*:\s*return\s+{_CONSTANT}"
            rf"|\b{_COMPARISON}\s*=\s*lambda[^:\n]*:\s*{_CONSTANT}"
        ),
    },
    imports=rf"{_IMPORT}(?:{_SHARED})\b(?:[^(\n]*\([^)]*\)|[^\n]*)",
    everyday=r"sys\.(?:std\w+|path|excepthook)\b|(?:os\.)?environ\b",
)
