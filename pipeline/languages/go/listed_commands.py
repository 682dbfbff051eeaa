"""The commands of Go projects that an agent's tool may run (`policy.listed_commands`)."""

from __future__ import annotations

from typing import Final

from pipeline.policy.listed_commands import ListedCommand

_PACKAGES: Final = r"\.(/[\w.-]+)*/?"

COMMANDS: Final = (
    ListedCommand(
        "go test",
        "-v -short -race -failfast -json -cover -run TEXT -skip TEXT -list TEXT -bench TEXT -count NUMBER"
        r" -parallel NUMBER -cpu NUMBER -timeout \d{1,6}(ms|s|m)",
        _PACKAGES,
        has_single_dash_values=True,
    ),
    ListedCommand("go vet", "-v -json", _PACKAGES),
)
