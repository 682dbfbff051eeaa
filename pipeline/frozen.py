"""Defines what data of the program is, if nothing else is said: it cannot be changed, and has no unknown key."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Data that cannot be changed. A key that it does not know is an error, also in a file that a person wrote.

    Its validator is built by who first needs it: a command imports many of these and uses few.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)
