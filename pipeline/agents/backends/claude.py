"""Backend `claude`: runs Claude Code with `claude -p`.

Its isolation is no option: no settings, hooks, plugins, skills, agents, memories or MCP servers, neither the project's
nor the user's. Its own permissions follow the role, so that a model learns of a limit at once; the box and the gate are
what holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003  (pydantic reads it at run time)
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.agents.backends import stream_result as stream
from pipeline.agents.backends.products import PLACES, Home, Native, home_for
from pipeline.agents.backends.program import Exchange
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Fault, Usage
from pipeline.agents.backends.report_schemas import Form, form
from pipeline.process import MODEL_URL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.config.agents import AgentConfig

CLAUDE: Final = Native(
    name="claude",
    package="@anthropic-ai/claude-code",
    inside="claude",
    marker=None,
    install="npm install -g @anthropic-ai/claude-code",
    tested="2.1.197",
)

ISOLATED: Final = {
    "CLAUDE_CODE_SAFE_MODE": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    # Its own ten retries take minutes; who to ask next is decided outside.
    "CLAUDE_CODE_MAX_RETRIES": "3",
}
"""Variables that keep Claude Code from loading other settings; its ACP agent is the same program inside."""
_READ: Final = ("Read", "Grep", "Glob")
_WRITE: Final = ("Edit", "Write", "NotebookEdit")
_SHELL: Final = ("Bash",)
_NEVER: Final = ("WebFetch", "WebSearch", "Agent", "Task", "Skill")


class ClaudeBackend:
    """Runs Claude Code once for each dispatch; a re-ask continues the conversation."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed and may reach a model.

        Raises:
            UserError: it is not, or may not.
        """
        CLAUDE.require(agent, search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with Claude Code and return its result.

        Raises:
            UserError: the program or the login is not there.
            BoxError: the box did not work.
        """
        program = CLAUDE.program(job.agent.argv, job.search_path)
        exchange = Exchange.open(job)
        home = home_for(PLACES["claude"], exchange)
        report = form(job.report_schema, strict=False)
        argv = program.argv(*_options(job, home), "--json-schema", json.dumps(report.schema))
        mounts, prompt = (*program.mounts, *home.mounts), _prompt(job, home).encode()
        ended = await exchange.run(argv, mounts, prompt, _env(job, home), on_line=stream.lines_to_words(job))
        facts = read_stream(ended.stdout, report, keeps=home.session is not None)
        again = stream.without_lost_session(job, facts)
        return stream.result_of(exchange, ended, facts) if again is None else await self.run(again)


def _prompt(job: AgentJob, home: Home) -> str:
    return home.session.prompt if home.session is not None and home.session.id is not None else job.prompt


def _env(job: AgentJob, home: Home) -> dict[str, str]:
    env = {**ISOLATED, "CLAUDE_CONFIG_DIR": str(home.path)}
    if job.network == "model":
        env |= {"ANTHROPIC_BASE_URL": MODEL_URL, "ANTHROPIC_API_KEY": "placeholder"}
    return env


def _options(job: AgentJob, home: Home) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--verbose")
    yield from ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
    granted = (*_READ, *(_WRITE if job.view.writable else ()), *(_SHELL if job.shell else ()))
    refused = (*_NEVER, *(() if job.view.writable else _WRITE), *(() if job.shell else _SHELL))
    yield from ("--tools", ",".join(granted), "--disallowedTools", ",".join(refused))
    if job.box.maps_paths:
        yield from ("--permission-mode", "bypassPermissions")
    else:  # as root it refuses the other mode where nothing isolates it
        yield from ("--permission-mode", "dontAsk", "--allowedTools", ",".join(granted))
    if job.model is not None:
        yield from ("--model", job.model)
    if job.agent.effort is not None:
        yield from ("--effort", job.agent.effort.value)
    yield from ("--max-turns", str(job.agent.max_steps))
    if home.session is None:
        yield "--no-session-persistence"
    elif home.session.id is not None:
        yield from ("--resume", home.session.id)


_LAST_S: Final = 4_102_444_800
"""The year 2100."""
_UNAUTHORIZED: Final = frozenset({401, 402, 403})
_BAD_FORM: Final = "Output does not match required schema"
_NO_TOOL: Final = "No such tool available"
_LOST: Final = "No conversation found"
_PRICED: Final = "claude"

_Count = Annotated[int, Field(ge=0)]


class _Started(stream.Line):
    type: Literal["system"]
    subtype: Literal["init"]
    session_id: str
    model: str | None = None


class _Retrying(stream.Line):
    type: Literal["system"]
    subtype: Literal["api_retry"]
    error_status: int | None = None
    error: str | None = None


class _Id(stream.Line):
    id: str


class _Answered(stream.Line):
    type: Literal["assistant"]
    message: _Id
    error: str | None = None
    """The error code, where the product wrote the message instead of the model."""


class _Block(stream.Line):
    is_error: bool = False
    content: str | list[Any] | None = None


class _Content(stream.Line):
    content: str | list[_Block]


class _Told(stream.Line):
    type: Literal["user"]
    message: _Content


class _Model(stream.Line):
    input: _Count = Field(default=0, alias="inputTokens")
    read: _Count = Field(default=0, alias="cacheReadInputTokens")
    written: _Count = Field(default=0, alias="cacheCreationInputTokens")
    output: _Count = Field(default=0, alias="outputTokens")


class _Denied(stream.Line):
    tool_name: str
    tool_input: Mapping[str, Any] = {}


class _Ended(stream.Line):
    type: Literal["result"]
    subtype: str
    is_error: bool = False
    api_error_status: int | None = None
    result: str | None = None
    stop_reason: str | None = None
    total_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    models: Mapping[str, _Model] = Field(default={}, alias="modelUsage")
    permission_denials: tuple[_Denied, ...] = ()
    structured_output: Any = None
    errors: tuple[str, ...] = ()


class _Limit(stream.Line):
    status: Literal["allowed", "allowed_warning", "rejected"]
    ends: Annotated[float, Field(ge=0, le=_LAST_S)] | None = Field(default=None, alias="resetsAt")


class _Limited(stream.Line):
    type: Literal["rate_limit_event"]
    rate_limit_info: _Limit


_Event = _Limited | _Started | _Retrying | _Answered | _Told | _Ended
_EVENT: Final[TypeAdapter[_Event]] = TypeAdapter(_Event)


def read_stream(stdout: bytes, report: Form, *, keeps: bool) -> stream.StreamFacts:
    """Return the facts in the stream.

    Args:
        stdout: The stream.
        report: What the product was told about the report.
        keeps: Whether the conversation can be gone on with.
    """
    said = stream.events(stdout, _EVENT)
    start = next((event for event in said if isinstance(event, _Started)), None)
    session = start.session_id if start is not None and keeps else None
    model = start.model if start is not None else None
    last = next((event for event in reversed(said) if isinstance(event, _Ended)), None)
    if last is None:
        fault, complaint = _waiting_for(said)
        return stream.StreamFacts(
            fault=fault, complaint=complaint, session=session, usage=Usage(model=model), not_before=_limit(said)
        )
    fault, complaint = _fault(last, said)
    answer, text = last.structured_output, last.result or ""
    found = report.filled(answer) if answer is not None else report.said(text)
    return stream.StreamFacts(
        report=found if complaint is None else None,
        text=text,
        fault=fault,
        complaint=complaint,
        usage=_usage(last, model),
        steps=_steps(said),
        session=session,
        denials=tuple(_denials(last, said)),
        lost=any(error.startswith(_LOST) for error in last.errors),
        not_before=_limit(said),
    )


def _limit(said: Sequence[_Event]) -> datetime | None:
    """Return when the limit of the subscription ends that refused it; its words say the same in minutes."""
    last = next((event.rate_limit_info for event in reversed(said) if isinstance(event, _Limited)), None)
    if last is None or last.status != "rejected" or last.ends is None:
        return None
    return datetime.fromtimestamp(last.ends, UTC)


def _fault(last: _Ended, said: Sequence[_Event]) -> tuple[Fault | None, str | None]:
    words = stream.short(last.result or "it gave no reason")
    if last.subtype == "error_max_turns":
        return Fault.STEPS, f"The model gave {_steps(said)} answers, and no more are allowed."
    if last.subtype == "error_max_structured_output_retries":
        return None, f"The report did not fit its schema, several times. {_last_misfit(said)}".strip()
    if last.errors:
        return None, f"Claude Code gave up: {stream.short('; '.join(last.errors))}"
    if last.stop_reason == "refusal":
        return Fault.REFUSED, f"The model declined: {words}"
    if not last.is_error:
        return None, None
    if next((event.error for event in reversed(said) if isinstance(event, _Answered)), None) == "max_output_tokens":
        return Fault.TRUNCATED, f"The answer was cut off: {words}"
    if last.api_error_status is not None:
        return _of_status(last.api_error_status), f"The model service refused the request: {words}"
    return Fault.UNAVAILABLE, f"The model service did not answer: {words}"


def _steps(said: Sequence[_Event]) -> int:
    # An answer of several blocks comes as several events; the product's own `num_turns` counts other things, too.
    return len({event.message.id for event in said if isinstance(event, _Answered) and event.error is None})


def _of_status(status: int | None) -> Fault:
    return Fault.UNAUTHORIZED if status in _UNAUTHORIZED else Fault.UNAVAILABLE


def _waiting_for(said: Sequence[_Event]) -> tuple[Fault | None, str | None]:
    """Return the fault of the model service that Claude Code was retrying when it was stopped, if it was."""
    last = next((event for event in reversed(said) if not isinstance(event, _Limited)), None)
    if not isinstance(last, _Retrying):
        return None, None
    return _of_status(last.error_status), f"The model service refused the request: {stream.short(last.error)}."


def _usage(last: _Ended, model: str | None) -> Usage:
    """Return the usage of all requests; `usage` in the result omits those that were not streamed."""
    if not last.models:
        return Usage(model=model)
    # A price is made up for a model that the product does not know.
    priced = all(name.startswith(_PRICED) for name in last.models)
    return Usage(
        input_tokens=sum(each.input + each.read + each.written for each in last.models.values()),
        output_tokens=sum(each.output for each in last.models.values()),
        cost_usd=last.total_cost_usd if priced else None,
        model=model,
    )


def _denials(last: _Ended, said: Sequence[_Event]) -> Iterator[str]:
    yield from (stream.short(f"{denied.tool_name}: {dict(denied.tool_input)}") for denied in last.permission_denials)
    yield from (stream.short(text) for text in _refusals(said) if _NO_TOOL in text)


def _last_misfit(said: Sequence[_Event]) -> str:
    return next((stream.short(text) for text in reversed(list(_refusals(said))) if text.startswith(_BAD_FORM)), "")


def _refusals(said: Sequence[_Event]) -> Iterator[str]:
    """Yield the product's answers to tool calls that failed."""
    for event in said:
        if isinstance(event, _Told) and not isinstance(event.message.content, str):
            for block in event.message.content:
                if block.is_error and isinstance(block.content, str):
                    yield block.content.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
