"""Short names for titles, as they stand in addresses."""


def slug(title: str) -> str:
    """Return the title in small letters, with a hyphen for each space."""
    return title.lower().replace(" ", "-")
