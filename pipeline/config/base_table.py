"""What all tables of the configuration have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[int, Field(ge=1)]


class Table(BaseModel):
    """Frozen, and a key that nobody reads is an error: a typo must not pass for a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")
