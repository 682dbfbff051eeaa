"""One agent in what `doctor --json` prints."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LoginLine(BaseModel):
    """A login file that is there; it was not read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    private: bool


class AgentLine(BaseModel):
    """An agent, a model server or the model API, as it is found here.

    Args:
        name: What `redfirst init --agent` calls it.
        tested: The version that the backend was tested with; None where there is none.
        variables: The names of its credential variables that are set.
        box: Whether it starts in the box, in words; null where that was not tried.
        config: The lines of `[agents]` that it takes, and what stands beside them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    path: str | None = None
    version: str | None = None
    tested: str | None = None
    logins: tuple[LoginLine, ...] = ()
    variables: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    box: str | None = None
    config: tuple[str, ...]
