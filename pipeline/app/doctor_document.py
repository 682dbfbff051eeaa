"""Defines what `doctor --json` prints: its checks, and the agents that are here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.data_types import Frozen


class LoginLine(Frozen):
    """A login file that is there; it was not read."""

    path: str
    private: bool


class AgentLine(Frozen):
    """An agent, a model server or the model API, as it is found here.

    Args:
        name: What `redfirst init --agent` calls it.
        tested: The version that the backend was tested with; None where there is none.
        variables: The names of its credential variables that are set.
        box: Whether it starts in the box, in words; null where that was not tried.
        config: The lines of `[agents]` that it takes, and what stands beside them.
    """

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


class Check(Frozen):
    """One question of the self-check. `same_as` is the check that tells its cause, where another one does."""

    id: str
    status: Literal["ok", "warn", "fail"]
    message: str
    advice: str = ""
    same_as: str | None = None


class DoctorDocument(Frozen):
    """What `doctor --json` prints. `judge`: a run can be started, but look at the warnings first."""

    schema_: Literal["redfirst.doctor/1"] = Field(default="redfirst.doctor/1", alias="schema")
    ok: bool
    proceed: Literal["true", "judge", "block"]
    checks: tuple[Check, ...]
    version: str
    agents: tuple[AgentLine, ...] = ()
