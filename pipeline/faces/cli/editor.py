"""Starts the user's editor: `$VISUAL`, else `$EDITOR` (contract 1)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_STDERR: Final = 2
_USUAL: Final = ("editor", "nano", "vim", "vi")
"""What is looked for where nobody said which editor; the first is Debian's own choice."""


def named_editor() -> list[str]:
    """Return the words that start the editor that the user names; none where they name none.

    Raises:
        UserError: what they name is no command.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        return shlex.split(named)
    except ValueError as error:
        raise UserError(f"VISUAL or EDITOR is no command ({error}): {named}", Reason.USAGE) from None


def require_editor(otherwise: str = "") -> list[str]:
    """Return the words that start the user's editor, or a usual one that is installed.

    Args:
        otherwise: What works without an editor.

    Raises:
        UserError: none is named, and none is there or there is no terminal for it; or what is named is no command.
    """
    is_screen = sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    usual = (found for name in _USUAL if (found := shutil.which(name)) is not None)
    words = named_editor() or ([place] if is_screen and (place := next(usual, None)) is not None else [])
    if not words:
        raise UserError(f"No editor is named, and none is found: set VISUAL or EDITOR{otherwise}", Reason.USAGE)
    return words


def edit(path: Path, editor: Sequence[str] = ()) -> None:
    """Let the user edit a file, and wait until the editor ends.

    Args:
        path: The file.
        editor: The words that start the editor; by default theirs.

    Raises:
        UserError: there is no editor, or it did not start or end well.
    """
    words = editor or require_editor()
    # an editor needs the terminal, also where what we print goes into a pipe
    output = None if sys.stdout.isatty() else _STDERR
    try:
        code = subprocess.run([*words, str(path)], stdout=output, check=False).returncode
    except OSError as error:
        raise UserError(f"The editor {words[0]} does not start: {error.strerror}.", Reason.USAGE) from None
    if code:
        raise UserError(f"The editor {words[0]} ended with exit code {code}.", Reason.USAGE, path=str(path))
