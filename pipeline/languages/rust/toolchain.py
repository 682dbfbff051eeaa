"""The toolchain of Rust projects tested with cargo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.lazy_toolchain import LazyToolchain
from pipeline.languages.rust import environment

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation


class CargoToolchain(LazyToolchain):
    """The `Toolchain` of Rust projects."""

    name = "cargo"
    package = "pipeline.languages.rust"
    sources: tuple[str, ...] = (".rs",)
    stub = "todo!()"
    stub_like = re.compile(r"\b(?:todo|unimplemented)!")
    stub_readers = ("pipeline.languages.rust.stubs", "pipeline.languages.rust.stub_pass")
    install_hint = environment.HINT
    markers = ("Cargo.toml",)
    control = (
        "cargo.toml", "cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml",
        "rustfmt.toml", ".rustfmt.toml", "nextest.toml",
    )  # fmt: skip
    control_folders = frozenset({".cargo"})

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether a path is a test file, or a source that may have test modules."""
        return super().is_test_path(path, observation) or (path.endswith(".rs") and not self.is_control_path(path))


TOOLCHAIN: Final = CargoToolchain()
