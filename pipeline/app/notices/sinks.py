"""Sends one event to one sink: a command of the user's, or an address. It says why where that was in vain."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pipeline.app.webhooks import signature
from pipeline.characters import visible
from pipeline.config.model import Form, Sink
from pipeline.sandbox.redaction import redacted_text, secrets_of
from pipeline.search_path import without_the_repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from pipeline.app.events.model import Event

_COMMAND_S: Final = 60.0
"""Seconds that a command may take for an event."""
_REQUEST_S: Final = 10.0
_LONGEST: Final = 200
_TAIL: Final = 4096
_FIELD: Final = re.compile(r"\{(type|subject|project|text)\}")
_CLOSED: Final = ("outcome", "reason", "gate", "point", "then", "signal", "status")
"""The keys of events whose values are words of ours: what an agent or a person wrote is no part of a text."""


class UnsentError(Exception):
    """A sink did not take an event; the message says why, and has no secret."""


def send(sink: Sink, event: Event, environ: Mapping[str, str], folder: Path, now: datetime) -> None:
    """Send an event.

    Args:
        sink: To whom.
        event: What happened.
        environ: The user's environment, with the sink's secrets.
        folder: Where a command is started.
        now: The time that a signature says.

    Raises:
        UnsentError: the sink did not take it.
    """
    try:
        if sink.command is not None:
            _run([_with_fields(word, event) for word in sink.command], event, environ, folder)
        else:
            _post(sink, event, environ, now)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnsentError(_short(str(getattr(error, "reason", None) or error) or type(error).__name__)) from error


def text_of(event: Event) -> str:
    """Return an event as a few words for a person, without anything that an agent wrote."""
    short = event.type.removeprefix("redfirst.").removesuffix(".v1")
    said = [str(event.data[key]) for key in _CLOSED if event.data.get(key)]
    return short.replace(".", " ") + (f": {', '.join(said)}" if said else "")


def _with_fields(word: str, event: Event) -> str:
    project = visible(event.source.rpartition("/")[2])
    values = {"type": event.type, "subject": event.subject, "project": project, "text": text_of(event)}
    return _FIELD.sub(lambda match: values[match[1]], word)


def _short(text: str) -> str:
    return visible(" ".join(text.split()))[:_LONGEST]


# --- a command -------------------------------------------------------------------------------------------------------


def _run(argv: list[str], event: Event, environ: Mapping[str, str], folder: Path) -> None:
    path = without_the_repository(environ.get("PATH", os.defpath), folder)
    with tempfile.TemporaryFile() as told:  # what the command starts may hold a pipe open
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                env={**environ, "PATH": path},
                input=f"{event}\n".encode(),
                stdout=subprocess.DEVNULL,
                stderr=told,
                timeout=_COMMAND_S,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UnsentError(f"the command took more than {_COMMAND_S:g} s") from None
        if done.returncode != 0:
            told.seek(max(0, os.fstat(told.fileno()).st_size - _TAIL))
            text = redacted_text(told.read().decode(errors="replace"), secrets_of(environ), shapes=True)
            said = _short(text[-_LONGEST:])
            raise UnsentError(f"the command ended with {done.returncode}{f': {said}' if said else ''}")


# --- an address ------------------------------------------------------------------------------------------------------


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the answer of a sink does not choose where the user's events go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no further request."""


def _post(sink: Sink, event: Event, environ: Mapping[str, str], now: datetime) -> None:
    if sink.form is Form.SLACK:
        subject = f"{visible(event.source.rpartition('/')[2])}/{event.subject}"
        text = f"{subject}: {text_of(event)}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body, kind = json.dumps({"text": text}).encode(), "application/json"
    else:
        body, kind = str(event).encode(), "application/cloudevents+json"
    name = f"msg_{hashlib.sha256(str(event).encode()).hexdigest()[:32]}"
    moment = str(int(now.timestamp()))
    headers = {"Content-Type": kind, "User-Agent": "redfirst", "webhook-id": name, "webhook-timestamp": moment}
    if sink.secret_env is not None:
        headers["webhook-signature"] = _signature_of(sink.secret_env, environ, name, moment, body)
    request = urllib.request.Request(_address(sink, environ), body, headers, method="POST")  # noqa: S310  (`Url`)
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_REQUEST_S):
            return
    except urllib.error.HTTPError as error:
        error.close()
        raise UnsentError(f"the address answers {error.code}") from None


def _address(sink: Sink, environ: Mapping[str, str]) -> str:
    if sink.url_env is None:
        return str(sink.url)
    value = environ.get(sink.url_env)
    if not value:
        raise UnsentError(f"the variable {sink.url_env} is not set")
    try:
        return str(Sink(url=value).url)
    except ValidationError:
        raise UnsentError(f"the variable {sink.url_env} has no address like https://host/path") from None


def _signature_of(variable: str, environ: Mapping[str, str], name: str, moment: str, body: bytes) -> str:
    value = environ.get(variable)
    if not value:
        raise UnsentError(f"the variable {variable} is not set")
    try:
        return signature(value, name, moment, body)
    except ValueError:
        raise UnsentError(f"the variable {variable} has no base64, with or without whsec_") from None
