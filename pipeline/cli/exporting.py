"""Our roles in the words of other products: an agent file for each, and what of ours such a file cannot say.

An agent file only tells a product which of its tools to offer. What holds in a run (box, gate, measured tests) does not
travel, so a key without an equivalent is named with its reason and never approximated in silence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.policy.roles import Writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.policy.roles import RoleSpec

PREFIX: Final = "redfirst-"


class Target(StrEnum):
    """The products that we can write agent files for."""

    OPENCODE = "opencode"
    CLAUDE = "claude"


FOLDERS: Final[Mapping[Target, str]] = {Target.OPENCODE: ".opencode/agents", Target.CLAUDE: ".claude/agents"}
"""Where each product looks, relative to the top of a repository."""


@dataclass(frozen=True)
class Ignored:
    """A key of a role that the product does not keep, or keeps less strictly than a run does."""

    key: str
    value: str
    why: str


@dataclass(frozen=True)
class AgentFile:
    """One role as a file of the product."""

    role: str
    name: str
    text: str
    ignored: tuple[Ignored, ...]

    @property
    def file(self) -> str:
        """Return the file's name."""
        return f"{self.name}.md"


_OUTSIDE: Final = """\
# Outside redfirst

These are the rules of a role of redfirst, exported for another program. Here you are asked by a person or by another
agent, not by a run: nobody hands you artifacts, no gate compares the workspace afterwards, nothing of what you say is
measured, and there is no report file. Keep to the rules all the same, they now rest on you alone. Ask for what is
missing (the issue, the plan, the task, the diff), and give the report in your last message."""


def agent_file(spec: RoleSpec, target: Target) -> AgentFile:
    """Return the role as a file of the product."""
    name = f"{PREFIX}{spec.name}"
    front = _opencode(spec) if target is Target.OPENCODE else _claude(spec, name)
    text = "\n".join(["---", *front, "---", "", spec.prompt, "", _OUTSIDE, ""])
    return AgentFile(spec.name.value, name, text, tuple(_ignored(spec, target)))


def _edits(spec: RoleSpec) -> bool:
    """Return whether the role changes files itself; the tracker is written by our library, from an answer."""
    return spec.writes in {Writes.TASK, Writes.TESTS}


def _opencode(spec: RoleSpec) -> Iterator[str]:
    """Yield front matter. Of the rules that match, the last one counts, so what is refused in general comes first."""
    yield f"description: {_scalar(spec.description)}"
    yield "mode: all"
    yield "permission:"
    yield '  "*": deny'
    yield '  read: {"*": allow, "*.env": deny, "*.env.*": deny, "*.env.example": allow}'
    yield from (f"  {tool}: allow" for tool in ("glob", "grep", "list"))
    if _edits(spec):
        yield '  edit: {"*": allow, "TODO/*": deny, ".git/*": deny, ".workflow/*": deny}'
    if spec.shell:
        # No pattern of commands: one that allows `pytest *` also allows `pytest > any/file`.
        yield "  bash: ask"


def _claude(spec: RoleSpec, name: str) -> Iterator[str]:
    tools = ["Read", "Grep", "Glob", *(["Edit", "Write"] if _edits(spec) else []), *(["Bash"] if spec.shell else [])]
    yield f"name: {name}"
    yield f"description: {_scalar(spec.description)}"
    yield f"tools: {', '.join(tools)}"
    yield "model: inherit"
    yield "permissionMode: default"


def _scalar(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # which is YAML too


def _ignored(spec: RoleSpec, target: Target) -> Iterator[Ignored]:
    yield Ignored("kinds", ", ".join(spec.kinds), "what it is asked for, and the schema of its report, stay in a run")
    yield from _ignored_writes(spec, target)
    if spec.test_regions:
        yield Ignored("test_regions", "true", "edits inside production files are not told apart from others")
    if spec.shell:
        yield Ignored("shell", "true", _SHELL[target])
        yield Ignored("network", spec.network.value, "web tools are off, but a command reaches the network")
    yield Ignored("timeout_s", str(spec.timeout_s), "an agent file sets no time limit")


_SHELL: Final[Mapping[Target, str]] = {
    Target.OPENCODE: "every command asks the user; there is no box, and an approved one can write anywhere",
    Target.CLAUDE: "commands go by the user's own rules; there is no box, and an allowed one can write anywhere",
}


def _ignored_writes(spec: RoleSpec, target: Target) -> Iterator[Ignored]:
    match spec.writes:
        case Writes.NOTHING:
            return
        case Writes.TASK | Writes.TESTS:
            spared = " but TODO/, .git/ and .workflow/" if target is Target.OPENCODE else ""
            why = f"its edit tools reach every file{spared}; the files of a task are known to a run only"
        case _:
            assert_never(spec.writes)
    yield Ignored("writes", spec.writes.value, why)
