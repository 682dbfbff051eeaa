"""How a case's end travels to the figures that conftest.py prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from attacks.catalogue import Case


def count(request: pytest.FixtureRequest, case: Case, box: str) -> None:
    """Note that this test is the case, on this box; whether it passes is pytest's to say."""
    end = "known gap" if case.known_gap else "expected"
    request.node.user_properties.append(("attack", (box, f"{case.layer.value}: {case.category}", end)))
