"""Backend `acp`: agents that speak the Agent Client Protocol (opencode, Gemini CLI, Claude Code, Codex, any by argv).

The client is ours and runs outside; the agent runs in the box and talks with it over its standard streams. The client
loads the protocol's SDK, which takes most of a second: nobody else waits for that.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.agents.backends.acp_profiles import PRODUCTS, Product, Setup, Terms, custom
from pipeline.agents.backends.acp_values import Failed, Gone, Late, Over
from pipeline.agents.backends.products import Home, home_for, place_of, require_reach
from pipeline.agents.backends.program import Exchange, how_it_ended
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended, Fault, Session, Usage
from pipeline.agents.backends.report_schemas import form
from pipeline.agents.backends.stream_result import COULD_NOT, without_report
from pipeline.config.agents import AgentConfig, Profile
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Completed, Mount
from pipeline.programs import Program, locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.agents.backends.acp_client import Conversation
    from pipeline.config.providers import Api


_STOPS: Final[Mapping[str, tuple[Fault, str]]] = {
    "max_tokens": (Fault.TRUNCATED, "The answer ended at the model's limit of output; give the report in fewer words."),
    "max_turn_requests": (Fault.STEPS, "The model gave as many answers as it may."),
    "refusal": (Fault.REFUSED, "The model declined to go on."),
    "cancelled": (Fault.DENIED, "The agent gave up its turn."),
}
_TOLD: Final = 3


class AcpBackend:
    """Starts the agent of a profile and holds one conversation with it."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the agent is installed and that the configuration lets it reach a model.

        Raises:
            UserError: it is not, or does not.
        """
        _program(agent, search_path)
        if agent.profile is not Profile.CUSTOM:
            require_reach(agent, str(agent.profile))
        elif agent.login:
            raise UserError("login = true is for a known profile.", Reason.CONFIG)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with the agent and return its result.

        Raises:
            UserError: the agent is not there, or the service speaks none of its dialects.
            BoxError: the box did not work.
        """
        from pipeline.agents.backends.acp_client import Conversation  # noqa: PLC0415  (see above)
        from pipeline.agents.backends.acp_turn import Turn  # noqa: PLC0415

        program = _program(job.agent, job.search_path)
        exchange = Exchange.open(job)
        told = _told(job, exchange)
        conversation = Conversation(job, told.setup, told.session, Turn(on_words=job.on_words))
        argv = program.argv(*told.setup.arguments)
        mounts = (*program.mounts, *told.home.mounts, *told.files)
        ended = await exchange.run(argv, mounts, env=told.setup.env, talk=conversation.talk)
        return _result(job, conversation, ended, exchange, told)


@dataclass(frozen=True)
class _ProductSetup:
    """The setup of a product for one dispatch, with its home folder and the mounts of its files."""

    product: Product | None
    setup: Setup
    home: Home
    files: tuple[Mount, ...]

    @property
    def session(self) -> Session | None:
        """Return the session of the conversation, None if the product cannot continue one."""
        return self.home.session if self.product is None or self.product.resumes else None


def _program(agent: AgentConfig, search_path: str | None) -> Program:
    if agent.profile is None:
        raise UserError(f'backend = "acp" needs profile: one of {", ".join(Profile)}.', Reason.CONFIG)
    if agent.profile is not Profile.CUSTOM:
        return PRODUCTS[agent.profile].program.program(agent.argv, search_path)
    if not agent.argv:
        raise UserError('profile = "custom" needs argv: the agent to start, as a list.', Reason.CONFIG)
    program = locate(agent.argv[0], search_path)
    return replace(program, prefix=(*program.prefix, *agent.argv[1:]))


def _told(job: AgentJob, exchange: Exchange) -> _ProductSetup:
    product = PRODUCTS.get(job.agent.profile) if job.agent.profile is not None else None
    place = place_of(job.agent)
    home = home_for(place, exchange) if place is not None else _own(job, exchange)
    kept = place.conversations if place is not None else ""
    terms = Terms(
        job,
        agent=f"redfirst-{job.role}-{secrets.token_hex(4)}",
        folder=None if job.box.maps_paths else home.path,
        conversations=home.path / kept if home.session is not None else None,
        api=_api(job, product),
        folders=(
            *sorted({job.box.inside(m.source, m.target).parent for m in job.artifacts}),
            exchange.inside(exchange.out),
        ),
    )
    setup = product.setup(terms) if product is not None else custom(terms)
    hidden = _hidden(job, product) if product is not None else ()
    return _ProductSetup(product, setup, home, (*_placed(setup, home, exchange), *hidden))


def _own(job: AgentJob, exchange: Exchange) -> Home:
    """Return the home of an unknown agent: a folder that persists between dispatches is its `$XDG_STATE_HOME`."""
    if job.session is None:
        return Home(exchange.inside(exchange.out))
    mount = job.session.mount
    return Home(job.box.inside(mount.source, mount.target), (mount,), job.session)


def _placed(setup: Setup, home: Home, exchange: Exchange) -> Iterator[Mount]:
    """Yield the mounts of the product's files; without a box they are written to their places."""
    for name, content in setup.files.items():
        folder = exchange.job.exchange if exchange.job.box.maps_paths else home.path
        (folder / name).write_text(content, encoding="utf-8")
        yield Mount(folder / name, home.path / name)


def _hidden(job: AgentJob, product: Product) -> Iterator[Mount]:
    """Yield empty mounts over the repository's code that the product would run.

    Raises:
        UserError: it has some, and nothing can be hidden without a box.
    """
    for name in product.hides:
        there = job.view.reach / name
        if not os.path.lexists(there):
            continue
        if not job.box.maps_paths:
            raise UserError(
                f"{product.program.name} would run what this repository has in {name}, without isolation; use a box "
                "that can hide it (bubblewrap), or another agent.",
                Reason.CONFIG,
                path=name,
            )
        nothing = job.exchange / f"instead-of-{name.removeprefix('.')}"
        if there.is_dir():
            nothing.mkdir()
        else:
            nothing.write_text("{}\n", encoding="utf-8")
        yield Mount(nothing, job.view.target / name)


def _api(job: AgentJob, product: Product | None) -> Api | None:
    """Return the API dialect that the product and the gateway's service share; None if no gateway is used.

    Raises:
        UserError: they have none in common.
    """
    if job.service is None or job.network != "model" or product is None:
        return None
    common = next((api for api in job.service.provider.api if api in product.apis), None)
    if common is None:
        raise UserError(
            f"{product.program.name} speaks {', '.join(product.apis)}; the provider {job.service.name} speaks "
            f"{', '.join(job.service.provider.api)}.",
            Reason.CONFIG,
        )
    return common


# --- what came of it ------------------------------------------------------------------------------------------------


def _result(
    job: AgentJob, conversation: Conversation, ended: Completed, exchange: Exchange, told: _ProductSetup
) -> AgentResult:
    turn = conversation.turn
    written, unreadable = exchange.report()
    report = (
        written if written is not None and written.strip() else form(job.report_schema, strict=False).said(turn.message)
    )
    how, complaint, fault = _judged(conversation, ended, job.timeout_s)
    if fault is Fault.STEPS:
        complaint = f"The model gave {job.agent.max_steps} answers, and no more are allowed."
    if complaint is None and report is None:
        refused = "; ".join(conversation.denials[-_TOLD:])
        complaint, fault = without_report(unreadable, refused and f"{COULD_NOT} {refused}.", turn.message)
    return replace(
        AgentResult.of(ended, how, report, complaint),
        stdout=turn.transcript.content(),
        truncated=ended.truncated or turn.transcript.left_out > 0,
        fault=fault,
        usage=_usage(job, conversation, told.product),
        denials=tuple(conversation.denials),
        session=conversation.session if told.session is not None else None,
    )


def _judged(conversation: Conversation, ended: Completed, timeout_s: float) -> tuple[Ended, str | None, Fault | None]:
    """Return how the agent ended and what is wrong. The process's exit counts only where nothing else is known.

    An agent that is still there after its turn is stopped, which is no fault of its answer.
    """
    match conversation.ending:
        case Over(reason):
            fault, sentence = _STOPS.get(reason, (None, None))
            return Ended.OK, sentence, fault
        case Failed(why, fault):
            return Ended.OK if ended.exit_code == 0 else Ended.STOPPED, why, fault
        case Late(why):
            return Ended.TIMED_OUT, why, None
        case Gone():
            how, sentence = how_it_ended(ended, timeout_s)
            return how, sentence or "The agent ended before it had answered.", None
        case _ as never:
            assert_never(never)


def _usage(job: AgentJob, conversation: Conversation, product: Product | None) -> Usage:
    usage = conversation.ending.usage if isinstance(conversation.ending, Over) else Usage(model=conversation.model)
    if job.model is not None:  # a product says it in words of its own
        usage = usage.model_copy(update={"model": job.model})
    if product is not None and product.priced and not (usage.model or "").startswith(product.priced):
        usage = usage.model_copy(update={"cost_usd": None})
    if product is not None and not product.sums:
        resumed = job.session is not None and job.session.id is not None
        cost = None if resumed else usage.cost_usd
        return usage.model_copy(update={"input_tokens": None, "output_tokens": None, "cost_usd": cost})
    return usage
