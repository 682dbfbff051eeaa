"""The toolchain of Rust projects tested with cargo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.listed_commands import NO_OPERANDS, ListedCommand
from pipeline.testing.languages.rust import environment
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation

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

_COMMANDS: Final = (
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


class CargoToolchain(Toolchain):
    """The `Toolchain` of Rust projects."""

    name = "cargo"
    package = "pipeline.testing.languages.rust"
    sources: tuple[str, ...] = (".rs",)
    stub = "todo!()"
    stub_like = re.compile(r"\b(?:todo|unimplemented)!")
    install_hint = environment.HINT
    markers = ("Cargo.toml",)
    control = (
        "cargo.toml", "cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml",
        "rustfmt.toml", ".rustfmt.toml", "nextest.toml",
    )  # fmt: skip
    control_folders = frozenset({".cargo"})
    commands = _COMMANDS

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether a path is a test file, or a source that may have test modules."""
        return super().is_test_path(path, observation) or (path.endswith(".rs") and not self.is_control_path(path))

    def is_part_of(self, path: str, module: str) -> bool:
        """Return whether a file is the module, or of a module in it; the name may begin with the crate's.

        No file is a module for certain: a name may be that of an item in it.
        """
        *folders, name = path.removesuffix(".rs").split("/")
        if "src" not in folders or name in {"lib", "main"}:
            return False
        place = folders[len(folders) - folders[::-1].index("src") :] + ([name] if name != "mod" else [])
        words = module.replace("::", ".").split(".")
        return any(place[: len(tail)] == tail for tail in (words, words[1:]) if any(tail))

    def is_plausible(self, path: str) -> bool:
        """Return whether a path is below `tests/`, or of a source, where `#[cfg(test)]` modules are."""
        return not {"tests", "src", "benches"}.isdisjoint(path.split("/")[:-1])

    def why_overlooked(self, path: str) -> str | None:
        """Return why a test at `path` would not be run, None if it would."""
        return "cargo does not look into src/tests/; use tests/ or the module" if "/src/tests/" in f"/{path}" else None


TOOLCHAIN: Final = CargoToolchain()
