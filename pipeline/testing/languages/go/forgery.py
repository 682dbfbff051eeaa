"""Words of Go code that detects or ends its own tests: see `sources.forgery`."""

from __future__ import annotations

from typing import Final

from pipeline.testing.languages.sources.forgery import Words

_SYSTEM: Final = r"\b(?:syscall|unix)\."
_COMPARISON: Final = r"\bfunc \([^)]*\) (?:Equals?|Compare|Cmp|Less|Is)\([^{]*\{"

WORDS: Final = Words(
    comment="//(?!go:)",
    words={
        "the memory of the process": "reflect.NewAt",
        "its callers": "runtime.Caller* runtime.Stack debug.Stack",
        "how the process was started": "os.Executable",
        "what others have opened": "os.NewFile",
        "where relative names of files lead": "os.Chdir",
    },
    shapes={
        "the test framework": r"\"testing(?:/\w+)*\"",
        "the inside of the process": r"^\s*(?:import\s+)?(?:\w+\s+)?\"(?:unsafe|plugin|C)\"\s*$",
        "how a test run is started": (
            r"(?<!\w)-test\.\w*|\"\.test(?:\.exe)?\"|\btest\.(?:v|run|timeout|testlogfile|list)\b"
        ),
        "what a test run prints": r"--- (?:PASS|FAIL|SKIP)|=== RUN|[\"`]PASS(?:\\n)?[\"`]",
        "where it prints": r"\bos\.(?:Stdout|Stderr|Args)\s*=(?!=)",
        "the end of the process, or what it has opened": rf"{_SYSTEM}(?:Kill|Exit|Write|Dup[23]|(?:Raw)?Syscall6?)\b",
        "an end that looks like success": r"\bos\.Exit\(0\)|^func init\(\)[^}]*\bos\.Exit\([^)\n]*\)",
        "the inside of another package": r"^//go:linkname\s.*$",
        "the same answer for everything": rf"{_COMPARISON}\s*return\s+(?:true|false|-?\d+)\s*\}}",
    },
)
