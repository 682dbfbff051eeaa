"""What the scripted model says: conversations of turns, in words that belong to no product and no dialect.

A script is a list of conversations. Each is played once, in order, by the dispatch whose prompt it matches, as the
entries of the scripted agent are. A file of a script is the same list as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


# --- what a model does with tools -----------------------------------------------------------------------------------


class Read(_Value):
    """Read a file; the path is relative to the workspace, as in every act, or absolute."""

    act: Literal["read"] = "read"
    path: str


class Write(_Value):
    """Give a file this content."""

    act: Literal["write"] = "write"
    path: str
    content: str


class Edit(_Value):
    """Replace a passage that occurs once."""

    act: Literal["edit"] = "edit"
    path: str
    old: str
    new: str


class Run(_Value):
    """Run a shell command in the workspace."""

    act: Literal["run"] = "run"
    command: str


class RawCall(_Value):
    """Call a tool by its own name, offered or not; text as arguments is sent as it is, valid JSON or not."""

    act: Literal["call"] = "call"
    tool: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])


Act = Annotated[Read | Write | Edit | Run | RawCall, Field(discriminator="act")]


def read(path: str) -> Read:
    """Return the act of reading a file."""
    return Read(path=path)


def write(path: str, content: str) -> Write:
    """Return the act of writing a file."""
    return Write(path=path, content=content)


def edit(path: str, old: str, new: str) -> Edit:
    """Return the act of replacing a passage of a file."""
    return Edit(path=path, old=old, new=new)


def run(command: str) -> Run:
    """Return the act of running a command."""
    return Run(command=command)


def call(tool: str, arguments: dict[str, Any] | str | None = None) -> RawCall:
    """Return a call of a tool by its name."""
    return RawCall(tool=tool, arguments=arguments if arguments is not None else {})


# --- turns ----------------------------------------------------------------------------------------------------------


class Tokens(_Value):
    """What an answer says that it cost; `input` counts all of the input, what came from a cache included."""

    input: int = 100
    output: int = 20
    cached: int = 30


class _Answer(_Value):
    """A turn that stays in the history of the conversation."""

    tokens: Tokens = Tokens()


class Says(_Answer):
    """Text, and the end of the agent's turn."""

    turn: Literal["say"] = "say"
    text: str


class Uses(_Answer):
    """One or several tool calls at once, perhaps after a word."""

    turn: Literal["use"] = "use"
    acts: tuple[Act, ...] = Field(min_length=1)
    text: str = ""


class Reports(_Answer):
    """The final report, in the form that the request asks for: structured output, else the last line of the text."""

    turn: Literal["report"] = "report"
    report: Any
    text: str = "The work is done."


class Refuses(_Answer):
    """The provider's refusal."""

    turn: Literal["refuse"] = "refuse"
    text: str = "I will not do that."


class Truncates(_Answer):
    """Text that ends at the limit of output tokens."""

    turn: Literal["truncate"] = "truncate"
    text: str = '{"result": "COMP'


class Empties(_Answer):
    """A well-formed answer with nothing in it."""

    turn: Literal["empty"] = "empty"


class Huge(_Answer):
    """A text of so many characters."""

    turn: Literal["huge"] = "huge"
    characters: int = Field(ge=1)


class _Trouble(_Value):
    """What happens instead of an answer and leaves nothing in the history; `times` None: to every request."""

    times: int | None = Field(default=None, ge=1)


class Fails(_Trouble):
    """An HTTP error; without a body it is the one that the dialect has for this status."""

    turn: Literal["fail"] = "fail"
    status: int
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Cuts(_Trouble):
    """An answer whose connection ends after so many bytes of the body."""

    turn: Literal["cut"] = "cut"
    after_bytes: int = 200


class Garbles(_Trouble):
    """Status 200 with a body that is not JSON."""

    turn: Literal["garbage"] = "garbage"


class Hangs(_Trouble):
    """No answer until the client or the service ends; `begun`: after the status and the first bytes."""

    turn: Literal["hang"] = "hang"
    begun: bool = False


Answering = Says | Uses | Reports | Refuses | Truncates | Empties | Huge
Trouble = Fails | Cuts | Garbles | Hangs
Turn = Annotated[Answering | Trouble, Field(discriminator="turn")]


def Say(text: str, tokens: Tokens | None = None) -> Says:  # noqa: N802  (these read as the words of a script)
    """Return the turn that says a text."""
    return Says(text=text, tokens=tokens or Tokens())


def Use(*acts: Act, text: str = "", tokens: Tokens | None = None) -> Uses:  # noqa: N802
    """Return the turn that uses tools; several acts are several calls in one answer."""
    return Uses(acts=acts, text=text, tokens=tokens or Tokens())


def Report(report: Any, text: str = "The work is done.", tokens: Tokens | None = None) -> Reports:  # noqa: N802
    """Return the turn that gives the final report."""
    return Reports(report=report, text=text, tokens=tokens or Tokens())


def Fail(  # noqa: N802
    status: int, body: str | None = None, headers: dict[str, str] | None = None, *, times: int | None = None
) -> Fails:
    """Return the trouble of an HTTP error."""
    return Fails(status=status, body=body, headers=tuple((headers or {}).items()), times=times)


def Cut(after_bytes: int = 200, *, times: int | None = None) -> Cuts:  # noqa: N802
    """Return the trouble of a connection that ends early."""
    return Cuts(after_bytes=after_bytes, times=times)


def Garbage(*, times: int | None = None) -> Garbles:  # noqa: N802
    """Return the trouble of a body that is not JSON."""
    return Garbles(times=times)


def Hang(*, begun: bool = False, times: int | None = None) -> Hangs:  # noqa: N802
    """Return the trouble of an answer that never comes."""
    return Hangs(begun=begun, times=times)


def Refuse(text: str = "I will not do that.") -> Refuses:  # noqa: N802
    """Return the turn in which the provider refuses."""
    return Refuses(text=text)


def Truncate(text: str = '{"result": "COMP') -> Truncates:  # noqa: N802
    """Return the turn that ends at the limit of output tokens."""
    return Truncates(text=text)


def Empty() -> Empties:  # noqa: N802
    """Return the turn without content."""
    return Empties()


# --- conversations --------------------------------------------------------------------------------------------------


class When(_Value):
    """Which prompts a conversation is for; what is left out matches anything."""

    role: str | None = None
    kind: str | None = None
    question: str | None = None
    task: str | None = None
    attempt: int | None = None
    reask: bool | None = None
    """Whether the prompt says that the last answer did not count."""
    text: str | None = None
    """A passage of the prompt, word for word; the way to match a prompt that is not redfirst's."""


class Conversation(_Value):
    """The turns for one dispatch."""

    when: When = When()
    turns: tuple[Turn, ...] = Field(min_length=1)


Script = tuple[Conversation, ...]
_SCRIPT: TypeAdapter[Script] = TypeAdapter(Script)


def conversation(*turns: Turn, **when: Any) -> Conversation:
    """Return a conversation: `conversation(Use(...), Report(...), kind="implement", task="1")`."""
    return Conversation(when=When(**when), turns=turns)


def load_script(path: Path) -> Script:
    """Return the script in a JSON file.

    Raises:
        ValidationError: it is not one.
    """
    return _SCRIPT.validate_json(path.read_bytes())


def dump_script(script: Sequence[Conversation], path: Path) -> None:
    """Write a script to a JSON file."""
    path.write_bytes(_SCRIPT.dump_json(tuple(script), indent=1))


def quoted(word: str) -> str:
    """Return a word as a POSIX shell reads it."""
    return "'" + word.replace("'", "'\\''") + "'"
