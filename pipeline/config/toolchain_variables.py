"""Says which variables `[toolchains.NAME] env` may set, and what of a command would set some.

What comes before the test runner in a configured command is never part of a measurement, so variables that are set
there would not reach a test.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_VARIABLE: Final = r"[A-Za-z_]\w*"
_ASSIGNMENT: Final = re.compile(rf"({_VARIABLE})=", re.ASCII)
_OURS: Final = re.compile(
    r"PATH|HOME|TMPDIR|TMP|TEMP|USER|SHELL|TERM|LD_\w+|REDFIRST_\w+|GIT_\w+"
    r"|PYTHON(PATH|HASHSEED|PYCACHEPREFIX|NOUSERSITE|DONTWRITEBYTECODE|HOME)|NO_COLOR|COVERAGE_FILE"
    r"|HYPOTHESIS_STORAGE_DIRECTORY|PYTEST_(DEBUG_TEMPROOT|PLUGINS)"
    r"|CARGO_(HOME|TARGET_DIR|NET_OFFLINE|INCREMENTAL|TERM_\w+)|RUST(_LIB)?_BACKTRACE"
    r"|GO(CACHE|TMPDIR|FLAGS|ENV|TOOLCHAIN|PROXY|SUMDB|VCS|MODCACHE|ROOT|WORK|TRACEBACK)"
    r"|NODE_OPTIONS|npm_config_\w+|(NODE_DISABLE|DISABLE_V8)_COMPILE_CACHE|(TSX|BABEL)_DISABLE_CACHE",
    re.ASCII,
)
"""The variables that a measurement sets, or that would send what it reads and writes elsewhere."""
_SETTERS: Final = frozenset({"env", "cross-env"})
"""Programs that take variables before the program that they start."""
_LOADERS: Final = frozenset({"doppler", "dotenv", "dotenvx", "env-cmd", "envdir"})
"""Programs that set what a file or a service holds."""
_COMMAND_LINE: Final = frozenset({"-c", "-lc", "--command", "--run"})
"""Options of shells behind which a whole command line comes."""


def fault_of(name: str) -> str | None:
    """Return why a variable of this name cannot be set for tests, None if it can."""
    if not re.fullmatch(_VARIABLE, name, re.ASCII):
        return "is no name of a variable"
    return "is set by redfirst where tests are measured: leave it out" if _OURS.fullmatch(name) else None


def set_by(command: Sequence[str]) -> tuple[str, ...]:
    """Return what sets variables in a command: their names, else the program or the option that reads them.

    A variable counts where a program may be named: `-k a=b` of a runner is none.
    """
    return tuple(dict.fromkeys(_set_by(command)))


def _set_by(command: Sequence[str]) -> Iterator[str]:
    if PurePosixPath(command[0]).name in _LOADERS:
        yield command[0]
    if PurePosixPath(command[0]).name == "uv":
        yield from (word.partition("=")[0] for word in command if word.partition("=")[0] == "--env-file")
    may_set = True
    for word in command:
        for part in word.split() if may_set else (word,):
            found = _ASSIGNMENT.match(part)
            if found is not None and may_set:
                yield found[1]
            elif not part.startswith("-"):
                may_set = PurePosixPath(part).name in _SETTERS
        may_set = may_set or word in _COMMAND_LINE
