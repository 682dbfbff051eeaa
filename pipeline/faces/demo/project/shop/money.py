"""Amounts of money are whole cents."""


def price_tag(cents: int) -> str:
    """Return the amount as a price tag says it: 1950 is "19.50"."""
    return f"{cents // 100}.{cents % 100:02}"
