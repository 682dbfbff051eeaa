"""An act of the script as a call of a tool that the request offers.

No product is named here. Tools are known by the names in use among agents, their parameters by what those are called
in the schema that the request brings; a parameter that must be given and is unknown is a loud error.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from model_service.asked import Call
from model_service.documents import part, texts
from model_service.script import Edit, RawCall, Read, Run, Write, quoted

if TYPE_CHECKING:
    from model_service.asked import Asked, Tool
    from model_service.documents import Json
    from model_service.script import Act


class ScriptError(Exception):
    """The script and a request do not fit; the sentence says how."""


_TOOLS: Final[dict[type, tuple[str, ...]]] = {
    Read: ("Read", "read_file", "read"),
    Write: ("Write", "write_file", "write"),
    Edit: ("Edit", "replace", "edit"),
    Run: ("Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell", "run"),
}
_ABSOLUTE: Final = ("file_path", "filePath", "absolute_path", "abs_path")
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "path": (*_ABSOLUTE, "path", "file"),
    "content": ("content", "text", "contents"),
    "old": ("old_string", "oldString", "old_str", "old_text", "old"),
    "new": ("new_string", "newString", "new_str", "new_text", "new"),
    "command": ("command", "cmd"),
}
_PATIENCE: Final = {"yield_time_ms": 30_000}
"""Optional parameters worth giving: a shell that answers before its command has ended needs more turns than we play."""

_SHELLS: Final = ("exec_command", "shell_command", "shell", "exec")
"""Of an agent that does everything through its shell: it has no tools for files but the patch."""

_REPLACE: Final = (
    "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().replace(*sys.argv[2:], 1))"
)


def calls_of(acts: tuple[Act, ...], asked: Asked) -> tuple[Call, ...]:
    """Return the calls that do *acts*.

    Raises:
        ScriptError: the request offers no tool for one of them.
    """
    return tuple(_call(act, asked) for act in acts)


def _call(act: Act, asked: Asked) -> Call:
    if isinstance(act, RawCall):
        free = any(tool.free for tool in asked.tools if tool.name == act.tool)
        return Call(act.tool, act.arguments if isinstance(act.arguments, str) else json.dumps(act.arguments), free)
    if tool := asked.tool(*_TOOLS[type(act)]):
        return Call(tool.name, json.dumps(_arguments(tool, act, asked.prompt.workspace)))
    if isinstance(act, Write) and asked.tool("apply_patch") and act.content.endswith("\n"):
        return Call("apply_patch", _patch(act), free=True)
    if isinstance(act, Run) and (tool := asked.tool("exec")) and tool.free:
        # The model writes JavaScript there, and that calls the tools.
        given = json.dumps({"cmd": act.command, **_PATIENCE})
        return Call(tool.name, f"text(await tools.exec_command({given}))", free=True)
    if not isinstance(act, Run) and asked.tool(*_SHELLS):
        return _call(Run(command=_in_shell(act)), asked)
    offered = ", ".join(tool.name for tool in asked.tools) or "nothing"
    raise ScriptError(f"the request offers no tool to {act.act}; it offers {offered}")


def _in_shell(act: Read | Write | Edit) -> str:
    path = quoted(act.path)
    if isinstance(act, Read):
        return f"cat {path}"
    if isinstance(act, Edit):
        return f"python3 -c {quoted(_REPLACE)} {path} {quoted(act.old)} {quoted(act.new)}"
    folder, slash, _ = act.path.rpartition("/")
    making = f"mkdir -p {quoted(folder)} && " if slash else ""
    return f"{making}printf %s {quoted(act.content)} > {path}"


def _patch(act: Write) -> str:
    lines = "".join(f"+{line}\n" for line in act.content.removesuffix("\n").split("\n"))
    return f"*** Begin Patch\n*** Add File: {act.path}\n{lines}*** End Patch\n"


def _arguments(tool: Tool, act: Read | Write | Edit | Run, workspace: str | None) -> Json:
    known = part(tool.parameters, "properties")
    given: Json = {name: value for name, value in _PATIENCE.items() if name in known}
    facts: dict[str, str] = {name: value for name, value in asdict(act).items() if name != "act"}
    for fact, value in facts.items():
        name = next((word for word in _WORDS[fact] if word in known), None)
        if name is None:
            raise ScriptError(f"the tool {tool.name} has no parameter for {fact}; it has {', '.join(known) or 'none'}")
        several = part(known, name).get("type") == "array"
        given[name] = ["bash", "-c", value] if several else _absolute(name, value, workspace)
    for name in texts(tool.parameters, "required"):
        if name not in given:
            given[name] = _filler(tool, name, part(known, name))
    return given


def _absolute(name: str, value: str, workspace: str | None) -> str:
    if name not in _ABSOLUTE or value.startswith("/"):
        return value
    if workspace is None:
        raise ScriptError(f"{name} is an absolute path, and no prompt names the workspace")
    return f"{workspace}/{value}"


def _filler(tool: Tool, name: str, schema: Json) -> str:
    if schema.get("type") not in {"string", "STRING"}:
        raise ScriptError(f"the tool {tool.name} wants {name}, and no script knows what that is")
    return "as the script says"
