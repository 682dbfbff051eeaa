"""Backend `scripted`: plays prepared answers in the same view, box and gate as a real agent (contract 5).

A script is read strictly: its entries are matched in order, each used once (contract 5).
"""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from pipeline.agents.backends.program import run_program
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Mount
from pipeline.programs import locate
from pipeline.vocabulary import Question, Role
from pipeline.yaml_text import YamlError, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pipeline.agents.backends.protocol import AgentJob, AgentResult
    from pipeline.config.model import AgentConfig


_PLAYER: Final = Path(__file__).with_name("script_player.py")
_INSIDE: Final = Path("/run/redfirst/script_player.py")


class ScriptedBackend:
    """Plays the first unused entry that matches a dispatch.

    Which entries are used is the caller's to know: it is derived from the dispatches that finished, so that a resumed
    run goes on where the script was.
    """

    def require(self, agent: AgentConfig, search_path: str) -> None:  # noqa: ARG002  (the protocol)
        """Check that the script can be read.

        Raises:
            UserError: it is missing or wrong.
        """
        if agent.script is not None:
            load_script(Path(agent.script))

    async def run(self, job: AgentJob) -> AgentResult:
        """Play one entry; the result names it.

        Raises:
            UserError: the script is missing or wrong.
            ScriptMismatchError: no entry matches.
            BoxError: the box did not work.
        """
        if job.agent.script is None:
            raise UserError('backend = "scripted" needs script: the YAML file of answers.', Reason.CONFIG)
        script = Path(job.agent.script)
        entries = load_script(script)
        number = choose(script, entries, job.document, job.used)
        python = locate(sys.executable)
        player = Mount(_PLAYER, _INSIDE)
        argv = python.argv("-I", "-S", str(job.box.inside(player.source, player.target)))
        stdin = entries[number].model_dump_json(exclude={"when"}).encode()
        result = await run_program(job, argv, (*python.mounts, player), stdin)
        return replace(result, entry=number)


class ScriptMismatchError(UserError):
    """No unused entry of the script matches a dispatch; a script never falls back to success."""


def _text(value: object) -> object:
    # YAML reads `task: 1` as a number; task ids are text.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class When(Frozen):
    """The dispatches that an entry is for; an omitted field matches any."""

    role: Role | None = None
    kind: str | None = None
    task: Annotated[str | None, BeforeValidator(_text)] = None
    question: Question | None = None
    attempt: Annotated[int | None, Field(ge=1, strict=True)] = None
    step: str | None = None

    def matches(self, dispatch: Mapping[str, object]) -> bool:
        """Return whether the dispatch document has the same value in every field that is set here."""
        wanted = self.model_dump(mode="json", exclude_none=True)
        return all(dispatch.get(key) == value for key, value in wanted.items())


class Answer(Frozen):
    """The actions of the played agent, in this order: files, run, sleep, report, stdout, exit."""

    when: When = When()
    files: dict[str, str | None] = Field(default_factory=dict)
    """Contents by path in the view; null deletes the file."""
    run: list[str] | None = Field(default=None, min_length=1)
    """A command; if it fails, the agent ends with its exit code."""
    sleep_s: float = Field(default=0, ge=0)
    report: dict[str, Any] | None = None
    """The content of the report file."""
    stdout: str | None = None
    exit: int = Field(default=0, ge=0, le=255)


_SCRIPT: TypeAdapter[list[Answer]] = TypeAdapter(list[Answer])


@functools.lru_cache(maxsize=8)
def _entries(text: str) -> tuple[Answer, ...]:
    """Return the entries in a script's text, cached: every dispatch asks, and reading YAML is slow."""
    return tuple(_SCRIPT.validate_python(read(text, aliases=True).value))


def load_script(path: Path) -> tuple[Answer, ...]:
    """Return the entries of a script file.

    Raises:
        UserError: it cannot be read, is not YAML, or has a key or value that is not known; with a pointer.
    """
    try:
        return _entries(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The script {path} cannot be read: {error}.", Reason.CONFIG, path=str(path)) from None
    except YamlError as error:
        raise UserError(f"The script {path} cannot be read: {error}.", Reason.CONFIG, path=str(path)) from None
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        raise UserError(
            f"The script {path} is wrong at {pointer or '/'}: {first['msg']}.",
            Reason.CONFIG,
            path=str(path),
            pointer=pointer,
        ) from None


def choose(path: Path, entries: Sequence[Answer], document: bytes, used: AbstractSet[int]) -> int:
    """Return the number of the first unused entry that matches the dispatch document.

    Raises:
        ScriptMismatchError: there is none; the message names the dispatch.
    """
    dispatch: Mapping[str, object] = json.loads(document)
    for number, entry in enumerate(entries):
        if number not in used and entry.when.matches(dispatch):
            return number
    asked = {key: dispatch.get(key) for key in When.model_fields if dispatch.get(key) is not None}
    spent = [number for number, entry in enumerate(entries) if entry.when.matches(dispatch)]
    hint = f" (entries {', '.join(map(str, spent))} match, but are used)" if spent else ""
    raise ScriptMismatchError(
        f"No unused entry of the script {path} matches the dispatch {dispatch.get('dispatch')}: "
        f"{json.dumps(asked)}{hint}. Add an entry.",
        Reason.CONFIG,
        path=str(path),
        details={"dispatch": asked},
    )
