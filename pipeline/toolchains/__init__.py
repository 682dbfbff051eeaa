"""How a language is tested: one Protocol, one dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.toolchains.cargo.toolchain import CargoToolchain
from pipeline.toolchains.go.toolchain import GoToolchain
from pipeline.toolchains.node.toolchain import NodeToolchain
from pipeline.toolchains.pytest.toolchain import PytestToolchain

if TYPE_CHECKING:
    from pipeline.toolchains.protocol import Toolchain

TOOLCHAINS: Final[dict[str, Toolchain]] = {
    "pytest": PytestToolchain(),
    "cargo": CargoToolchain(),
    "node": NodeToolchain(),
    "go": GoToolchain(),
}
