"""Handles every error: tells what a person can mend, tells usage, and leaves a log of the rest (contract 1, 2).

Light on purpose: this module is on the path of `--help`. The model of the error document is in `schema`.
"""

from __future__ import annotations

import json as json_text
import os
import platform
import re
import shlex
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import typer

from pipeline import VERSION
from pipeline.characters import visible
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.faces.cli.text import print_text, several_lines
from pipeline.interrupts import StoppedError
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.run.files import full_disk
from pipeline.terminal import visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMA: Final = "redfirst.error/1"
INTERNAL: Final = "internal"
"""The kind of a bug of ours; every other kind is a `Reason`."""

_BUG: Final = 1
_BROKEN_PIPE: Final = 141  # what a shell reports of a program that SIGPIPE ended
_LIBRARIES: Final = ("pydantic", "typer", "anyio", "PyYAML")
_NO_CHOICE: Final = re.compile(r"'([^']*)' is not one of ((?:'[^']*'(?:, )?)+)")
_SECRET: Final = re.compile(r"(\benv\.[^=]+=).*", re.DOTALL)
_COVERED: Final = r"\1***"
_UNDONE: Final = {
    **dict.fromkeys(("run", "resume", "approve", "reject", "answer"), "nothing was begun"),
    "demo": "the example is not finished, and its folder can be removed",
    "hand-in": "nothing was handed in, and the desk is as it was",
    "trust": "nothing was allowed",
    **dict.fromkeys(("abandon", "init", "issue"), "it may be done in part"),
}
"""What is true of a command that is interrupted before it has said anything itself."""


def wants_json(argv: Sequence[str]) -> bool:
    """Return whether *argv* asks for one JSON document, before any parser has looked at it."""
    words = list(argv)
    ours = words[: words.index("--")] if "--" in words else words
    return "--json" in ours


def run_guarded(call: Callable[[], object], *, json: bool) -> int:
    """Run *call*, tell how it failed, and return the exit code of the process.

    Args:
        call: The whole program, for example a typer application that is not in standalone mode; an int that it
            returns is the exit code.
        json: Errors are one JSON document on stdout instead of lines on stderr.
    """
    try:
        result = call()
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  (the one place where everything ends)
        return _tell(_innermost(error), json=json)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _innermost(error: BaseException) -> BaseException:
    # A task group wraps even a lone failure.
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _innermost(group.exceptions[0]) if len(group.exceptions) == 1 else group


def _tell(error: BaseException, *, json: bool) -> int:
    match error:
        case BrokenPipeError() | SystemExit(__context__=BrokenPipeError()):  # the parser makes the second of the first
            # The reader has gone. Whatever is still in the buffer must not fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _BROKEN_PIPE
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case UserError(reason=Reason.INTERRUPTED):
            return _tell_interrupted(error, json=json)
        case UserError():
            _render(error, json=json)
            return exit_code(Outcome.REJECTED, error.reason)
        case OSError() if (told := full_disk(error, Path())) is not None:
            _render(told, json=json)
            return exit_code(Outcome.REJECTED, Reason.DISK)
        case FileNotFoundError() if _nowhere():
            told = UserError("The folder you stand in is not there any more. Change into the repository.", Reason.USAGE)
            _render(told, json=json)
            return exit_code(Outcome.REJECTED, Reason.USAGE)
        case typer.Exit():
            return error.exit_code
        case KeyboardInterrupt() | StoppedError() | typer.Abort():
            command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            said = f"Interrupted: {_UNDONE.get(command, 'nothing was changed')}."
            return _tell_interrupted(UserError(said, Reason.INTERRUPTED), json=json)
        case _ if (usage := _usage_message(error)) is not None:
            command = getattr(getattr(error, "ctx", None), "command_path", "redfirst")
            # A group that was called with nothing: its help is the message, or has been printed already.
            called_with_nothing = not usage or type(error).__name__ == "NoArgsIsHelpError"
            if called_with_nothing and not json:
                print(visible_lines(usage), end="\n" if usage else "", file=sys.stderr)  # noqa: T201  (stderr is for people)
            else:
                message = "Missing command." if called_with_nothing else usage
                _render(UserError(message, Reason.USAGE, actions=(f"{command} --help",)), json=json)
            return exit_code(Outcome.REJECTED, Reason.USAGE)
        case _:
            return _tell_unforeseen(error, json=json)


def _tell_unforeseen(error: BaseException, *, json: bool) -> int:
    """Tell what git itself said, where it failed; a log is left, for it may be our fault after all, as all else is."""
    from pipeline.repo import GitError

    if not isinstance(error, GitError):
        _tell_bug(error, json=json)
        return _BUG
    told = error.told()
    log = _write_log(error)
    told.message += f" If that is no matter of this repository, report it with {log}" if log else ""
    _render(told, json=json)
    return exit_code(Outcome.REJECTED, told.reason)


def _tell_interrupted(error: UserError, *, json: bool) -> int:
    """Say in one line what was interrupted and how it is done again."""
    if not error.actions:
        words = [_SECRET.sub(_COVERED, word) for word in sys.argv[1:]]
        error.actions = (shlex.join(["redfirst", *words]),)
    if json:
        _render(error, json=True)
    else:
        line = visible(f"redfirst: {error.message} Again: {error.actions[0]}")
        print(line, file=sys.stderr)  # noqa: T201  (stderr is for people)
    return exit_code(Outcome.CANCELLED, Reason.INTERRUPTED)


def _nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _usage_message(error: BaseException) -> str | None:
    # typer's class for this is private, and another one in the releases that import click; its method is the same.
    format_message = getattr(error, "format_message", None)
    if not callable(format_message):
        return None
    options: Sequence[str] = getattr(error, "possibilities", None) or ()
    if options and (option := getattr(error, "option_name", None)):
        return f"No such option: {option}. Did you mean {' or '.join(options)}?"
    said = str(format_message()).strip().replace("Value error, ", "")
    choice = _NO_CHOICE.search(said)
    if choice is None:
        return said
    from difflib import get_close_matches

    near = get_close_matches(choice[1], re.findall(r"'([^']*)'", choice[2]), n=1)
    return f"{said} Did you mean '{near[0]}'?" if near else said


def _render(error: UserError, *, json: bool, kind: str | None = None) -> None:
    if json:
        told = error.facts | ({"kind": kind} if kind else {})
        told |= {"also": [each.facts for each in error.also]} if error.also else {}
        document = {"schema": SCHEMA, "ok": False, "error": told}
        print(json_text.dumps(document, default=str), flush=True)  # noqa: T201  (stdout is this document)
        return
    for each in (error, *error.also):
        message = several_lines(each.message)
        actions = (f"  - {visible(action)}" for action in each.actions)
        print_text("\n".join([f"redfirst: {'' if each is error else 'also: '}{message}", *actions]), err=True)


def _tell_bug(error: BaseException, *, json: bool) -> None:
    log = _write_log(error)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if log is None:
        print(visible_lines("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201  (stderr is for people)
    told = UserError(
        f"This is a bug in redfirst: {what}. Report it with {log or 'the lines above'}",
        Reason.ENVIRONMENT,
        path=str(log) if log else None,
    )
    _render(told, json=json, kind=INTERNAL)


def _write_log(error: BaseException) -> Path | None:
    """Write what a report of a bug needs; return the file, or None when the folder cannot be written."""
    from pipeline.sandbox.redaction import redact, secrets_of

    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = state_folder(os.environ) / "log" / f"{stamp}-{os.getpid()}.log"
    lines = [
        f"redfirst {VERSION}",
        f"python {platform.python_version()} on {platform.platform()}",
        *(f"{name} {_version(name)}" for name in _LIBRARIES),
        f"argv {[_SECRET.sub(_COVERED, word) for word in sys.argv]}",
        f"cwd {os.environ.get('PWD', '-')}",
        "",
        *traceback.format_exception(error),
    ]
    text = "\n".join(line.rstrip("\n") for line in lines) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(redact(text.encode(errors="backslashreplace"), secrets_of(os.environ)))
    except OSError:
        return None
    return path


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "-"
