"""Carries out one dispatch, from prompt to typed result: view, box, backend, report, gate, tree.

`result.json` is the commit point: everything before it is done again after a crash, nothing after it is.

An agent's conversation is kept for each slot outside the run's folder, for the length of the run. What is in it was
written by an agent and is shown to agents of the same slot only: this program reads nothing of it but what it wrote
itself, known by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.human import TIMEOUT_S
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Fault, Session
from pipeline.agents.dispatch import prompt as prompts
from pipeline.agents.dispatch.agent_call import call
from pipeline.agents.dispatch.agent_choice import Choice, Circuits, Turns, allowance_of, choices, retries_of
from pipeline.agents.dispatch.caches import Cache
from pipeline.agents.dispatch.desk_gate import rules_of, script_of
from pipeline.agents.dispatch.gate import Policy, inspect
from pipeline.agents.dispatch.model_tools import Workbench
from pipeline.agents.dispatch.request import InRun, Request, Rest
from pipeline.agents.dispatch.results import Remains, as_try, result_of, together
from pipeline.agents.dispatch.transcript import Transcript, secrets_of_run
from pipeline.agents.gateway.providers import credential_of
from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.agents.gateway.route import proxy_for
from pipeline.agents.gateway.spending import GatewayUse, Spent
from pipeline.config.agents import Backend
from pipeline.config.user_folders import home
from pipeline.judge.policy.rights import Writes
from pipeline.judge.reports.kinds import report_schema
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.process import Box, Mount
from pipeline.repo import GITLINK
from pipeline.repo.settings import paths_git_uses
from pipeline.run.files import to_json, write_atomic
from pipeline.sandbox.boxes.children import recorded
from pipeline.sandbox.escapes import Alarm, Fingerprint
from pipeline.sandbox.views.views import Views
from pipeline.testing.measure.project_tools import Tools
from pipeline.trees import remove_tree
from pipeline.vocabulary import Question, Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.config.model import Config
    from pipeline.judge.policy.roles import RoleSpec
    from pipeline.repo import Repository
    from pipeline.run.checkout import PrivateCheckout
    from pipeline.run.folder import Written
    from pipeline.run.info import DispatchRecord, DispatchResult, Try
    from pipeline.sandbox.boxes.box import ProvableBox


@dataclass
class Dispatcher:
    """Carries out the dispatches of one run; `records` are all, `results` the finished ones by name."""

    run_id: str
    issue: str | None
    run_folder: Path
    repository: Repository
    checkout: PrivateCheckout
    config: Config
    box: ProvableBox
    roles: Mapping[Role, RoleSpec]
    templates: Mapping[tuple[str, Question | None], prompts.Template]
    search_path: str
    written: Written | None = None
    depth: int = 1
    records: Mapping[int, DispatchRecord] = field(default_factory=dict[int, "DispatchRecord"])
    results: Mapping[str, DispatchResult] = field(default_factory=dict[str, "DispatchResult"])
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    overlay: bool = True
    say: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.secrets = self._secrets()
        self.views = Views(self.checkout, self.box, overlay=self.overlay)
        self.circuits = Circuits(self.config.outage.circuit_s)
        self.alarm = Alarm()

    def _secrets(self) -> frozenset[str]:
        return secrets_of_run(self.repository.worktree, self.environ, self.config)

    def who(self, record: DispatchRecord) -> Choice:
        """Return the agent that is asked first.

        Raises:
            UserError: a service or model is not said.
        """
        return next(iter(self._turns(record, record.role))).choice

    async def dispatch(self, record: DispatchRecord, request: Request, place: InRun) -> DispatchResult:
        """Carry out one dispatch; its result is on disk when this returns.

        Where a model service is out of reach the same agent is asked again after a while, then the next one, and at
        last when a limit ends that is known. A refused credential ends it at once: neither time nor another agent mends
        that.

        Raises:
            UserError: the agent's program or script is not there, or a service or model is not said.
            BoxError: the box did not work.
            StoppedError: the run was stopped while a service was waited for.
        """
        folder = new_folder(self.run_folder / "dispatches" / record.dispatch)
        artifacts = prompts.Artifacts.copied(request.artifacts, folder, self.box, request.known)
        tries: list[Try] = []
        uses: list[GatewayUse] = []
        result: DispatchResult | None = None
        turns = self._turns(record, request.role)
        for turn in turns:
            if result is not None:
                tries.append(as_try(result))
                set_aside(folder, len(tries))
                rest = Rest(record.dispatch, result.complaint or "", str(turn.choice), turn.pause_s, turn.until)
                self.say(str(rest))
                await place.rest(rest)
            result = await self._try(record, request, folder, artifacts, turn.choice, uses, place)
            if result.signal is not Signal.UNAVAILABLE:
                self.circuits.worked(turn.choice)
                break
            self.circuits.failed(turn.choice, result.not_before)
            if result.fault == Fault.UNAUTHORIZED:
                break
        if result is None:
            raise LookupError(f"nobody can be asked to play {request.role}")
        result = together(result, tries)
        if result.signal is Signal.UNAVAILABLE and turns.first is not None:
            result = result.model_copy(update={"not_before": self.circuits.text_of(turns.first)})
        write_atomic(folder / "result.json", to_json(result.model_dump(mode="json", by_alias=True)))
        return result

    def _turns(self, record: DispatchRecord, role: Role) -> Turns:
        return Turns(choices(self.config, role, retries=retries_of(record)), self.circuits, self.config.outage)

    async def _try(
        self,
        record: DispatchRecord,
        request: Request,
        folder: Path,
        artifacts: prompts.Artifacts,
        choice: Choice,
        uses: list[GatewayUse],
        place: InRun,
    ) -> DispatchResult:
        """Ask one agent in a fresh view and judge its work; the use of all of *uses* counts against its share."""
        spec = self.roles[request.role]
        view = self.views.open(record.base_tree, writable=spec.writes is not Writes.NOTHING)
        try:
            document = self._document(record, request, view.mount.target, artifacts, place)
            (folder / "prompt.md").write_text(document.prompt, encoding="utf-8")
            before = Fingerprint.take(self.repository, self.written)
            gateway = self._gateway(record, choice, folder / "model.jsonl", sum(uses, GatewayUse()).spent)
            with recorded(folder / "process.json", self.box.name):
                answer = await self._ask(record, request, document, view.mount, folder, choice, gateway, place.on_words)
            uses += [gateway.use] if gateway is not None else []
            self.secrets |= self._secrets()  # a product renews its login while it works
            transcript = Transcript(folder, self.secrets)
            transcript.keep(answer)
            # What a person does in the repository meanwhile is their own business: nothing of an agent ran.
            escape = self.alarm.escape
            if escape is None and choice.agent.backend is not Backend.HUMAN:
                escape = before.differs(self.repository, self.checkout)
            if escape is not None:
                self.alarm.ring(escape)
                write_atomic(folder / "escape.json", to_json(escape.document()))
            gate = inspect(view, self._policy(record, request))
            remains = Remains(choice, answer, gate, escape, sum(uses, GatewayUse()) if uses else None, self.secrets)
            result = result_of(record, request, remains, self.repository, self.checkout)
            if gate.violations:
                transcript.quarantine(self.run_folder / "quarantine" / record.dispatch, view, gate)
        finally:
            view.close()
        return result

    def _document(
        self, record: DispatchRecord, request: Request, workspace: Path, artifacts: prompts.Artifacts, place: InRun
    ) -> prompts.DispatchDocument:
        """Return the document of a dispatch, its prompt included."""
        spec, template = self.roles[request.role], self.templates[request.kind, request.question]
        document = prompts.DispatchDocument.from_fields(
            request,
            record,
            self,
            phase=place.phase,
            workspace=str(workspace),
            artifacts=dict(artifacts.shown),
            write=prompts.write_list(spec, request),
            area=tuple(one.text for one in request.area or ()),
            known=artifacts.known,
            report_schema=report_schema(
                request.kind, request.role, request.question, asks=request.asks, without=request.without
            ),
        )
        named = (*request.grants, *(request.tests.files if request.tests is not None else ()))
        instructions = prompts.instruction_files([*request.about, *(grant.path for grant in named)])
        there = {entry.path for entry in self.repository.entries(record.base_tree, *instructions)}
        here = [name for name in instructions if name in there]  # not what is in folders of the name
        prompt = prompts.build_prompt(spec, template, document, why=place.why, extra=request.extra, instructions=here)
        return document.model_copy(update={"prompt": prompt})

    def _policy(self, record: DispatchRecord, request: Request) -> Policy:
        spec, entries = self.roles[request.role], self.repository.entries(record.base_tree)
        return Policy(
            spec.writes,
            request.grants,
            request.tests,
            test_regions=spec.test_regions,
            protected=(*paths_git_uses(self.repository), *(one.path for one in entries if one.mode == GITLINK)),
            tracker=self.config.tracker.folder,
            area=request.area,
            filters=lambda paths: self.repository.foreign_filters(self.checkout.tree, paths),
            ignored=lambda paths: self.repository.ignored_paths(self.checkout.tree, paths),
        )

    def _gateway(self, record: DispatchRecord, choice: Choice, log: Path, taken: Spent) -> ModelGateway | None:
        if choice.service is None:
            return None
        name, provider = choice.service.name, choice.service.provider
        return ModelGateway(
            provider,
            credential_of(provider, name, self.environ),
            log,
            name=name,
            allowance=allowance_of(record, choice).less(taken),
            prices=self.config.prices,
            proxy=proxy_for(provider.url, self.environ),
        )

    async def _ask(
        self,
        record: DispatchRecord,
        request: Request,
        document: prompts.DispatchDocument,
        view: Mount,
        folder: Path,
        choice: Choice,
        gateway: ModelGateway | None,
        on_words: Callable[[str], None],
    ) -> AgentResult:
        agent, spec, policy = choice.agent, self.roles[request.role], self._policy(record, request)
        tools = request.tools(view) if request.tools is not None else Tools()
        cache = Cache.of(self.checkout.root / "caches", request.role.value, record.lane)
        exchange = folder / "exchange"
        exchange.mkdir(mode=0o700)  # an agent can leave a set-user program in it
        before = self.results.get(record.continues) if record.continues is not None else None
        artifacts = (Mount(folder / "artifacts", prompts.ARTIFACTS),)
        mine = (cache.mount(self.box), *tools.mounts)
        env = {**cache.env(self.box), **tools.env, **agent.env}
        bench = Workbench(
            spec,
            view,
            self.box,
            policy,
            artifacts=artifacts,
            tools=replace(tools, mounts=mine, env=env),
            search_path=self.search_path,
            checks=self.config.checks.commands,
        )
        job = AgentJob(
            box=self.box,
            document=document.to_json().encode(),
            view=view,
            exchange=exchange,
            artifacts=artifacts,
            read=(*mine, *(Mount(Path(path), Path(path)) for path in agent.read)),
            used=used_entries(record, self.records.values(), self.results, lambda role: self.config.agent(role).script),
            env=env,
            timeout_s=agent.timeout_s or (TIMEOUT_S if agent.backend is Backend.HUMAN else spec.timeout_s),
            network=agent.reaches.value,
            gateway=gateway,
            search_path=self.search_path,
            depth=self.depth,
            agent=agent,
            prompt=document.prompt,
            report_schema=document.report_schema,
            role=request.role.value,
            shell=spec.shell,
            model=choice.model,
            service=choice.service,
            session=session_of(
                self.checkout.root / "sessions",
                record,
                before,
                choice.product,
                box=self.box,
                prompt=prompts.continued_prompt(document),
            ),
            tools=bench.offered(),
            home=home(self.environ),
            say=self.say,
            on_words=on_words,
            desk_rules=rules_of(policy, self.repository, record.base_tree, self.checkout)
            if agent.backend is Backend.HUMAN
            else None,
            desk_tests=partial(script_of, request.tools) if request.tools is not None else None,
        )
        try:
            return await call(BACKENDS[agent.backend.value], job, gateway, self.alarm)
        finally:
            cache.trim()
            remove_tree(exchange / "out")  # the agent may have put anything beside its report


_SHARED: Final = "artifacts"
"""The folder that all tries of a dispatch share; it does not change."""
_TRY: Final = "try-"


def new_folder(folder: Path) -> Path:
    """Create *folder* and return it; one left by a crash is renamed to `.lost-k` (its cost stays counted)."""
    if folder.exists():
        lost = 1
        while folder.with_name(f"{folder.name}.lost-{lost}").exists():
            lost += 1
        folder.rename(folder.with_name(f"{folder.name}.lost-{lost}"))
    folder.mkdir(parents=True)
    return folder


def set_aside(folder: Path, number: int) -> None:
    """Move the files of a failed try into `try-N`."""
    entries = [entry for entry in folder.iterdir() if entry.name != _SHARED and not entry.name.startswith(_TRY)]
    aside = folder / f"{_TRY}{number}"
    aside.mkdir()
    for entry in entries:
        entry.rename(aside / entry.name)


def used_entries(
    record: DispatchRecord,
    records: Iterable[DispatchRecord],
    results: Mapping[str, DispatchResult],
    script_of: Callable[[Role], str | None],
) -> frozenset[int]:
    """Return the entries of this dispatch's script that finished dispatches have used.

    What lanes beside this one take is theirs, whichever of them is first; the trunk has seen all.

    Args:
        record: The dispatch that begins.
        records: All dispatches of the run.
        results: Those that are finished, by name.
        script_of: The script of a role.
    """
    used: set[int] = set()
    for other in records:
        result = results.get(other.dispatch)
        is_seen = record.lane == TRUNK or other.lane in {TRUNK, record.lane}
        is_same = script_of(other.role) == script_of(record.role)
        if is_seen and is_same and result is not None and result.entry is not None:
            used.add(result.entry)
    return frozenset(used)


SESSION: Final = Path("/redfirst-session")


def session_of(
    top: Path, record: DispatchRecord, before: DispatchResult | None, product: str, *, box: Box, prompt: str
) -> Session:
    """Return the slot's session; it starts anew if the earlier one is of another product.

    Args:
        top: Where the sessions of the run are.
        record: The dispatch.
        before: The dispatch whose conversation may be gone on with.
        product: Who is asked now.
        box: Where the folder is shown.
        prompt: What is said in a conversation that goes on.
    """
    folder = top / f"{record.visit}-{record.role.value}"
    known = before.session if before is not None and _same(before, product) else None
    if known is None and folder.is_dir():
        remove_tree(folder)
    # An agent can leave a set-user program there, which on disk is one of the driver's user: no other may reach it.
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return Session(Mount(folder, box.inside(folder, SESSION), writable=True), known, prompt)


def _same(before: DispatchResult, product: str) -> bool:
    return before.agent is not None and before.agent.product == product
