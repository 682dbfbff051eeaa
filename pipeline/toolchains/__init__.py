"""How a language is tested: one Protocol, one dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.toolchains.cargo import CargoToolchain
from pipeline.toolchains.go import GoToolchain
from pipeline.toolchains.node import NodeToolchain
from pipeline.toolchains.pytest import PytestToolchain

if TYPE_CHECKING:
    from pipeline.toolchains.protocol import Toolchain

TOOLCHAINS: Final[dict[str, Toolchain]] = {
    "pytest": PytestToolchain(),
    "cargo": CargoToolchain(),
    "node": NodeToolchain(),
    "go": GoToolchain(),
}
