"""`redfirst notify`: sends what happens to the sinks of `[notify]` (docs/how-to/notices.md)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from pipeline.app.notices.delivery import Notices, NotifyDocument, SinkLine, folder_of, send_example, sending, serve
from pipeline.app.run_config import refuse_recursion, trusted_config
from pipeline.app.run_list import find
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, RunName
from pipeline.faces.cli.text import print_result, say
from pipeline.interrupts import StoppedError
from pipeline.matrix.engine.journal import stamp, utc_now
from pipeline.outcomes import Reason
from pipeline.repo import Repository
from pipeline.run.runs_of_repository import Roster


def notify(
    once: Annotated[bool, typer.Option("--once", help="Send what is there and due, and end.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Send once more what was given up, and end.")] = False,
    test: Annotated[
        str | None, typer.Option("--test", metavar="NAME", help="Only send an example event to this one.")
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Send what happens in runs to the commands and addresses of `[notify]`, until it is stopped.

    `redfirst run` and `redfirst work` send by themselves while they are at work. One process at a time sends for a
    repository.

    Examples:
      redfirst notify

      redfirst notify --test desktop

      redfirst notify --again
    """
    if sum((once, again, test is not None)) > 1:
        raise UserError("--once, --again and --test are three ways to use this: give one of them.", Reason.USAGE)
    environ = os.environ
    refuse_recursion(environ)
    repository = Repository.find(Path.cwd())
    sinks = trusted_config(repository, environ, "notify").notify
    if not sinks:
        raise UserError(
            "Nobody is to be notified: the configuration has no table [notify.NAME].",
            Reason.CONFIG,
            actions=("redfirst init --notify desktop",),
        )
    if test is not None:
        document = send_example(repository, sinks, test, environ)
        print_result(document, document_text, as_document=as_document)
        return
    with sending(folder_of(repository, environ)) as is_ours:
        if not is_ours:
            raise UserError("Another process notifies for this repository. Try again when it has ended.", Reason.LOCKED)
        now = stamp(utc_now())
        notices = Notices(repository, sinks, environ, lambda said: say(visible(said)), since=now, again=again)
        with suppress(KeyboardInterrupt, StoppedError):  # that is how it ends
            if once or again:
                notices.send()
            else:
                serve(notices, Event())
        print_result(notices.document, document_text, as_document=as_document)


def export_traces(name: RunName = None, as_document: AsDocument = False) -> None:
    """Send a run to a collector of OpenTelemetry, as one trace.

    It is built from the journal each time. So a second time sends the same trace. The collector is `[otel] endpoint`,
    or that of the variables `OTEL_EXPORTER_OTLP_*`.

    Examples:
      redfirst export-traces GAL-39

      redfirst export-traces GAL-39 --json
    """
    from pipeline.app.traces import export

    repository = Repository.find(Path.cwd())
    folder = find(Roster(repository), name)
    document = export(folder, trusted_config(repository, os.environ, "otel").otel.endpoint, os.environ)
    print_result(
        document, lambda one: f"sent {one.run_id} as trace {one.trace}, {one.spans} spans", as_document=as_document
    )


def document_text(document: NotifyDocument) -> str:
    """Return how each sink stands, for a person."""
    return "\n".join(map(_line, document.sinks))


def _line(one: SinkLine) -> str:
    said = [f"{one.sent} sent", f"{one.waits} to be sent", f"{one.given_up} given up"]
    return f"{one.name}: {', '.join(said)}{f' ({one.why})' if one.why else ''}"
