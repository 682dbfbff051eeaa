"""The toolchain of Go modules and workspaces, tested with `go test`'s own executables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.go import environment
from pipeline.languages.lazy_toolchain import LazyToolchain

if TYPE_CHECKING:
    from pipeline.evidence.observation import Observation


class GoToolchain(LazyToolchain):
    """The `Toolchain` of Go modules and workspaces."""

    name = "go"
    package = "pipeline.languages.go"
    sources: tuple[str, ...] = (".go",)
    stub = 'panic("not implemented")'
    stub_like = re.compile(r"\bpanic\(\s*[\"`]not implemented")
    stub_readers = ("pipeline.languages.go.stubs", "pipeline.languages.go.stubs")
    install_hint = environment.HINT
    markers = ("go.mod", "go.work")
    control = (
        "go.mod", "go.sum", "go.work", "go.work.sum", "go.env", ".golangci.yml", ".golangci.yaml", ".golangci.toml",
        ".golangci.json", "staticcheck.conf", ".go-version", ".goreleaser.yml", ".goreleaser.yaml",
    )  # fmt: skip
    control_folders = frozenset({"vendor"})

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether a path is a test file: `*_test.go`, or any file in a `testdata` folder."""
        is_test = path.endswith("_test.go") or "testdata" in path.split("/")[:-1]
        return is_test or super().is_test_path(path, observation)


TOOLCHAIN: Final = GoToolchain()
