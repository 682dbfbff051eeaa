"""Runs one agent, and stops it at once when its model service fails or an agent escaped its box.

What the gateway saw counts more than what an agent makes of it: agents retry a refused login for minutes, and end with
exit code 0 after a request that the budget forbade.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.agents.backends.protocol import AgentJob, AgentResult, Backend, Ended, Fault, Usage
from pipeline.agents.backends.reset_words import reset_in, zone_named
from pipeline.agents.gateway.failing_service import Trouble
from pipeline.reset_times import ahead

if TYPE_CHECKING:
    from pipeline.agents.gateway.proxy import ModelGateway
    from pipeline.sandbox.escapes import Alarm

_NO_BOX: Final = "none"
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
        answer = AgentResult(Ended.STOPPED, anyio.current_time() - began, complaint="The agent was stopped.")
    if gateway is None:
        return _limited(answer, job) if answer.fault is Fault.UNAVAILABLE else answer
    # An agent that gave up by itself, while nothing but failures came back, did so for that.
    trouble = gateway.halt or (gateway.failing if answer.complaint is not None else None)
    if trouble is not None:
        answer = _limited(answer, job) if trouble.trouble is Trouble.RATE_LIMITED else answer
        answer = replace(
            answer,
            fault=_FAULTS[trouble.trouble],
            complaint=trouble.why,
            not_before=trouble.not_before or answer.not_before,
        )
    return _metered(answer, gateway, job.model)


def _limited(answer: AgentResult, job: AgentJob) -> AgentResult:
    """Return the answer of an agent whose service limits it, with when that ends by the product's own words."""
    now = datetime.now(UTC)
    if answer.not_before is not None:
        return replace(answer, not_before=ahead(answer.not_before, now))
    return replace(answer, not_before=reset_in(answer.complaint or "", now, _clock_of(job, now)))


def _clock_of(job: AgentJob, now: datetime) -> tzinfo:
    """Return the zone of a product's clock: what its variables say; else a box has that of nobody, UTC."""
    said = zone_named(job.env.get("TZ", ""))
    if said is not None:
        return said
    here = now.astimezone().tzinfo if job.box.name == _NO_BOX else None
    return here or UTC


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
