"""The tests of a fleet under fire have a server of their own."""

from queued.conftest import own

__all__ = ["own"]
