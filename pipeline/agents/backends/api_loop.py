"""The tool loop: asks the model, carries out its calls one after the other, until it reports.

The loop is ours, so that each answer is one step, a refusal goes back to the model in words, and nothing is retried
silently: whether a report counts, and whether it is asked for again, is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from pydantic import ValidationError
from pydantic_ai import exceptions
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_core import PydanticSerializationError

from pipeline.agents.backends.protocol import AgentJob, Fault, Mishap, Session, ToolAnswer, Usage
from pipeline.agents.backends.report_schemas import Form, form
from pipeline.agents.backends.stream_result import TOO_LONG, Transcript, call_words
from pipeline.characters import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.settings import ModelSettings


_REPORT: Final = "final_result"
_CHARACTERS: Final = 60_000
"""The longest answer of a tool, in characters; every later request repeats it."""
_SHOWN: Final = 200
_WORDS: Final = 300
_TAKEN: Final = "The report was taken."
_PAUSES_S: Final = (0.5, 2.0)
_LONGEST_S: Final = 30.0
_RULES: Final = """\
You work with tools alone: nobody reads along, nobody answers questions, and there is no shell. Paths are relative to
the workspace; the absolute paths that the request names work too. Where the request speaks of commands, of git or of
the file in REDFIRST_REPORT, use the tools that you have for it. Calls are carried out one after the other. A call that
is refused stays refused: read why, and go on another way. Give your report by calling final_result; that ends your
work."""


@dataclass(frozen=True)
class Ending:
    """How a conversation ended: with a report, without one, or with a failure."""

    report: bytes | None = None
    failure: Failure | None = None


@dataclass
class Conversation:
    """One conversation with a model, and its counts so far.

    Args:
        job: The dispatch.
        settings: What goes along with every request.
        messages: The history; at any time each call in it has its answer.
    """

    job: AgentJob
    settings: ModelSettings
    messages: list[parts.ModelMessage] = field(default_factory=list[parts.ModelMessage])
    steps: int = 0
    denials: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.transcript = Transcript()
        self._began = anyio.current_time()
        self._tools = {
            name: Tool[None](function, name=name, takes_ctx=False, strict=False)
            for name, function in self.job.tools.items()
        }
        self._form = form(self.job.report_schema, strict=False)
        self._parameters = ModelRequestParameters(
            function_tools=[tool.tool_def for tool in self._tools.values()],
            output_tools=[_report_definition(self._form)],
            output_mode="tool",
            allow_text_output=True,
        )

    async def go_on(self, model: Model, prompt: str) -> Ending:
        """Send *prompt*, carry out the model's calls, and return how the conversation ended.

        Raises:
            BoxError: the box did not work.
        """
        self._say(prompt)
        while self.steps < self.job.agent.max_steps:
            response = await self._ask(model)
            if isinstance(response, Failure):
                return self._failed(response)
            self.steps += 1
            self._count(response)
            self._write_down(response)
            if failure := fault_in(response):
                return self._failed(failure)
            calls = response.tool_calls
            if not calls:
                self.messages.append(response)
                return Ending(report=self._form.said(response.text or ""))
            answers = [await self._answer(call) for call in calls]
            self.messages += [response, parts.ModelRequest(answers)]
            if reports := [call for call in calls if _is_report(call)]:
                return Ending(report=self._reported(reports[-1]))
        return self._failed(Failure(Fault.STEPS, f"The model did not come to an end within {self.steps} answers."))

    def _note(self, what: str, **facts: str | int | None) -> None:
        """Write a line into the transcript: the seconds since the beginning, the kind, and facts."""
        known = {name: fact for name, fact in facts.items() if fact is not None}
        self.transcript.add(round(anyio.current_time() - self._began, 3), what, **known)

    def _say(self, prompt: str) -> None:
        self._note("prompt", text=prompt)
        match self.messages:
            case []:
                self.messages.append(parts.ModelRequest([parts.SystemPromptPart(_RULES), parts.UserPromptPart(prompt)]))
            case [*_, parts.ModelRequest() as last]:  # answers to calls: no two requests may follow each other
                self.messages[-1] = replace(last, parts=[*last.parts, parts.UserPromptPart(prompt)])
            case _:
                self.messages.append(parts.ModelRequest([parts.UserPromptPart(prompt)]))

    async def _ask(self, model: Model) -> parts.ModelResponse | Failure:
        """Return the model's next response; short failures are retried here, longer ones by the caller."""
        for pause_s in _PAUSES_S:
            answer = await self._request(model)
            if not isinstance(answer, Failure) or answer.again_s is None or answer.again_s > _LONGEST_S:
                return answer
            self._note("again", text=answer.sentence)
            await anyio.sleep(max(answer.again_s, pause_s))
        return await self._request(model)

    async def _request(self, model: Model) -> parts.ModelResponse | Failure:
        try:
            return await model_request(
                model,
                self.messages,
                model_settings=self.settings,
                model_request_parameters=self._parameters,
                instrument=False,
            )
        except Exception as error:  # noqa: BLE001  (an answer that breaks the SDK is the service's failure, not ours)
            return failure_of(error, self.job.service.name if self.job.service else "")

    def _reported(self, call: parts.ToolCallPart) -> bytes:
        """Return the report in a call as bytes; arguments that are no JSON are returned unchanged and judged later."""
        try:
            return self._form.filled(call.args_as_dict(raise_if_invalid=True))
        except (ValueError, AssertionError, RecursionError):
            return _arguments(call).encode(errors="replace")

    async def _answer(self, call: parts.ToolCallPart) -> parts.ToolReturnPart:
        self._note("call", tool=call.tool_name, arguments=_arguments(call))
        if _is_report(call):
            answer = ToolAnswer(_TAKEN)
        else:
            self.job.on_words(call_words(call.tool_name, [_arguments(call)]))
            answer, subject = await self._called(call.tool_name, call.args or "{}")
            if answer.denied:
                self.denials.append(f"{_line(f'{call.tool_name} {subject}', _SHOWN)}: {answer.rule}")
        text = f"Not done: {answer.text}" if answer.rule is not None else answer.text
        self._note("answer", tool=call.tool_name, text=text, rule=answer.rule, exit_code=answer.exit_code)
        return parts.ToolReturnPart(call.tool_name, _shortened(text), call.tool_call_id)

    async def _called(self, name: str, arguments: str | dict[str, Any]) -> tuple[ToolAnswer, str]:
        """Carry out a call; return its answer, and its main argument for a line of the log."""
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            return ToolAnswer(f"there is no tool {name!r} for you; there are: {known}", "no-such-tool"), ""
        validator = tool.function_schema.validator
        try:
            given: dict[str, Any] = (
                validator.validate_json(arguments)
                if isinstance(arguments, str)
                else validator.validate_python(arguments)
            )
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or name}: {fault['msg']}" for fault in error.errors()
            )
            return ToolAnswer(f"these are not the arguments of {name}: {faults}", Mishap.ARGUMENTS), ""
        answer = self.job.tools[name](**given)
        subject = str(next(iter(given.values()), ""))
        return (await answer if inspect.isawaitable(answer) else answer), subject

    def _count(self, response: parts.ModelResponse) -> None:
        known, said = self.usage, response.usage
        measured = said.has_values()
        self.usage = Usage(
            input_tokens=(known.input_tokens or 0) + said.input_tokens if measured else known.input_tokens,
            output_tokens=(known.output_tokens or 0) + said.output_tokens if measured else known.output_tokens,
            model=response.model_name or known.model,
        )

    def _write_down(self, response: parts.ModelResponse) -> None:
        for part in response.parts:
            match part:
                case parts.TextPart():
                    self._note("says", text=part.content)
                    self.job.on_words(part.content)
                case parts.ThinkingPart() if part.content:
                    self._note("thinks", text=part.content)
                case _:
                    pass

    def _failed(self, failure: Failure) -> Ending:
        self._note("failed", fault=failure.fault, text=failure.sentence)
        return Ending(failure=failure)


def _is_report(call: parts.ToolCallPart) -> bool:
    return call.tool_name == _REPORT


def _arguments(call: parts.ToolCallPart) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {})


def _line(text: object, most: int) -> str:
    """Return a model's text as one short line."""
    line = visible(" ".join(str(text).split()))
    return line if len(line) <= most else f"{line[:most]} ..."


def _shortened(text: str) -> str:
    """Return *text* with its middle left out where it is too long for a conversation."""
    if len(text) <= _CHARACTERS:
        return text
    half = _CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[-half:]}"


def _report_definition(form: Form) -> ToolDefinition:
    return ToolDefinition(
        name=_REPORT,
        parameters_json_schema=dict(form.schema),
        description="Give your report. This ends your work.",
        strict=False,
        kind="output",
    )


def keep_conversation(session: Session, messages: Sequence[parts.ModelMessage]) -> str | None:
    """Store a conversation and return its name, a hash of its content, so that no other can replace it.

    None if it cannot be written: a model may say what JSON cannot (too deep, half a letter).
    """
    try:
        content = parts.ModelMessagesTypeAdapter.dump_json(list(messages))
    except PydanticSerializationError:
        return None
    name = hashlib.sha256(content).hexdigest()
    (session.mount.reach / f"{name}.json").write_bytes(content)
    return name


def kept_conversation(session: Session) -> list[parts.ModelMessage] | None:
    """Return the stored conversation of a session; None if there is none, or its content was changed."""
    if session.id is None or not session.id.isalnum():
        return None
    try:
        content = (session.mount.reach / f"{session.id}.json").read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != session.id:
        return None
    try:
        return parts.ModelMessagesTypeAdapter.validate_json(content)
    except ValidationError:  # another version wrote it
        return None


# --- what is no answer ------------------------------------------------------------------------------------------------

_PASSING: Final = (
    exceptions.ModelConnectionError,
    exceptions.ModelRateLimitError,
    exceptions.ModelServerError,
    exceptions.ModelUnavailableError,
)
_OF_RULES: Final = {
    "budget": Fault.BUDGET,
    "steps": Fault.STEPS,
    "max_requests": Fault.STEPS,
    "max_request_bytes": Fault.STEPS,
    "max_response_bytes": Fault.STEPS,
}
"""Faults by the gateway's rule, where the dispatch has used up its allowance."""


@dataclass(frozen=True)
class Failure:
    """The reason why a model gave no answer.

    Args:
        fault: What kind of failure it is; None where only the request was at fault.
        sentence: For people, and for the agent.
        again_s: After how many seconds the same request may work; None if it will not.
    """

    fault: Fault | None
    sentence: str
    again_s: float | None = None


def failure_of(error: Exception, service: str) -> Failure:
    """Return the failure that an exception of the SDK stands for.

    Total: what it raises for an answer is the service's fault, unless the model has made its history unfit to be sent.
    """
    said = _message(error)
    if rule := _own_rule(error):
        return Failure(_OF_RULES.get(rule, Fault.UNAVAILABLE), said, _again(error))
    match error:
        case exceptions.ContentFilterError():
            return Failure(Fault.REFUSED, "The model declined to answer.")
        case exceptions.OutputTokenLimitExceeded():
            return _TRUNCATED
        case exceptions.ModelContextWindowExceededError():
            return Failure(None, TOO_LONG)
        case exceptions.ModelAuthenticationError():
            status = getattr(error, "status_code", "")
            return Failure(Fault.UNAUTHORIZED, f"The model service {service} refused the credential ({status}): {said}")
        case exceptions.ModelQuotaExceededError():
            return Failure(Fault.UNAVAILABLE, f"The account at the model service {service} is used up: {said}")
        case exceptions.ModelHTTPError():
            sentence = f"The model service {service} answered {error.status_code}: {said}"
            return Failure(Fault.UNAVAILABLE, sentence, _again(error))
        case UnicodeEncodeError() | RecursionError():
            return Failure(None, "The model's words cannot be sent back: they nest too deep, or are no text.")
        case _:
            sentence = f"The model service {service} gave no proper answer: {said}"
            return Failure(Fault.UNAVAILABLE, sentence, _again(error))


def _again(error: Exception) -> float | None:
    if not isinstance(error, _PASSING) or getattr(error, "provider_retry_hint", None) is False:
        return None
    return error.retry_after or 0.0


def fault_in(response: parts.ModelResponse) -> Failure | None:
    """Return why a model's response is no answer, None if it is one."""
    if response.finish_reason == "content_filter":
        return Failure(Fault.REFUSED, "The model declined to answer.")
    if response.finish_reason == "length":
        return _TRUNCATED
    if not response.tool_calls and not (response.text or "").strip():
        return Failure(Fault.EMPTY, "The turn ended without a word.")
    return None


_TRUNCATED: Final = Failure(Fault.TRUNCATED, "The model's answer was cut off at its limit of output; say less at once.")


def _own_rule(error: Exception) -> str | None:
    """Return the gateway's rule if the gateway refused the request, else None."""
    found = _error_of(error)
    return str(found.get("code")) if found.get("type") == "redfirst" else None


def _message(error: Exception) -> str:
    return _line(_error_of(error).get("message") or str(error) or type(error).__name__, _WORDS)


def _error_of(error: Exception) -> dict[str, Any]:
    """Return the error document of a service or the gateway; each SDK unwraps it differently."""
    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        return {}
    document = cast("dict[str, Any]", body)
    inner = document.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else document
