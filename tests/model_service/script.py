"""What the scripted model says: conversations of turns, in words that belong to no product and no dialect.

A script is a list of conversations. Each is played once, in order, by the dispatch whose prompt it matches, as the
entries of the scripted agent are. A file of a script is the same list as JSON.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

if TYPE_CHECKING:
    from pathlib import Path

INPUT: Final = 100
OUTPUT: Final = 20
CACHED: Final = 30
"""The tokens that each answer says that it cost; those of the input include what came from a cache."""

# --- what a model does with tools -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """Read a file; the path is relative to the workspace, as in every act, or absolute."""

    path: str
    act: Literal["read"] = "read"


@dataclass(frozen=True)
class Write:
    """Give a file this content."""

    path: str
    content: str
    act: Literal["write"] = "write"


@dataclass(frozen=True)
class Edit:
    """Replace a passage that occurs once."""

    path: str
    old: str
    new: str
    act: Literal["edit"] = "edit"


@dataclass(frozen=True)
class Run:
    """Run a shell command in the workspace."""

    command: str
    act: Literal["run"] = "run"


@dataclass(frozen=True)
class RawCall:
    """Call a tool by its own name, offered or not; text as arguments is sent as it is, valid JSON or not."""

    tool: str
    arguments: dict[str, Any] | str = field(default_factory=dict[str, Any])
    act: Literal["call"] = "call"


Act = Annotated[Read | Write | Edit | Run | RawCall, Field(discriminator="act")]
read, write, edit, run, call = Read, Write, Edit, Run, RawCall


# --- turns: answers, which stay in the history of the conversation ------------------------------------------------


@dataclass(frozen=True)
class Say:
    """Text, and the end of the agent's turn."""

    text: str
    turn: Literal["say"] = "say"


@dataclass(frozen=True)
class Uses:
    """One or several tool calls at once, perhaps after a word."""

    acts: tuple[Act, ...]
    text: str = ""
    turn: Literal["use"] = "use"


def Use(*acts: Act, text: str = "") -> Uses:  # noqa: N802  (it reads as the other words of a script)
    """Return the turn that uses tools; several acts are several calls in one answer."""
    return Uses(acts, text)


@dataclass(frozen=True)
class Report:
    """The final report, in the form that the request asks for: structured output, else the last line of the text."""

    report: Any
    text: str = "The work is done."
    turn: Literal["report"] = "report"


@dataclass(frozen=True)
class Refuse:
    """The provider's refusal."""

    text: str = "I will not do that."
    turn: Literal["refuse"] = "refuse"


@dataclass(frozen=True)
class Truncate:
    """Text that ends at the limit of output tokens."""

    text: str = '{"result": "COMP'
    turn: Literal["truncate"] = "truncate"


@dataclass(frozen=True)
class Empty:
    """A well-formed answer with nothing in it."""

    turn: Literal["empty"] = "empty"


@dataclass(frozen=True)
class Huge:
    """A text of so many characters."""

    characters: int
    turn: Literal["huge"] = "huge"


# --- turns: what happens instead of an answer and leaves nothing in the history; `times` None: to every request -----


@dataclass(frozen=True)
class Fail:
    """An HTTP error; without a body it is the one that the dialect has for this status."""

    status: int
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    times: int | None = None
    turn: Literal["fail"] = "fail"


@dataclass(frozen=True)
class Cut:
    """An answer whose connection ends after so many bytes of the body."""

    after_bytes: int = 200
    times: int | None = None
    turn: Literal["cut"] = "cut"


@dataclass(frozen=True)
class Garbage:
    """Status 200 with a body that is not JSON."""

    times: int | None = None
    turn: Literal["garbage"] = "garbage"


@dataclass(frozen=True)
class Hang:
    """No answer until the client or the service ends; `begun`: after the status and the first bytes."""

    begun: bool = False
    times: int | None = None
    turn: Literal["hang"] = "hang"


Answering = Say | Uses | Report | Refuse | Truncate | Empty | Huge
Trouble = Fail | Cut | Garbage | Hang
Turn = Annotated[Answering | Trouble, Field(discriminator="turn")]


# --- conversations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class When:
    """Which prompts a conversation is for; what is left out matches anything.

    Args:
        role: Who is asked.
        kind: What is asked.
        question: The question of a judgement.
        task: The id of the task.
        attempt: The number of the attempt.
        reask: Whether the prompt says that the last answer did not count.
        text: A passage of the prompt, word for word; the way to match a prompt that is not redfirst's.
    """

    role: str | None = None
    kind: str | None = None
    question: str | None = None
    task: str | None = None
    attempt: int | None = None
    reask: bool | None = None
    text: str | None = None


@dataclass(frozen=True)
class Conversation:
    """The turns for one dispatch."""

    turns: tuple[Turn, ...]
    when: When = When()


Script = tuple[Conversation, ...]


def conversation(*turns: Turn, **when: Any) -> Conversation:
    """Return a conversation: `conversation(Use(...), Report(...), kind="implement", task="1")`."""
    return Conversation(turns, When(**when))


def load_script(path: Path) -> Script:
    """Return the script in a JSON file.

    Raises:
        ValidationError: it is not one.
    """
    return TypeAdapter(Script).validate_json(path.read_bytes())


def quoted(word: str) -> str:
    """Return a word as a POSIX shell reads it."""
    return "'" + word.replace("'", "'\\''") + "'"
