"""One request for an answer, in words that belong to no dialect, and what its prompt says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from model_service.documents import Json
    from model_service.script import When

_REQUEST: Final = re.compile(r"^# This request: (?P<kind>[a-z-]+)$", re.MULTILINE)
_ROLE: Final = re.compile(r"You are (?:@|the (?=orchestrator))(\w+)")
_TASK: Final = re.compile(r"\btask ([\w.-]+)")
_ATTEMPT: Final = re.compile(r"\b(?:attempt|draft|your review) (\d+)\b")
_WORKSPACE: Final = re.compile(r"^Workspace\b[^`\n]*`(/[^`\n]*)`", re.MULTILINE)
_REASKED: Final = "Your last answer to this request did not count"


class Speaker(StrEnum):
    """Who a message of the history is from; `TOOL` is the result of a call."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


@dataclass(frozen=True)
class Message:
    """One message of the history; several that follow each other may be one turn."""

    speaker: Speaker
    text: str


@dataclass(frozen=True)
class Tool:
    """A tool that the request offers; `free` if it takes text instead of JSON."""

    name: str
    parameters: Json = field(default_factory=dict[str, Any])
    free: bool = False


@dataclass(frozen=True)
class Prompt:
    """The words of redfirst in a request: system prompt and the user's last request."""

    text: str

    @cached_property
    def _template(self) -> str:
        found = list(_REQUEST.finditer(self.text))
        return found[-1]["kind"] if found else ""

    @property
    def known(self) -> bool:
        """Return whether redfirst wrote it."""
        return bool(self._template)

    @property
    def role(self) -> str | None:
        """Return the role that is asked."""
        found = _ROLE.search(self.text)
        return found[1] if found else None

    @property
    def kind(self) -> str | None:
        """Return what is asked; a judgement's question is not part of it."""
        return ("judge" if self._template.startswith("judge-") else self._template) or None

    @property
    def question(self) -> str | None:
        """Return the question of a judgement."""
        _, judge, question = self._template.partition("judge-")
        return question.replace("-", "_") if judge else None

    @cached_property
    def _first_line(self) -> str:
        found = list(_REQUEST.finditer(self.text))
        after = self.text[found[-1].end() :] if found else ""
        return after.lstrip().partition("\n")[0]

    @property
    def task(self) -> str | None:
        """Return the id of the task."""
        found = _TASK.search(self._first_line)
        return found[1] if found else None

    @property
    def attempt(self) -> int | None:
        """Return the number of the attempt, counted from 1."""
        found = _ATTEMPT.search(self._first_line)
        return int(found[1]) if found else None

    @property
    def reask(self) -> bool:
        """Return whether it says that the last answer did not count."""
        return _REASKED in self.text

    @property
    def workspace(self) -> str | None:
        """Return the absolute path of the workspace as the agent sees it."""
        found = _WORKSPACE.search(self.text)
        return found[1] if found else None

    def matches(self, when: When) -> bool:
        """Return whether the prompt says the same wherever *when* says something."""
        said = {name: getattr(self, name) for name in ("role", "kind", "question", "task", "attempt", "reask")}
        wanted = {name: getattr(when, name) for name in said}
        return all(value in {None, said[name]} for name, value in wanted.items()) and (when.text or "") in self.text


@dataclass(frozen=True)
class Asked:
    """A request.

    Args:
        model: The model that is asked.
        system: System and developer texts.
        messages: The history, oldest first.
        tools: What it offers.
        schema: The JSON schema that the answer's text must match, if it asks for one.
        stream: Whether the answer is to be streamed.
        effort: What it says about thinking, as the dialect says it.
        session: What names the conversation in the product, None if nothing does.
        usage: Whether a streamed answer may say what it cost.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Json | None = None
    stream: bool = False
    effort: str | None = None
    session: str | None = None
    usage: bool = True

    @cached_property
    def start(self) -> int:
        """Return the index of the message that began the present conversation: redfirst's last whole request."""
        users = [
            i for i, said in enumerate(self.messages) if said.speaker is Speaker.USER and _REQUEST.search(said.text)
        ]
        return users[-1] if users else 0

    @cached_property
    def prompt(self) -> Prompt:
        """Return the words that began the present conversation, with all that followed from the user."""
        users = [said.text for said in self.messages[self.start :] if said.speaker is Speaker.USER]
        return Prompt("\n".join([self.system, *users]))

    @property
    def opening(self) -> tuple[int, str]:
        """Return what stays the same in every request of one conversation: where it begins, and with which words."""
        first = self.messages[self.start].text if self.messages else ""
        return self.start, first if _REQUEST.search(first) else f"{self.system}\n{first}"

    @property
    def rounds(self) -> int:
        """Return how many answers of the model the conversation has so far."""
        speakers = (said.speaker is Speaker.MODEL for said in self.messages[self.start :])
        return sum(model for model, _ in groupby(speakers))

    @property
    def told(self) -> Speaker:
        """Return who spoke last."""
        return self.messages[-1].speaker if self.messages else Speaker.USER

    @property
    def reasks(self) -> int:
        """Return how often the present conversation was told that an answer did not count."""
        said = self.messages[self.start :]
        return sum(message.text.count(_REASKED) for message in said if message.speaker is Speaker.USER)

    def tool(self, *names: str) -> Tool | None:
        """Return the first of these tools that is offered."""
        offered = {tool.name: tool for tool in self.tools}
        return next((offered[name] for name in names if name in offered), None)


class Stop(StrEnum):
    """Why an answer ends."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is the text of a JSON object, or what a free tool takes."""

    name: str
    arguments: str
    free: bool = False


@dataclass(frozen=True)
class Reply:
    """An answer; `number` makes its ids unique within the service."""

    model: str
    number: int
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: Stop = Stop.DONE
    usage: bool = True

    @property
    def pieces(self) -> Iterator[str]:
        """Return the text as it is streamed: in at least two pieces if it has two characters."""
        size = min(max(1, (len(self.text) + 1) // 2), 16384)
        return (self.text[at : at + size] for at in range(0, len(self.text), size))


@dataclass(frozen=True)
class Dialect:
    """How a provider's API says it.

    Args:
        name: As configuration calls it: anthropic, responses, chat, google.
        read: The request in a JSON body; its session comes from the headers, in lower case.
        whole: The answer as one JSON document.
        stream: The answer as pieces of a server-sent event stream.
        error: The body of an error with this status and sentence.
    """

    name: str
    read: Callable[[Json, Mapping[str, str]], Asked]
    whole: Callable[[Reply], Json]
    stream: Callable[[Reply], Iterator[bytes]]
    error: Callable[[int, str], Json]
