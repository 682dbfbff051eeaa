"""The command that adds an extra fits how redfirst was installed."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from pipeline.agents.backends.extras import command_in, install_command

if TYPE_CHECKING:
    from pathlib import Path

CHECKOUT = json.dumps({"url": "file:///home/ada/a%20b/redfirst", "dir_info": {}})
EDITABLE = json.dumps({"url": "file:///src/redfirst", "dir_info": {"editable": True}})
FROM_GIT = json.dumps({"url": "https://example.org/redfirst", "vcs_info": {"vcs": "git", "commit_id": "0123abc"}})
WHEEL = json.dumps({"url": "https://example.org/redfirst.whl", "archive_info": {}})


@pytest.mark.parametrize(
    ("left", "has_pip", "begins"),
    [
        ("uv-receipt.toml", False, "uv tool install "),
        ("pipx_metadata.json", True, "pipx install --force "),
        ("pyvenv.cfg", True, "/env/bin/python -m pip install "),
        ("pyvenv.cfg", False, "uv pip install --python /env/bin/python "),
    ],
)
@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (None, ["redfirst[api]"]),
        (CHECKOUT, ["/home/ada/a b/redfirst[api]"]),
        (EDITABLE, ["--editable", "/src/redfirst[api]"]),
        (FROM_GIT, ["redfirst[api] @ git+https://example.org/redfirst@0123abc"]),
        (WHEEL, ["redfirst[api] @ https://example.org/redfirst.whl"]),
    ],
)
def test_it_is_added_by_what_installed_the_program_and_from_where_it_came(
    tmp_path: Path, left: str, has_pip: bool, begins: str, origin: str | None, what: list[str]
) -> None:
    (tmp_path / left).touch()
    command = command_in(tmp_path, "/env/bin/python", origin, "api", has_pip=has_pip)
    assert command.startswith(begins)
    assert shlex.split(command.removeprefix(begins)) == what


def test_of_this_installation_the_interpreter_is_named() -> None:
    assert sys.executable in shlex.split(install_command("api"))
