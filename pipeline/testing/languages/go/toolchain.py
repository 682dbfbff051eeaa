"""The toolchain of Go modules and workspaces, tested with `go test`'s own executables."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.judge.policy.listed_commands import ListedCommand
from pipeline.testing.languages.go import environment
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from pipeline.judge.evidence.observation import Observation

_PACKAGES: Final = r"\.(/[\w.-]+)*/?"

_COMMANDS: Final = (
    ListedCommand(
        "go test",
        "-v -short -race -failfast -json -cover -run TEXT -skip TEXT -list TEXT -bench TEXT -count NUMBER"
        r" -parallel NUMBER -cpu NUMBER -timeout \d{1,6}(ms|s|m)",
        _PACKAGES,
        has_single_dash_values=True,
    ),
    ListedCommand("go vet", "-v -json", _PACKAGES),
)


def is_test_side(path: str) -> bool:
    """Return whether Go takes a file for tests: by its name, or by a `testdata` folder above it."""
    return path.endswith("_test.go") or "testdata" in path.split("/")[:-1]


class GoToolchain(Toolchain):
    """The `Toolchain` of Go modules and workspaces."""

    name = "go"
    package = "pipeline.testing.languages.go"
    sources: tuple[str, ...] = (".go",)
    stub = 'panic("not implemented")'
    stub_like = re.compile(r"\bpanic\(\s*[\"`]not implemented")
    install_hint = environment.HINT
    markers = ("go.mod", "go.work")
    control = (
        "go.mod", "go.sum", "go.work", "go.work.sum", "go.env", ".golangci.yml", ".golangci.yaml", ".golangci.toml",
        ".golangci.json", "staticcheck.conf", ".go-version", ".goreleaser.yml", ".goreleaser.yaml",
    )  # fmt: skip
    control_folders = frozenset({"vendor"})
    commands = _COMMANDS

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether a path is a test file: `*_test.go`, or any file in a `testdata` folder."""
        return is_test_side(path) or super().is_test_path(path, observation)

    def is_module(self, path: str, module: str) -> bool:
        """Return whether a file is a package's production code; below the top the name is relative to its folder."""
        folder = str(PurePosixPath(path).parent)
        return not path.endswith("_test.go") and (folder == module or folder.endswith(f"/{module}"))


TOOLCHAIN: Final = GoToolchain()
