"""No fault is put where this platform runs nothing: conditions of the compiler, names of files, branches."""

from __future__ import annotations

import re

import pytest

from pipeline.testing.languages.sources.faults import mutants, stopped
from pipeline.testing.languages.sources.faults.platforms import Platform, here

LINUX = Platform("linux", "x86_64")


def lines_with_faults(path: str, text: str, platform: Platform = LINUX) -> set[int]:
    found = mutants(path, text.encode(), range(1, text.count("\n") + 2), platform=platform)
    return {mutant.line for mutant in found}


def marked(text: str, mark: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if mark in line}


RUST_ITEMS = """\
#[cfg({cfg})]
#[inline]
// why
fn f(a: u8) -> u8 {{
    a + 1 // guarded
}}

#[cfg({cfg})]
mod m {{
    impl A {{
        const B: u8 = 2; // guarded
    }}
}}

fn g(a: u8) -> u8 {{
    #[cfg({cfg})]
    {{
        h(a + 1); // guarded
    }}
    #[cfg({cfg})]
    let b = a + 2; // guarded
    #[cfg({cfg})]
    return a + 3; // guarded
    match a {{
        #[cfg({cfg})]
        1 => a + 4, // guarded
        _ => A {{
            #[cfg({cfg})]
            b: a + 5, // guarded
            c: a + 6, // always
        }},
    }}
}}
"""


@pytest.mark.parametrize(
    "cfg",
    [
        "windows", 'target_os = "windows"', 'target_family = "windows"', "not(unix)", 'all(unix, target_os = "macos")',
        'any(windows, target_os = "ios")', 'all(feature = "x", windows)', 'not(any(unix, feature = "x"))',
        'target_arch = "aarch64"', 'target_pointer_width = "32"', 'target_env = "msvc"', 'target_vendor = "apple"',
        "false", "miri", "doc", "windows,",
    ],
)  # fmt: skip
def test_rust_that_is_not_compiled_here_has_no_faults(cfg: str) -> None:
    text = RUST_ITEMS.format(cfg=cfg)
    assert lines_with_faults("a.rs", text) & marked(text, "// guarded") == set()
    assert marked(text, "// always") <= lines_with_faults("a.rs", text)


@pytest.mark.parametrize(
    "cfg",
    [
        "unix", "not(windows)", 'target_os = "linux"', 'target_family = "unix"', "any(windows, unix)", "true",
        'feature = "x"', 'all(unix, feature = "x")', 'any(windows, feature = "x")', "tokio_unstable", "not(test)",
        "debug_assertions", 'panic = "unwind"', 'target_env = "gnu"', "all()",
    ],
)  # fmt: skip
def test_rust_that_may_be_compiled_here_has_faults(cfg: str) -> None:
    text = RUST_ITEMS.format(cfg=cfg)
    assert marked(text, "// guarded") <= lines_with_faults("a.rs", text)


def test_each_platform_has_the_code_that_it_runs() -> None:
    text = RUST_ITEMS.format(cfg="windows")
    assert marked(text, "// guarded") <= lines_with_faults("a.rs", text, Platform("win32", "x86_64"))
    assert here().system


@pytest.mark.parametrize(
    "text",
    [
        "#![cfg(windows)]\nfn f(a: u8) -> u8 {\n    a + 1\n}\n",
        "mod m {\n    #![cfg(windows)]\n    fn f(a: u8) -> u8 { a + 1 }\n}\n",
        "#[cfg_attr(unix, cfg(windows))]\nfn f(a: u8) -> u8 {\n    a + 1\n}\n",
        "#[cfg_attr(all(unix), allow(x), cfg(windows))]\nfn f(a: u8) -> u8 {\n    a + 1\n}\n",
        '#[cfg(feature = "x")]\n#[cfg(windows)]\nfn f(a: u8) -> u8 {\n    a + 1\n}\n',
    ],
)
def test_rust_in_other_forms(text: str) -> None:
    assert lines_with_faults("a.rs", text) == set()


def test_an_attribute_that_is_no_condition_leaves_nothing_out() -> None:
    text = (
        '#[cfg_attr(windows, cfg(windows))]\n#[cfg_attr(windows, path = "w.rs")]\nfn f(a: u8) -> u8 {\n    a + 1\n}\n'
    )
    assert lines_with_faults("a.rs", text) == {4}


BRANCHES = [
    (
        "a.rs",
        """\
const WINDOWS: bool = cfg!(windows); // decided
fn f(a: u8) -> u8 {
    if cfg!(windows) { // decided
        g(a + 1); // dead
    } else {
        g(a + 2); // alive
    }
    if !cfg!(target_os = "linux") || WINDOWS { // decided
        g(a + 3); // dead
    }
    if a > 1 && cfg!(windows) {
        g(a + 4); // dead
    }
    if cfg!(feature = "x") {
        g(a + 5); // alive
    }
    if cfg!(unix) { // decided
        return a + 6; // alive
    }
    a + 7 // dead
}
""",
    ),
    (
        "a.go",
        """\
package a

const windows = runtime.GOOS == "windows" // decided

func f(a int) int {
    if runtime.GOOS == "windows" { // decided
        g(a + 1) // dead
    } else if a > 2 {
        g(a + 2) // alive
    }
    switch runtime.GOOS {
    case "windows", "darwin": // decided
        g(a + 3) // dead
    case "linux":
        g(a + 4) // alive
    default:
        g(a + 5) // dead
    }
    if windows || runtime.GOARCH == "arm64" { // decided
        g(a + 6) // dead
    }
    if runtime.GOOS != "windows" { // decided
        return a + 7 // alive
    }
    return a + 8 // dead
}
""",
    ),
    (
        "a.py",
        """\
WINDOWS = sys.platform.startswith("win")  # decided
IS_NT = os.name == "nt" or WINDOWS  # decided


def f(a):
    if sys.platform == "win32":  # decided
        g(a + 1)  # dead
    elif os.name in ("nt", "java"):  # decided
        g(a + 2)  # dead
    elif platform.system() == "Linux":  # decided
        g(a + 3)  # alive
    elif a > 2:  # dead
        g(a + 4)  # dead
    else:
        g(a + 5)  # dead
    if a and sys.platform not in {"linux", "darwin"}:
        g(a + 6)  # dead
    if IS_NT:
        g(a + 7)  # dead
    b = a + 8 if not WINDOWS else a
    b = (
        a - 1  # dead
        if WINDOWS
        else a - 2  # alive
    )
    match sys.platform:
        case "win32" | "cygwin":
            g(a + 13)  # dead
        case "linux":
            g(a + 14)  # alive
        case _:
            g(a + 15)  # dead
    if sys.version_info >= (3, 8):
        g(a + 9)  # alive
    if platform.system() == "Windows" and a > 3:  # decided
        g(a + 10)  # dead
    if sys.platform != "win32":  # decided
        return a + 11  # alive
    return a + 12  # dead
""",
    ),
    (
        "a.ts",
        """\
const isWindows = process.platform === "win32"; // decided
function f(a: number): number {
    if (isWindows) {
        g(a + 1); // dead
    } else if (a > 1) {
        g(a + 2); // alive
    }
    switch (process.platform) {
        case "win32": // decided
            g(a + 3); // dead
            break; // dead
        default:
            g(a + 4); // alive
    }
    if (!isWindows) {
        return a + 5; // alive
    }
    return a + 6; // dead
}
""",
    ),
]


@pytest.mark.parametrize(("path", "text"), BRANCHES, ids=[path for path, _ in BRANCHES])
def test_a_branch_that_this_platform_never_takes_has_no_faults(path: str, text: str) -> None:
    found = lines_with_faults(path, text)
    assert found & (marked(text, " dead") | marked(text, " decided")) == set()
    assert marked(text, " alive") <= found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "a.js",
            "const w = process.platform === 'win32';\nfunction f(w) {\n  if (w) {\n    g(1); // alive\n    }\n}\n",
        ),
        (
            "a.js",
            "switch (process.platform) {\ncase 'linux':\n    f();\ncase 'win32':\n    g(1); // alive\n}\n",
        ),
        (
            "a.jsx",
            "switch (process.platform) {\ncase w:\n    g(1); // alive\ndefault:\n    f(1); // alive\n}\n",
        ),
        ("a.go", 'package a\nfunc f() {\n\tif goos == "windows" {\n\t\tg(1) // alive\n\t}\n}\n'),
        ("a.rs", "fn f() {\n    if WINDOWS {\n        g(1); // alive\n    }\n}\n"),
        (
            "a.py",
            'WINDOWS = sys.platform == "win32"\nWINDOWS = ask()\ndef f(a):\n    if WINDOWS:\n        g(1)  # alive\n',
        ),
        ("a.py", "def f(a, WINDOWS):\n    if WINDOWS:\n        g(a + 1)  # alive\n\n\nWINDOWS = os.name == 'nt'\n"),
        ("a.py", "def f(a):\n    if platform == 'win32':\n        g(a + 1)  # alive\n"),
        ("a.py", "def f(a):\n    if sys.platform == a:\n        g(a + 1)  # alive\n"),
        ("a.py", "def f(a):\n    if sys.platform.startswith(a):\n        g(a + 1)  # alive\n"),
    ],
)
def test_what_is_not_certain_stays(path: str, text: str) -> None:
    assert marked(text, " alive") <= lines_with_faults(path, text)


GO = "{head}package a\n\nfunc f(a int) int {{\n\treturn a + 1\n}}\n"


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("a_windows.go", ""), ("sub/a_windows_amd64.go", ""), ("a_linux_arm64.go", ""), ("a_arm64.go", ""),
        ("a.go", "//go:build windows\n\n"), ("a.go", "// Copyright.\n\n//go:build !unix || (darwin && cgo)\n\n"),
        ("a.go", "//go:build ignore\n\n"), ("a_linux.go", "//go:build windows\n\n"), ("_a.go", ""),
    ],
)  # fmt: skip
def test_a_go_file_that_is_not_built_here_has_no_faults(path: str, head: str) -> None:
    assert lines_with_faults(path, GO.format(head=head)) == set()


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("windows.go", ""), ("a_linux.go", ""), ("a_linux_amd64.go", ""), ("a_unix.go", ""), ("a_win.go", ""),
        ("a.go", "//go:build linux && !cgo\n\n"), ("a.go", "//go:build integration\n\n"),
        ("a.go", "//go:build go1.18\n\n"), ("a.go", "//go:build unix\n\n"), ("a.go", "// +build windows\n\n"),
    ],
)  # fmt: skip
def test_a_go_file_that_may_be_built_here_has_faults(path: str, head: str) -> None:
    assert lines_with_faults(path, GO.format(head=head))


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.rs", "fn f() -> u8 { 1 + 1 }", "fn f() -> u8 { STOP  1 + 1 }"),
        ("a.rs", "\n\n  fn f() -> u8 { 1 + 1 }", "\n\n  fn f() -> u8 { STOP  1 + 1 }"),
        ("a.rs", "mod m { #![allow(x)] const A: u8 = 1 + 1; }", "mod m { #![allow(x)] STOP  const A: u8 = 1 + 1; }"),
        ("a.rs", "const A: u8 = 1 + 1;", "const A: u8 = 1 + 1;\nSTOP\n"),
        ("a.go", "package a\nfunc f() int { return 1 + 1 }", "package a\nfunc f() int { return 1 + 1 }\nSTOP\n"),
        ("a.py", "def f(): return 1 + 1", None),
        ("a.ts", "const f = () => 1 + 1;", None),
    ],
)
def test_what_stops_a_compiler_stands_where_the_fault_is(path: str, text: str, expected: str | None) -> None:
    found = stopped(path, text.encode(), text.index("1 + 1"))
    said = re.sub(r"compile_error!.*?;|var _ = \w+", "STOP", found.decode()) if found is not None else None
    assert said == expected
