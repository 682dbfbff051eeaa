"""The user's editor: `$VISUAL`, else `$EDITOR` (contract 1)."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pathlib import Path


_STDERR: Final = 2


def require_editor() -> list[str]:
    """Return the words that start the editor.

    Raises:
        UserError: none is named.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise UserError(f"VISUAL or EDITOR is no command ({error}): {named}", Reason.USAGE) from None
    if not words:
        raise UserError("No editor is named: set VISUAL or EDITOR, for example: export EDITOR=nano", Reason.USAGE)
    return words


def edit(path: Path) -> None:
    """Let the user edit a file, and wait until the editor ends.

    Raises:
        UserError: no editor is named, or it did not start or end well.
    """
    words = require_editor()
    # an editor needs the terminal, also where what we print goes into a pipe
    output = None if sys.stdout.isatty() else _STDERR
    try:
        code = subprocess.run([*words, str(path)], stdout=output, check=False).returncode
    except OSError as error:
        raise UserError(f"The editor {words[0]} does not start: {error.strerror}.", Reason.USAGE) from None
    if code:
        raise UserError(f"The editor {words[0]} ended with exit code {code}.", Reason.USAGE, path=str(path))
