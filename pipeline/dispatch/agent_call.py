"""Runs one agent, and stops it at once when its model service fails (ADR-R52) or an agent escaped its box.

What the gateway saw counts more than what an agent makes of it: agents retry a refused login for minutes, and end with
exit code 0 after a request that the budget forbade.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.backends.protocol import AgentResult, Ended, Fault, Usage
from pipeline.gateway.halting import Trouble

if TYPE_CHECKING:
    from pipeline.backends.protocol import AgentJob, Backend
    from pipeline.dispatch.sandbox_escape import Alarm
    from pipeline.gateway.proxy import ModelGateway

_FAULTS: Final = {
    Trouble.UNAUTHORIZED: Fault.UNAUTHORIZED,
    Trouble.UNAVAILABLE: Fault.UNAVAILABLE,
    Trouble.RATE_LIMITED: Fault.UNAVAILABLE,
    Trouble.NOT_FOUND: Fault.UNAVAILABLE,
    Trouble.BUDGET: Fault.BUDGET,
    Trouble.STEPS: Fault.STEPS,
}


async def call(backend: Backend, job: AgentJob, gateway: ModelGateway | None, alarm: Alarm) -> AgentResult:
    """Run the agent and return its result; every process that it started is dead.

    Args:
        backend: Who runs the agent.
        job: What it is handed.
        gateway: Its way to a model service, if it has one.
        alarm: Rings where another dispatch that is at work meanwhile finds an escape.

    Raises:
        UserError: the configuration names something that is not there.
        BoxError: the box did not work.
    """
    answer: AgentResult | None = None
    failed: Exception | None = None
    began = anyio.current_time()
    async with anyio.create_task_group() as group:

        async def stop(gateway: ModelGateway) -> None:
            await gateway.halted()
            group.cancel_scope.cancel()

        if gateway is not None:
            group.start_soon(stop, gateway)
        try:
            with alarm.cancelling(group.cancel_scope):
                answer = await backend.run(job)
        except Exception as error:  # noqa: BLE001  (raised again below, as it is: the group would wrap it)
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    if answer is None:
        answer = _stopped(anyio.current_time() - began)
    if gateway is None:
        return answer
    # An agent that gave up by itself, while nothing but failures came back, did so for that.
    trouble = gateway.halt or (gateway.failing if answer.complaint is not None else None)
    if trouble is not None:
        answer = replace(
            answer,
            fault=_FAULTS[trouble.trouble],
            complaint=trouble.why,
            not_before=trouble.not_before or answer.not_before,
        )
    return _metered(answer, gateway, job.model)


def _stopped(seconds: float) -> AgentResult:
    return AgentResult(
        ended=Ended.STOPPED,
        exit_code=None,
        signal=None,
        report_file=None,
        stdout=b"",
        stderr=b"",
        truncated=False,
        seconds=seconds,
        complaint="The agent was stopped.",
    )


def _metered(answer: AgentResult, gateway: ModelGateway, model: str | None) -> AgentResult:
    """Return the result with the gateway's measured usage where the product reports none; a reported cost wins."""
    use, said = gateway.use, answer.usage
    spent, metered = use.spent, use.spent.unmetered == 0
    usage = Usage(
        input_tokens=spent.tokens.input if metered else _at_least(spent.tokens.input, said.input_tokens),
        output_tokens=spent.tokens.output if metered else _at_least(spent.tokens.output, said.output_tokens),
        cost_usd=said.cost_usd if said.cost_usd is not None else spent.cost_usd,
        model=said.model or model,
    )
    return replace(answer, usage=usage, steps=answer.steps if answer.steps is not None else spent.answers)


def _at_least(measured: int, said: int | None) -> int | None:
    """Return the tokens that an agent reports, but at least the measured ones."""
    return None if said is None else max(measured, said)
