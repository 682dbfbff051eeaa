"""The client of the Agent Client Protocol: one conversation with one agent in the box (see `acp`).

The agent does its work itself; we approve. So no file system and no terminal of ours is offered, and what is asked is
answered by the role's policy and counted. This module and `acp_turn` are the only ones that load the SDK.

On the wire the agent may send anything. What is no message is noted and passed over; what would cost memory without
end breaks the wire. The SDK's own transport does neither, and says on our terminal what it could not read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.lowlevel
from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION
from acp.utils import notify_model, request_model, request_model_from_dict
from pydantic import BaseModel, NonNegativeInt, ValidationError

from pipeline.agents.backends.acp_turn import Turn
from pipeline.agents.backends.acp_values import Ending, Failed, Gone, Late, Over, Policy
from pipeline.agents.backends.protocol import AgentJob, Fault, Session, Usage

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream

    from pipeline.agents.backends.acp_profiles import Setup


_START_S: Final = 90.0
_FAREWELL_S: Final = 3.0
"""The seconds between telling the agent to stop and stopping it, if the time limit is long."""
_DENIALS: Final = 200
_TITLE: Final = 200
_KINDS: Final = (
    (Fault.STEPS, re.compile(r"number of turns|max.?turns", re.IGNORECASE)),
    (Fault.TRUNCATED, re.compile(r"max_output|output token", re.IGNORECASE)),
    (Fault.UNAUTHORIZED, re.compile(r"\b40[13]\b|unauthori[sz]ed|authenticat|api[ _-]?key", re.IGNORECASE)),
    (
        Fault.UNAVAILABLE,
        re.compile(
            r"\b(404|429|5\d\d)\b|overloaded|rate.?limit|fetch failed|connect|econn|unavailable|time.?out|stream|json"
            r"|quota|exhausted|usage limit|limit reached|hit your",
            re.IGNORECASE,
        ),
    ),
)
"""Faults by what agents say of their model service, where the protocol has no word; the first match counts."""


@dataclass
class Conversation:
    """One conversation with an agent.

    Attributes:
        job: What is asked, and within which limits: it is told to stop a little before its time is over.
        setup: How the product is set up for it.
        kept: The conversation to go on with, if the product can.
        turn: What was said and done.
        ending: How it ended; `Gone` as long as nothing else is known.
        session: The agent's name of the conversation, if it can be gone on with.
        model: The model, as the agent says.
        denials: What was refused, one line each.
    """

    job: AgentJob
    setup: Setup
    kept: Session | None
    turn: Turn = field(default_factory=Turn)
    ending: Ending = field(default_factory=Gone)
    session: str | None = None
    model: str | None = None
    denials: list[str] = field(default_factory=list[str])
    _connection: Connection = field(init=False)

    async def talk(self, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        """Hold the whole conversation; its failure is stored in `ending`, not raised."""
        wire = Wire(stdin, stdout, self.turn)
        connection = self._connection = Connection(self._answer, wire)
        began = anyio.current_time()
        try:
            self.ending = await self._start(began) or self.ending
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
        self.turn.settle()
        if wire.broken is not None:
            self.ending = Failed(wire.broken)

    # --- what we ask ------------------------------------------------------------------------------------------------

    async def _start(self, began: float) -> Ending | None:
        ready: tuple[str, str] | Failed | None = None
        allowed = min(_START_S, self.job.timeout_s)
        with anyio.move_on_after(allowed) as limit:
            try:
                ready = await self._session()
            except ConnectionError:
                return None
            except (RequestError, ValidationError) as error:
                return _failed("could not begin a conversation", error)
        if limit.cancelled_caught or ready is None:
            return Late(f"The agent was not ready within {allowed:g} seconds and was stopped.")
        if isinstance(ready, Failed):
            return ready
        return await self._prompt(*ready, began + self.job.timeout_s - 2 * self._farewell)

    @property
    def _farewell(self) -> float:
        return min(_FAREWELL_S, self.job.timeout_s / 10)

    async def _session(self) -> tuple[str, str] | Failed:
        """Return the id of the session and the prompt for it, or the failure."""
        hello = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(),
            client_info=schema.Implementation(name="redfirst", version="1"),
        )
        agent = await request_model(self._connection, AGENT_METHODS["initialize"], hello, schema.InitializeResponse)
        if agent.protocol_version != PROTOCOL_VERSION:
            return Failed(f"The agent speaks version {agent.protocol_version} of its protocol, not {PROTOCOL_VERSION}.")
        able = agent.agent_capabilities or schema.AgentCapabilities()
        name, begun, text = await self._resumed(able) or await self._begun()
        for option, value in self.setup.options.items():
            await self._set(name, option, value, begun)
        self.model = _chosen(begun, "model") or self.model
        self.session = name if _resumes(able) or able.load_session else None
        return name, text

    @property
    def _place(self) -> dict[str, Any]:
        """Return what each session is told: the workspace, as the agent sees it, and the product's own words."""
        cwd = str(self.job.box.inside(self.job.view.source, self.job.view.target))
        return {"cwd": cwd, "mcp_servers": [], "field_meta": dict(self.setup.meta) or None}

    async def _begun(self) -> tuple[str, _Begun, str]:
        wanted = schema.NewSessionRequest(**self._place)
        answer = await request_model(self._connection, AGENT_METHODS["session_new"], wanted, schema.NewSessionResponse)
        return answer.session_id, answer, self.job.prompt

    async def _resumed(self, able: schema.AgentCapabilities) -> tuple[str, _Begun, str] | None:
        """Return the resumed session with its prompt; None if there is none, or the agent cannot resume it."""
        if self.kept is None or self.kept.id is None:
            return None
        session, again = self.kept.id, self.kept.prompt
        said: dict[str, Any] = {**self._place, "session_id": session}
        refused: RequestError | None = None
        try:
            if _resumes(able):
                method, wanted = AGENT_METHODS["session_resume"], schema.ResumeSessionRequest(**said)
                resumed = await request_model_from_dict(self._connection, method, wanted, schema.ResumeSessionResponse)
                return session, resumed, again
            if able.load_session:
                method, wanted = AGENT_METHODS["session_load"], schema.LoadSessionRequest(**said)
                loaded = await request_model_from_dict(self._connection, method, wanted, schema.LoadSessionResponse)
                return session, loaded, again
        except RequestError as error:
            refused = error
        finally:
            self.turn.forget()  # the history came as updates
        self.turn.transcript.add("begun anew", _words(refused) if refused is not None else "it resumes nothing")
        return None

    async def _set(self, session: str, option: str, value: str, begun: _Begun) -> None:
        if _chosen(begun, option) == value:
            return
        wanted = schema.SetSessionConfigOptionSelectRequest(config_id=option, session_id=session, value=value)
        method = AGENT_METHODS["session_set_config_option"]
        answer = await request_model_from_dict(self._connection, method, wanted, schema.SetSessionConfigOptionResponse)
        if option == "model":
            self.model = value
        begun.config_options = answer.config_options

    async def _prompt(self, session: str, text: str, deadline: float) -> Ending | None:
        wanted = schema.PromptRequest(session_id=session, prompt=[schema.TextContentBlock(type="text", text=text)])
        late = Late(f"The agent did not finish within {self.job.timeout_s:g} seconds and was stopped.")
        ending: Ending | None = late
        async with anyio.create_task_group() as tasks:

            async def tell_to_stop() -> None:
                await anyio.sleep_until(deadline)
                stop = schema.CancelNotification(session_id=session)
                await notify_model(self._connection, AGENT_METHODS["session_cancel"], stop)

            tasks.start_soon(tell_to_stop)
            with anyio.CancelScope(deadline=deadline + self._farewell):
                ending = await self._answered(wanted)
            tasks.cancel_scope.cancel()
        return late if anyio.current_time() >= deadline else ending

    async def _answered(self, wanted: schema.PromptRequest) -> Ending | None:
        try:
            over = await request_model(self._connection, AGENT_METHODS["session_prompt"], wanted, schema.PromptResponse)
        except ConnectionError:
            return None
        except (RequestError, ValidationError) as error:
            return _failed("could not finish its turn", error)
        return Over(over.stop_reason, self._usage(over))

    def _usage(self, over: schema.PromptResponse) -> Usage:
        # An agent without prices says 0, which is not what it cost.
        cost = self.turn.cost_usd or None
        if over.usage is None:
            count = _counted(over.field_meta)
            return Usage(
                input_tokens=count.input_tokens, output_tokens=count.output_tokens, cost_usd=cost, model=self.model
            )
        said = over.usage
        taken = said.input_tokens + (said.cached_read_tokens or 0) + (said.cached_write_tokens or 0)
        return Usage(input_tokens=taken, output_tokens=said.output_tokens, cost_usd=cost, model=self.model)

    # --- what it asks -----------------------------------------------------------------------------------------------

    async def _answer(self, method: str, params: object, is_notification: bool) -> object:
        if is_notification:
            return None  # what is not known need not be known
        if method != CLIENT_METHODS["session_request_permission"]:
            raise RequestError.method_not_found(method)
        return self._permission(schema.RequestPermissionRequest.model_validate(params))

    def _permission(self, asked: schema.RequestPermissionRequest) -> schema.RequestPermissionResponse:
        known = self.turn.call(asked.tool_call.tool_call_id)
        kind = asked.tool_call.kind or known.kind
        title = (asked.tool_call.title or known.title)[:_TITLE]
        allowed = Policy(writes=self.job.view.writable, shell=self.job.shell).allows(kind)
        if not allowed and len(self.denials) < _DENIALS:
            self.denials.append(f"{kind or 'unknown'}: {title}")
        self.turn.transcript.add("allowed" if allowed else "refused", kind, title)
        option = _option(asked.options, ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always"))
        if option is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=option))


class _Count(BaseModel):
    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None


class _Quota(BaseModel):
    token_count: _Count = _Count()


class _Meta(BaseModel):
    """Gemini CLI's token counts, an extension of the protocol."""

    quota: _Quota = _Quota()


def _counted(meta: object) -> _Count:
    """Return the token counts in the `_meta` of an agent's message; empty if there are none."""
    try:
        return _Meta.model_validate(meta or {}).quota.token_count
    except ValidationError:
        return _Count()


_Begun = schema.NewSessionResponse | schema.ResumeSessionResponse | schema.LoadSessionResponse


def _option(options: list[schema.PermissionOption], kinds: tuple[str, ...]) -> str | None:
    return next((option.option_id for kind in kinds for option in options if option.kind == kind), None)


def _resumes(able: schema.AgentCapabilities) -> bool:
    return able.session_capabilities is not None and able.session_capabilities.resume is not None


def _chosen(begun: _Begun, name: str) -> str | None:
    selects = (option for option in begun.config_options or () if isinstance(option, schema.SessionConfigOptionSelect))
    return next((option.current_value for option in selects if option.id == name), None)


def _failed(what: str, error: RequestError | ValidationError) -> Failed:
    if isinstance(error, ValidationError):
        return Failed(f"The agent {what}: its answer breaks the protocol.")
    words = _words(error)
    if error.code == RequestError.auth_required().code:
        return Failed(f"The agent {what}: {words}", Fault.UNAUTHORIZED)
    return Failed(f"The agent {what}: {words}", next((fault for fault, said in _KINDS if said.search(words)), None))


def _words(error: RequestError) -> str:
    details: object = error.data
    said = f"{error}{f' ({details})' if details else ''}"
    return " ".join(said.split())[:500]


LONGEST: Final = 32_000_000
"""The largest message in bytes: agents send whole files, before and after an edit."""
UNANSWERED: Final = 200
"""The most unanswered requests of an agent."""
_UPDATE: Final = "session/update"
_Json = dict[str, Any]


class Wire:
    """A message transport for `acp.connection.Connection`.

    Args:
        stdin: The agent's.
        stdout: The agent's.
        turn: What updates are given to, in their order and before any answer that comes after them.
    """

    def __init__(self, stdin: ByteSendStream, stdout: ByteReceiveStream, turn: Turn) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._turn = turn
        self._read = bytearray()
        self._seen = 0
        self._waiting = 0
        self.broken: str | None = None
        """Why nothing more is read from the agent, in one sentence; None while it behaves, or when it has ended."""

    async def send(self, message: _Json) -> None:
        """Send one message; if the agent is gone, the wait for its answer fails."""
        # A pydantic error in an answer of the SDK may hold what JSON cannot say.
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        try:
            await self._stdin.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return
        if "method" not in message:
            self._waiting -= 1

    async def receive(self) -> _Json | None:
        """Return the next request or answer; None after the last one."""
        while (line := await self._line()) is not None:
            await anyio.lowlevel.checkpoint()  # what has come is dealt with before more is taken
            message = _message(line)
            if message is None:
                self._turn.noise(line)
            elif message.get("method") == _UPDATE:
                self._turn.update(message.get("params"))
            elif self._waits_too_long(message):
                self.broken = f"The agent had more than {UNANSWERED} requests waiting for an answer."
                return None
            else:
                return message
        return None

    async def close(self) -> None:
        """Do nothing: the streams belong to the box."""

    def _waits_too_long(self, message: _Json) -> bool:
        self._waiting += "method" in message and "id" in message
        return self._waiting > UNANSWERED

    async def _line(self) -> bytes | None:
        while (end := self._read.find(b"\n", self._seen)) < 0:
            self._seen = len(self._read)
            if self._seen > LONGEST:
                self.broken = f"The agent sent a message of more than {LONGEST} bytes."
                return None
            try:
                self._read += await self._stdout.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return self._last()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        self._seen = 0
        return line

    def _last(self) -> bytes | None:
        line, self._seen = bytes(self._read), 0
        self._read.clear()
        return line or None


def _message(line: bytes) -> _Json | None:
    """Return the message in `line` if the SDK accepts it: a request, a notification or an answer; else None."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    message = cast("_Json", value)
    named = isinstance(message.get("method", ""), str) and isinstance(message.get("id"), int | str | None)
    return message if named and isinstance(message.get("error"), dict | None) else None
