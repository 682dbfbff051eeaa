"""The commands of Rust projects that an agent's tool may run (`policy.listed_commands`)."""

from __future__ import annotations

from typing import Final

from pipeline.policy.listed_commands import NO_OPERANDS, ListedCommand

_NAMES: Final = r"[\w:]+"
_LINT: Final = "[a-z][a-z0-9_:-]*"
_COMMON: Final = (
    "-q --quiet -v --verbose --workspace --all --release -r --keep-going --help -h --lib --bins --examples --tests"
    " --benches --all-targets --all-features --no-default-features --locked --offline --frozen -p NAME --package NAME"
    r" --exclude NAME --bin NAME --example NAME --test NAME --bench NAME -F [\w,/\s-]+ --features [\w,/\s-]+"
    " -j NUMBER --jobs NUMBER --color auto|always|never|yes|no --message-format human|short|json"
)
_TEST_PROGRAM: Final = ListedCommand(
    "",
    "--nocapture --no-capture --show-output --exact --ignored --include-ignored --list -q --quiet -h --help"
    rf" --test-threads NUMBER --skip {_NAMES} --color auto|always|never|yes|no --format pretty|terse",
    _NAMES,
)
_LINTS: Final = ListedCommand(
    "",
    f"-D {_LINT} -W {_LINT} -A {_LINT} -F {_LINT} --deny {_LINT} --warn {_LINT} --allow {_LINT} --forbid {_LINT}",
    NO_OPERANDS,
)

COMMANDS: Final = (
    ListedCommand("cargo test", f"{_COMMON} --doc --no-run --no-fail-fast", _NAMES, rest=_TEST_PROGRAM),
    ListedCommand("cargo nextest run", f"{_COMMON} --no-run --no-fail-fast --no-capture --nocapture", _NAMES),
    ListedCommand("cargo check", _COMMON, NO_OPERANDS),
    ListedCommand("cargo build", _COMMON, NO_OPERANDS),
    ListedCommand("cargo clippy", f"{_COMMON} --no-deps", NO_OPERANDS, rest=_LINTS),
    ListedCommand(
        "cargo fmt",
        "--check --all -q --quiet -v --verbose -p NAME --package NAME",
        NO_OPERANDS,
        rest=ListedCommand("", "--check", NO_OPERANDS),
        required="--check",
    ),
)
