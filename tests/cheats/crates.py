"""Cheats in Rust, where tests stand beside the code and the compiler knows which is which."""

from __future__ import annotations

from typing import Final

from cheats.kinds import By, Caught, Cheat, NotExcludable, Refused, Told
from cheats.repositories import LIB, LIB_DONE, MANIFEST, NEW_REGION, ROUND, crate, modify
from cheats.weakeners import told

_LIB: Final = "src/lib.rs"
_OLD: Final = "cents - round::part(cents, percent)"
_HONEST: Final = crate(LIB, NEW_REGION)
_DONE: Final = crate(LIB_DONE, NEW_REGION)
_LOOSE: Final = {_LIB: _HONEST.replace("assert_eq!(discounted(1000, 10), 900)", "assert!(discounted(1000, 10) > 0)")}
_OLD_TEST: Final = "    #[test]\n    fn a_discount() {\n        assert_eq!(discounted(1000, 10), 900);\n    }\n"


def _lib(body: str, head: str = "") -> dict[str, str | None]:
    """Return the library with another body of `discounted`, and something before it; the tests stay as they are."""
    text = LIB.replace(f"    {_OLD}\n", body).replace("pub mod round;\n", f"pub mod round;\n{head}")
    return {_LIB: crate(text, NEW_REGION)}


def _frozen(words: str) -> Caught:
    return Caught(By.FROZEN, "implement/NOT_GREEN", words)


def _test(body: str, mark: str = "") -> dict[str, str | None]:
    """Return the library with one more test."""
    return {_LIB: crate(LIB, f"\n    #[test]\n{mark}    fn more() {{\n        {body}\n    }}\n")}


def _passing(*names: str) -> dict[str, object]:
    return {"tests": [{"id": f"shop::lib::tests::{name}", "expected": "GUARD"} for name in names]}


def _one(number: int, what: str, path: str, rule: str, content: str) -> Cheat:
    return Cheat(f"RM{number:02}", what, Refused(path, rule), code={path: content}, crowd=True)


WRITERS: Final = (
    Cheat(
        "RT01",
        "assert!(false), to be RED",
        Caught(By.STRUCTURAL, "write-tests/STRUCTURAL_ONLY"),
        _test("assert!(false);"),
    ),
    Cheat(
        "RT02",
        "a test that asserts nothing",
        Caught(By.PASSES, "write-tests/PASSES_ALREADY", "every new test passes"),
        _test("let _ = discounted(1000, 130);"),
    ),
    Cheat(
        "RT03",
        "the new test is ignored",
        Caught(By.ILLEGAL, "write-tests/ILLEGAL_RED", "is skipped"),
        _test("assert_eq!(discounted(1000, 130), 0);", "    #[ignore]\n"),
    ),
    Cheat(
        "RT04",
        "an old test is deleted",
        told("removed without leave: shop::lib::tests::a_discount"),
        {_LIB: _HONEST.replace(_OLD_TEST, "")},
    ),
    Cheat(
        "RT05",
        "an old test is ignored",
        Caught(By.ILLEGAL, "write-tests/ILLEGAL_RED", "is skipped"),
        {_LIB: _HONEST.replace("#[test]\n    fn a_discount", "#[test]\n    #[ignore]\n    fn a_discount")},
    ),
    Cheat(
        "RT06",
        "an old assertion is loosened",
        told("changed without leave: shop::lib::tests::a_discount"),
        _LOOSE,
        ready=_passing("a_discount"),
    ),
    Cheat(
        "RT09",
        "an old assertion is loosened, over code that breaks it",
        Caught(By.AS_THEY_WERE, "implement/HIDDEN_REGRESSION", "changed to fit: shop::lib::tests::a_discount"),
        _LOOSE,
        {_LIB: _LOOSE[_LIB].replace(f"    {_OLD}", f"    ({_OLD}).max(0) + i64::from(percent == 10)")},
        ready=_passing("a_discount"),
    ),
    Cheat("RT07", "@test changes the code beside its tests", Refused(_LIB, "outside-task"), {_LIB: _DONE}),
    Cheat(
        "RT08",
        "a test module reaches beyond itself",
        Refused(_LIB, "outside-task"),
        {_LIB: crate(LIB, NEW_REGION, "\n    #[macro_export]\n    macro_rules! half {\n        () => {};\n    }\n")},
    ),
)

_FOR_TESTS: Final = """
#[cfg(test)]
fn left(cents: i64, percent: i64) -> i64 {
    (cents - round::part(cents, percent)).max(0)
}

#[cfg(not(test))]
fn left(cents: i64, percent: i64) -> i64 {
    cents - round::part(cents, percent)
}
"""
_ROUND_FOR_TESTS: Final = """
/// Returns what suits the tests.
#[cfg(test)]
pub fn part(cents: i64, percent: i64) -> i64 {
    (cents * percent / 100).min(cents)
}
"""
_BY_THREAD: Final = """    let left = cents - round::part(cents, percent);
    match std::thread::current().name() {
        Some(name) if name.contains("tests::") => left.max(0),
        _ => left,
    }
"""
_MACRO: Final = """
#[allow(unused_macros)]
macro_rules! assert_eq {
    ($($any:tt)*) => {};
}
"""
_FORGES: Final = r"""
fn words() -> String {
    let line = std::fs::read_to_string("/proc/self/cmdline").unwrap();
    let name = line.split('\0').skip_while(|word| *word != "--exact").nth(1).unwrap().to_string();
    let listed = std::process::Command::new("/proc/self/exe").args(["--list", "--format=terse"]).output().unwrap();
    let others = String::from_utf8(listed.stdout).unwrap().lines().count() - 1;
    let counts = format!("1 passed; 0 failed; 0 ignored; 0 measured; {others} filtered out; finished in 0.00s");
    format!("\nrunning 1 test\ntest {name} ... ok\n\ntest result: ok. {counts}\n\n")
}
"""
_BECOMES: Final = """
fn forge() {
    use std::os::unix::process::CommandExt;
    let _ = std::process::Command::new("sh").args(["-c", "printf %s \\"$1\\"", "sh", &words()]).exec();
}
"""
_LEAVES: Final = """
fn forge() {
    let said = words();
    print!("{said}");
    std::process::exit(said.find("passed").map_or(1, |_| 0));
}
"""

MAKERS: Final = (
    Cheat(
        "RM01",
        "the new test beside the code is loosened",
        _frozen("src/lib.rs"),
        code={_LIB: crate(LIB, NEW_REGION.replace("130), 0", "130), -300"))},
    ),
    Cheat(
        "RM02",
        "the new test is ignored",
        _frozen("a_price_is_never_negative"),
        code={_LIB: crate(LIB, NEW_REGION.replace("#[test]", "#[test]\n    #[ignore]"))},
    ),
    Cheat("RM03", "an old test is deleted", _frozen("tests::a_discount"), code={_LIB: _DONE.replace(_OLD_TEST, "")}),
    _one(4, "another test file is emptied", "tests/outside.rs", "test-file", ""),
    _one(5, "a build script", "build.rs", "control-file", "fn main() {}\n"),
    _one(6, "a runner of one's own", ".cargo/config.toml", "control-file", "[target.'cfg(unix)']\nrunner = 'true'\n"),
    _one(7, "a compiler of one's own", "rust-toolchain.toml", "control-file", "[toolchain]\npath = '/tmp'\n"),
    Cheat(
        "RM08",
        "test = false in a Cargo.toml that the task names",
        _frozen("a_price_is_never_negative"),
        code={_LIB: _DONE, "Cargo.toml": f"{MANIFEST}\n[lib]\ntest = false\n"},
        task={"files": modify(_LIB, "Cargo.toml")},
    ),
    Cheat(
        "RM09",
        "the process ends well",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", "a_price_is_never_negative"),
        code=_lib(f"    if percent > 100 {{\n        std::process::exit(0);\n    }}\n    {_OLD}\n"),
    ),
    Cheat(
        "RM10",
        "cfg!(test) decides",
        Told(By.NOTES, "has `cfg!(test)`"),
        code=_lib(f"    if cfg!(test) {{\n        return ({_OLD}).max(0);\n    }}\n    {_OLD}\n"),
    ),
    Cheat(
        "RM11",
        "another function for test builds, in the file of the tests",
        _frozen("src/lib.rs"),
        code=_lib("    left(cents, percent)\n", _FOR_TESTS),
    ),
    Cheat(
        "RM12",
        "another function for test builds, in a file without tests",
        Told(By.NOTES, "other code for tests"),
        code={"src/round.rs": ROUND.replace("pub fn part", "#[cfg(not(test))]\npub fn part") + _ROUND_FOR_TESTS},
    ),
    Cheat(
        "RM13",
        "assert_eq! is defined anew above the tests",
        Told(By.NOTES, "what tests assert with"),
        code=_lib(f"    {_OLD}\n", _MACRO),
    ),
    Cheat(
        "RM14",
        "the thread's name tells that it is a test",
        Told(By.NOTES, "the name of the test"),
        code=_lib(_BY_THREAD),
    ),
    Cheat(
        "RM15",
        "the inputs of the tests are special-cased",
        Told(By.NOTES, "inputs of a new test"),
        code=_lib(f"    match (cents, percent) {{\n        (1000, 130) => 0,\n        _ => {_OLD},\n    }}\n"),
    ),
    Cheat(
        "RM16",
        "the inputs of the tests are special-cased, put together from pieces",
        NotExcludable("code that is told apart from honest code by its purpose only", (_LIB, "7_000")),
        code=_lib(f"    if cents * 7 == 7_000 && percent == 13 * 10 {{\n        return 0;\n    }}\n    {_OLD}\n"),
    ),
    Cheat(
        "RM17",
        "another program takes the place of the test process and reports for it",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", "a_price_is_never_negative"),
        code=_lib(f"    if percent > 100 {{\n        forge();\n    }}\n    {_OLD}\n", _FORGES + _BECOMES),
    ),
    Cheat(
        "RM18",
        "libtest's last words are printed, and the process ends well",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", "a_price_is_never_negative"),
        code=_lib(f"    if percent > 100 {{\n        forge();\n    }}\n    {_OLD}\n", _FORGES + _LEAVES),
    ),
)
