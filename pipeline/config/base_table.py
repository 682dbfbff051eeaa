"""The base class of all tables of the configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[int, Field(ge=1)]


class Table(BaseModel):
    """A frozen table in which an unknown key is an error, so that a typo does not pass for a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")
