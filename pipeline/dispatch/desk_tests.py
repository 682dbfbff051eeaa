"""Writes the program at a person's desk that runs the project's tests over its files, as a measurement would.

There is no box: the import path is that of a measurement without one, and so are all variables. An editable install
would lead into the user's worktree otherwise. What is built lies beside the desk: in it, it would be handed in.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.dispatch import caches
from pipeline.process import Mount

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.dispatch.request import Tools

_LINK = """\
[ -e {there} ] || [ -L {there} ] || {{ ln -s {here} {there}; made="$made "{there}; }}
"""


def script_of(tools_of: Callable[[Mount], Tools], files: Path) -> str | None:
    """Return the text of a program that runs tests by id; None if no test command is known.

    Args:
        tools_of: What the project's own tools need, given the files.
        files: The files at the desk.
    """
    tools = tools_of(Mount(files, files, writable=True))
    if not tools.test_command:
        return None
    links = "".join(
        _LINK.format(here=shlex.quote(str(link.source)), there=shlex.quote(str(link.target.relative_to(files))))
        for link in tools.links
    )
    built = files.with_name("caches")
    variables = shlex.join(
        f"{name}={value}" for name, value in sorted({**tools.env, **caches.variables(built)}.items())
    )
    return f"""\
#!/bin/sh
# Runs the tests over the files of this desk as redfirst measures them: those with these ids, or all.
mkdir -p {shlex.quote(str(built))} && cd {shlex.quote(str(files))} || exit 1
made=
trap 'for link in $made; do rm -f "$link"; done' EXIT
{links}env -i HOME="$HOME" TERM="${{TERM:-dumb}}" {variables} {shlex.join(tools.test_command)} "$@"
"""
