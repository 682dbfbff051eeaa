"""The tables `[notify.NAME]` and `[otel]`: who is told of events, and where traces go. No I/O.

Each of their values starts a program of the user's, or sends something away. So all of them widen (`trust`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pipeline.config.agents import Argv
from pipeline.config.providers import ProviderName, Url, Variable
from pipeline.config.tables import Table

SinkName = ProviderName


class Form(StrEnum):
    """What is sent to an address: the event itself, or a line of text as services like Slack take it."""

    EVENT = "event"
    SLACK = "slack"


class Sink(Table):
    """`[notify.NAME]`: a command or an address that is told of events. It has one of `command`, `url`, `url_env`."""

    types: Annotated[
        tuple[str, ...], Field(description='Patterns of types of events, such as "run.*"; none means all')
    ] = ()
    command: Annotated[
        Argv | None,
        Field(description="A command with the event on stdin; {type}, {subject}, {project} and {text} are filled in"),
    ] = None
    url: Annotated[Url | None, Field(description="An address that is sent each event as a POST request")] = None
    url_env: Annotated[
        Variable | None, Field(description="The variable that holds the address, where that is a secret")
    ] = None
    form: Annotated[
        Form, Field(description="The body of the request: the event, or `text` as services like Slack take it")
    ] = Form.EVENT
    secret_env: Annotated[
        Variable | None, Field(description="The variable that holds the key of a Standard Webhooks signature")
    ] = None

    @property
    def fault(self) -> str:
        """Return what keeps it from being told anything; empty where nothing does."""
        if sum(each is not None for each in (self.command, self.url, self.url_env)) != 1:
            return "needs exactly one of command, url and url_env"
        if self.command is not None and (self.secret_env is not None or self.form is not Form.EVENT):
            return "has a command, for which form and secret_env mean nothing"
        return ""


class Otel(Table):
    """`[otel]`: where the traces of runs are sent."""

    endpoint: Annotated[
        Url | None, Field(description="A collector that takes OTLP over HTTP; else the variables OTEL_EXPORTER_OTLP_*")
    ] = None
