"""Backend `codex`: runs Codex with `codex exec --json`.

Its isolation is no option: no configuration, rules, hooks, plugins, skills, instructions or MCP servers, neither the
project's nor the user's. It has no permissions by role that would hold without its own sandbox, which cannot run inside
ours: the box and the gate are what holds.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.agents.backends import stream_result as stream
from pipeline.agents.backends.products import PLACES, Home, Native, home_for
from pipeline.agents.backends.program import Exchange
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Fault, Usage
from pipeline.agents.backends.report_schemas import Form, form
from pipeline.process import MODEL_URL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.config.agents import AgentConfig

CODEX: Final = Native(
    name="codex",
    package="@openai/codex",
    inside="vendor/*/bin/codex",
    marker="codex-package.json",
    install="npm install -g @openai/codex",
    tested="0.169.0",
)

_OFF: Final = (
    *("apps", "browser_use", "computer_use", "goals", "hooks", "image_generation", "memories", "multi_agent"),
    *("plugins", "remote_plugin", "shell_snapshot", "skill_search", "tool_suggest"),
)
"""Codex features switched off: they reach beyond the workspace, or load what others wrote."""
SETTINGS: Final = (
    'approval_policy="never"',
    'web_search="disabled"',
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "project_doc_max_bytes=0",
    "skills.include_instructions=false",
    "skills.bundled.enabled=false",
    *(f"features.{name}=false" for name in _OFF),
)
_NO_QUESTIONS: Final = "tools.experimental_request_user_input.enabled=false"
_SERVICE: Final = f'name="redfirst",base_url="{MODEL_URL}/v1",wire_api="responses"'
# Without a key: the gateway adds the credential. Who to ask after some tries is decided outside.
_TRIES: Final = "request_max_retries=2,stream_max_retries=2"
PROVIDER: Final = ('model_provider="redfirst"', f"model_providers.redfirst={{{_SERVICE},{_TRIES}}}")


class CodexBackend:
    """Runs Codex once for each dispatch; a re-ask continues the conversation."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed and may reach a model.

        Raises:
            UserError: it is not, or may not.
        """
        CODEX.require(agent, search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with Codex and return its result.

        Raises:
            UserError: the program or the login is not there.
            BoxError: the box did not work.
        """
        program = CODEX.program(job.agent.argv, job.search_path)
        exchange = Exchange.open(job)
        home = home_for(PLACES["codex"], exchange)
        report = form(job.report_schema, strict=True)
        schema = job.exchange / "schema.json"
        schema.write_text(json.dumps(report.schema), encoding="utf-8")
        argv = program.argv(*_options(job, exchange.inside(schema), home))
        mounts = (*program.mounts, *home.mounts, exchange.shown(schema))
        goes_on = home.session if home.session is not None and home.session.id is not None else None
        prompt = goes_on.prompt if goes_on is not None else job.prompt
        # It makes the default folder itself, and refuses a named one that is not there.
        env = {"CODEX_HOME": str(home.path)} if home.made else {}
        ended = await exchange.run(argv, mounts, prompt.encode(), env, on_line=stream.lines_to_words(job))
        facts = read_stream(
            ended.stdout,
            ended.stderr,
            report,
            model=job.model,
            resumed=goes_on is not None,
            keeps=home.session is not None,
        )
        again = stream.without_lost_session(job, facts)
        return stream.result_of(exchange, ended, facts) if again is None else await self.run(again)


def _options(job: AgentJob, schema: Path, home: Home) -> Iterator[str]:
    yield from ("exec", "--json", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check")
    # A sandbox inside the box cannot be set up, and every command would fail.
    yield from ("--sandbox", "danger-full-access", "--output-schema", str(schema))
    settings = [*SETTINGS, _NO_QUESTIONS, *(PROVIDER if job.network == "model" else ())]
    if job.agent.effort is not None:
        settings.append(f'model_reasoning_effort="{job.agent.effort}"')
    for setting in settings:
        yield from ("-c", setting)
    if job.model is not None:
        yield from ("--model", job.model)
    if home.session is None:
        yield "--ephemeral"
    elif home.session.id is not None:
        yield from ("resume", home.session.id)
    yield "-"


_DENIED: Final = re.compile(r"ERROR codex_core::tools::router: error=(.+)")
_REJECTED: Final = re.compile(r'Rejected\("(.+)"\)')
_LOST: Final = b"no rollout found for thread"
_FAULTS: Final = (
    (re.compile(r"status:? 40[123]\b"), Fault.UNAUTHORIZED),
    (re.compile(r"max_output_tokens"), Fault.TRUNCATED),
    (re.compile(r"content_filter|invalid_prompt|cyber_policy"), Fault.REFUSED),
)
"""Faults by the message of a failed turn; any other failure is the service's."""

_Count = Annotated[int, Field(ge=0)]


class _Started(stream.Line):
    type: Literal["thread.started"]
    thread_id: str


class _Said(stream.Line):
    type: Literal["agent_message"]
    text: str


class _Item(stream.Line):
    type: Literal["item.completed"]
    item: _Said


class _Tokens(stream.Line):
    input_tokens: _Count
    output_tokens: _Count


class _Completed(stream.Line):
    type: Literal["turn.completed"]
    usage: _Tokens | None = None


class _Error(stream.Line):
    message: str


class _Failed(stream.Line):
    type: Literal["turn.failed"]
    error: _Error


class _Trouble(stream.Line):
    type: Literal["error"]
    message: str


class _Other(stream.Line):
    type: str


_Event = _Started | _Item | _Completed | _Failed | _Trouble | _Other
_EVENT: Final[TypeAdapter[_Event]] = TypeAdapter(Annotated[_Event, Field(union_mode="left_to_right")])


def read_stream(
    stdout: bytes, stderr: bytes, report: Form, *, model: str | None, resumed: bool, keeps: bool
) -> stream.StreamFacts:
    """Return the facts in the stream.

    Args:
        stdout: The stream.
        stderr: Its log.
        report: What the product was told about the report.
        model: The model that was asked: the stream does not say.
        resumed: Whether an earlier conversation was gone on with.
        keeps: Whether this one can be gone on with.
    """
    said = stream.events(stdout, _EVENT)
    thread = next((event.thread_id for event in said if isinstance(event, _Started)), None)
    end = next((event for event in reversed(said) if isinstance(event, _Completed | _Failed)), None)
    text = next((event.item.text for event in reversed(said) if isinstance(event, _Item)), "")
    fault, complaint = _fault(end, said)
    return stream.StreamFacts(
        report=report.said(text) if complaint is None else None,
        text=text,
        fault=fault,
        complaint=complaint,
        usage=_usage(end, model, resumed=resumed),
        session=thread if keeps else None,
        denials=tuple(_denials(stderr)),
        lost=resumed and thread is None and _LOST in stderr,
    )


def _fault(end: _Completed | _Failed | None, said: Sequence[_Event]) -> tuple[Fault | None, str | None]:
    match end:
        case _Completed():
            return None, None
        case _Failed():
            return _of(end.error.message), f"The turn failed: {stream.short(end.error.message)}"
        case None:
            pass
    # Stopped in the middle: it says so where it was waiting for the model service.
    last = said[-1] if said else None
    if isinstance(last, _Trouble):
        return _of(last.message), f"The model service did not answer: {stream.short(last.message)}"
    return None, None


def _of(message: str) -> Fault:
    return next((fault for pattern, fault in _FAULTS if pattern.search(message)), Fault.UNAVAILABLE)


def _usage(end: _Completed | _Failed | None, model: str | None, *, resumed: bool) -> Usage:
    # It counts the whole conversation: in one that goes on, what was counted before would be counted again.
    if resumed or not isinstance(end, _Completed) or end.usage is None:
        return Usage(model=model)
    return Usage(input_tokens=end.usage.input_tokens, output_tokens=end.usage.output_tokens, model=model)


def _denials(stderr: bytes) -> Iterator[str]:
    for found in _DENIED.finditer(stderr.decode(errors="replace")):
        rejected = _REJECTED.search(found[1])
        yield stream.short(rejected[1] if rejected is not None else found[1])
