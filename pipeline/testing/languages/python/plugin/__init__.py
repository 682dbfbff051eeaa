"""Our pytest plugin: records a session as JSON lines and changes nothing.

This folder is copied out of the package as `redfirst_evidence` and runs alone in the interpreter of the measured
project: Python 3.8 syntax, pytest 6 and later, no import of ours but of its own modules, which are all loaded with it.
It records facts; `judge/evidence` judges them. Code under test shares this interpreter: forgery is made conspicuous
here, not impossible (ADR-R41). It has no assertions worth rewriting: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from typing import Any

from .recorder import Recorder, read_request

_WAITING = read_request()  # as early as this: whoever is imported later finds nothing to read


def pytest_addoption(pluginmanager: Any) -> None:
    """Register the recorder as early as possible; a second pytest in the same process finds no request."""
    if _WAITING:
        pluginmanager.register(Recorder(*_WAITING.pop()), "redfirst-recorder")
