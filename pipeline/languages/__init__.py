"""How a language is tested: one Protocol, one dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.languages.go.toolchain import GoToolchain
from pipeline.languages.javascript.toolchain import NodeToolchain
from pipeline.languages.python.toolchain import PytestToolchain
from pipeline.languages.rust.toolchain import CargoToolchain

if TYPE_CHECKING:
    from pipeline.languages.protocol import Toolchain

TOOLCHAINS: Final[dict[str, Toolchain]] = {
    "pytest": PytestToolchain(),
    "cargo": CargoToolchain(),
    "node": NodeToolchain(),
    "go": GoToolchain(),
}
