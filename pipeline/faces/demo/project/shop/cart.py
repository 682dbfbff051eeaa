"""What a customer is about to buy."""


class Cart:
    """Lines of goods with their price in cents."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, int]] = []

    def add(self, name: str, cents: int) -> None:
        """Put one piece into the cart."""
        self._lines.append((name, cents))

    def total(self) -> int:
        """Return what everything costs together, in cents."""
        return sum(cents for _, cents in self._lines)
