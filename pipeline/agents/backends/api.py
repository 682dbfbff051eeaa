"""Backend `api`: asks a model service directly in our own tool loop, in which every tool obeys policy and box.

The SDKs are an extra and are imported when such an agent is asked, never before: they cost more than redfirst itself.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended, Fault
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pipeline.agents.backends.api_loop import Conversation, Ending
    from pipeline.config.model import AgentConfig

_NEEDED: Final = ("pydantic_ai", "openai", "anthropic", "google.genai")


class ApiBackend:
    """Asks a model service through the gateway in this process; only the model's commands run in the box."""

    def require(self, agent: AgentConfig, search_path: str) -> None:  # noqa: ARG002  (the protocol)
        """Check that the extra for this backend is installed.

        Raises:
            UserError: it is not.
        """
        missing = [name for name in _NEEDED if not _is_there(name)]
        if missing:
            from pipeline.agents.backends.extras import install_command  # noqa: PLC0415  (only where something is missing)

            command = install_command("api")
            raise UserError(
                f'backend = "api" needs {", ".join(missing)}. Install it: {command}',
                Reason.CONFIG,
                details={"missing": missing},
                actions=(command,),
            )

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch in our tool loop and return the result.

        Raises:
            UserError: the configuration says no model, no provider, or network other than `model`.
            BoxError: the box did not work.
        """
        if job.service is None or job.gateway is None:
            raise UserError('backend = "api" needs a provider, and network = "model".', Reason.CONFIG)
        if job.model is None:
            raise UserError('backend = "api" needs a model: the name that the provider has for it.', Reason.CONFIG)
        from pipeline.agents.backends import api_loop, api_models  # noqa: PLC0415  (an extra, and heavy)

        began = anyio.current_time()
        history = api_loop.kept_conversation(job.session) if job.session else None
        conversation = api_loop.Conversation(job, api_models.common_settings(job.service), history or [])
        prompt = job.session.prompt if job.session and history else job.prompt
        ending: Ending | None = None
        with anyio.move_on_after(job.timeout_s):
            async with api_models.opened_model(job, job.service, job.gateway, job.model) as model:
                ending = await conversation.go_on(model, prompt)
        lasting = conversation.steps > 0 and not (ending and ending.failure and ending.failure.fault is None)
        kept = api_loop.keep_conversation(job.session, conversation.messages) if job.session and lasting else None
        how, fault, complaint = _judged(ending, conversation, job.timeout_s)
        return AgentResult(
            ended=how,
            exit_code={Ended.OK: 0, Ended.NONZERO: 1}.get(how),
            report_file=ending.report if ending else None,
            stdout=conversation.transcript.content(),
            truncated=conversation.transcript.left_out > 0,
            seconds=anyio.current_time() - began,
            complaint=complaint,
            usage=conversation.usage,
            fault=fault,
            denials=tuple(conversation.denials),
            steps=conversation.steps,
            session=kept,
        )


def _judged(
    ending: Ending | None, conversation: Conversation, timeout_s: float
) -> tuple[Ended, Fault | None, str | None]:
    if ending is None:
        return Ended.TIMED_OUT, None, f"The agent did not finish within {timeout_s:g} seconds and was stopped."
    if ending.failure is not None:
        return Ended.NONZERO, ending.failure.fault, ending.failure.sentence
    if ending.report is not None:
        return Ended.OK, None, None
    if conversation.denials:
        return Ended.OK, Fault.DENIED, f"There was no report after a refused call ({conversation.denials[-1]})."
    return Ended.OK, None, "There was no report: give it by calling final_result."


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of what it is in
        return False
