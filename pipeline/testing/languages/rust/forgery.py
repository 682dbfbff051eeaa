"""Words of Rust code that detects or ends its own tests: see `sources.forgery`."""

from __future__ import annotations

from typing import Final

from pipeline.testing.languages.rust.test_regions import regions_of
from pipeline.testing.languages.sources.forgery import Words

_TEST: Final = r"(?<![\w\"=])test(?![\w\"])"
_MODULE: Final = r"(?:\s*#\[[^\]]*\]|\s*//[^\n]*)*\s*(?:pub(?:\([^)]*\))?\s+)?mod\s"
_NO_SOURCE: Final = r"\s*\"[^\"\n]*(?<!\.rs)\""

WORDS: Final = Words(
    comment="//",
    words={
        "how the process was started": "current_exe",
        "how a test run is started": "--nocapture --test-threads RUST_TEST_* NEXTEST*",
        "what a panic says": "set_hook take_hook",
        "where relative names of files lead": "set_current_dir",
        "the end of the process": "_exit atexit quick_exit",
        "what others have opened": "from_raw_fd dup2 dup3 libc::write",
        "calls of the kernel by their number": "libc::syscall",
        "code that runs before the tests": "ctor link_section",
        "code that nobody reads": "asm! global_asm! naked_asm!",
    },
    shapes={
        "other code for tests": (
            rf"\bcfg!\s*\([^)\n]*{_TEST}[^)\n]*\)|\bcfg_attr\s*\([^\],\n]*{_TEST}[^\]\n]*"
            rf"|#!?\[\s*cfg\s*\([^\]\n]*(?:\bnot\(\s*test\b[^\]\n]*\]|{_TEST}[^\]\n]*\](?!{_MODULE}))"
        ),
        "an end that looks like success": r"(?:\bprocess::|(?<![\w.:]))exit\(\s*0\s*\)",
        "the name of the test": r"\bthread::current\(\)\s*\.\s*name\b",
        "what a test run prints": r"test result:|running 1 test\b|\btest .{0,80}\.\.\. ok\b",
        "what others call by this name": r"\bno_mangle\b[\s\S]{0,80}?\b(?:fn|static)\s+\w+|\bexport_name\b[^\]\n]*",
        "a file that nobody reads as code": rf"#!?\[\s*path\s*={_NO_SOURCE}|\binclude!\s*\({_NO_SOURCE}",
        "what tests assert with": r"\bmacro_rules!\s*(?:assert\w*|matches|panic|unreachable|todo)\b",
        "the same answer for everything": (
            r"\bfn (?:eq|ne|cmp|partial_cmp)\([^)]*\)[^{]*\{\s*(?:return\s+)?(?:true|false|\w+::\w+)\s*;?\s*\}"
        ),
    },
    regions=regions_of,
)
