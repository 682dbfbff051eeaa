"""One dispatch, from prompt to typed result: view, box, backend, report, gate, candidate tree (architecture 6).

`result.json` is the commit point: everything before it is done again after a crash, nothing after it is.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends import BACKENDS
from pipeline.backends.protocol import AgentJob
from pipeline.dispatch.caches import Cache
from pipeline.dispatch.children import recorded
from pipeline.dispatch.escape import Fingerprint
from pipeline.dispatch.gate import Policy, inspect
from pipeline.dispatch.prompt import DispatchDocument, WriteGrant, build_prompt
from pipeline.dispatch.redaction import quiet_answer
from pipeline.dispatch.request import Tools
from pipeline.dispatch.transcript import Transcript, secrets_of_run
from pipeline.dispatch.trees import remove_tree
from pipeline.dispatch.verdict import judge
from pipeline.dispatch.views import Views
from pipeline.gateway.providers import gateway_for
from pipeline.git import Entry, TreeChange
from pipeline.git.obeyed import obeyed_in_tree
from pipeline.policy.scope import ChangeKind, Writes
from pipeline.policy.test_regions import only_test_regions
from pipeline.process import Mount
from pipeline.reports.kinds import report_schema
from pipeline.runs.files import to_json, write_atomic
from pipeline.runs.info import ChangeRecord, DispatchResult, ModelTraffic, Usage, ViolationRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.backends.protocol import AgentResult
    from pipeline.config.model import AgentConfig, Config
    from pipeline.dispatch.box import Box
    from pipeline.dispatch.escape import Escape
    from pipeline.dispatch.gate import AdmittedChange, GateResult
    from pipeline.dispatch.prompt import Template
    from pipeline.dispatch.request import Request
    from pipeline.git import Repository
    from pipeline.policy.roles import RoleSpec
    from pipeline.process import Gateway
    from pipeline.routing.vocabulary import Question, Role
    from pipeline.runs.checkout import PrivateCheckout
    from pipeline.runs.info import DispatchRecord

ARTIFACTS: Final = Path("/run/redfirst/artifacts")
SEVERAL: Final = frozenset({"tasks", "done_tasks", "evidence", "findings", "feedback", "diagnosis", "test_output"})
"""Artifacts that are always a list in the document, however many there are."""


@dataclass
class Dispatcher:
    """Carries out dispatches of one run. `results` are the finished ones, by name (shared with the run)."""

    run_id: str
    run_folder: Path
    repository: Repository
    checkout: PrivateCheckout
    config: Config
    box: Box
    roles: Mapping[Role, RoleSpec]
    templates: Mapping[tuple[str, Question | None], Template]
    search_path: str
    depth: int = 1
    results: Mapping[str, DispatchResult] = field(default_factory=dict[str, DispatchResult])
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    overlay: bool = True

    def __post_init__(self) -> None:
        self.secrets = secrets_of_run(self.repository.worktree, self.environ, self.config)
        self.views = Views(self.checkout, self.box, overlay=self.overlay)

    async def dispatch(self, record: DispatchRecord, request: Request, *, phase: str, why: str) -> DispatchResult:
        """Carry out one dispatch; its result is on disk when this returns.

        Raises:
            UserError: the agent's program or script is not there.
            SandboxError: the box did not work.
        """
        folder = self._new_folder(record.dispatch)
        view = self.views.open(record.base_tree, writable=self.roles[request.role].writes is not Writes.NOTHING)
        try:
            document = self._document(record, request, folder, view.mount.target, phase=phase, why=why)
            (folder / "prompt.md").write_text(document.prompt, encoding="utf-8")
            guarded = (self.repository, self.checkout, self.run_id)
            before = Fingerprint.take(*guarded)
            gateway = gateway_for(self.config, request.role, self.environ, folder / "model.jsonl")
            with recorded(folder / "process.json", self.box.name):
                answer = await self._ask(request, document, view.mount, folder, gateway)
            answer = quiet_answer(answer, self.secrets)
            transcript = Transcript(folder, self.secrets)
            transcript.keep(answer)
            escape = before.differs(*guarded)
            if escape is not None:
                write_atomic(folder / "escape.json", to_json(escape.document()))
            gate = inspect(view, self._policy(request))
            result = self._result(record, request, answer, gate, escape)
            if gateway is not None:
                result = result.model_copy(update={"model_traffic": ModelTraffic(**asdict(gateway.use))})
            if gate.violations:
                transcript.quarantine(self.run_folder / "quarantine" / record.dispatch, view, gate)
        finally:
            view.close()
        write_atomic(folder / "result.json", to_json(result.model_dump(mode="json", by_alias=True)))
        return result

    def _policy(self, request: Request) -> Policy:
        spec = self.roles[request.role]
        return Policy(
            spec.writes,
            request.grants,
            request.tests,
            test_regions=only_test_regions if spec.test_regions else None,
            protected=obeyed_in_tree(self.repository),
            filters=lambda paths: self.repository.foreign_filters(self.checkout.tree, paths),
        )

    def _new_folder(self, name: str) -> Path:
        """Return a fresh folder; one that a crash left is kept as `.lost-k` (its cost stays counted)."""
        folder = self.run_folder / "dispatches" / name
        if folder.exists():
            lost = 1
            while folder.with_name(f"{name}.lost-{lost}").exists():
                lost += 1
            folder.rename(folder.with_name(f"{name}.lost-{lost}"))
        folder.mkdir(parents=True)
        return folder

    def _document(
        self, record: DispatchRecord, request: Request, folder: Path, workspace: Path, *, phase: str, why: str
    ) -> DispatchDocument:
        document = DispatchDocument(
            run_id=self.run_id,
            dispatch=record.dispatch,
            step=record.step,
            phase=phase,
            role=request.role,
            kind=request.kind,
            question=request.question,
            task=record.task,
            attempt=record.attempt,
            reask=record.reask,
            workspace=str(workspace),
            artifacts=self._artifacts(request, folder),
            write=_write_list(self.roles[request.role], request),
            report_schema=report_schema(request.kind, request.role, request.question),
        )
        template = self.templates[request.kind, request.question]
        prompt = build_prompt(self.roles[request.role], template, document, why=why, extra=request.extra)
        return document.model_copy(update={"prompt": prompt})

    def _artifacts(self, request: Request, folder: Path) -> dict[str, str | tuple[str, ...]]:
        """Copy the artifacts beside the view: what the agent read is frozen with the dispatch."""
        root = folder / "artifacts"
        root.mkdir()
        shown = self.box.inside(root, ARTIFACTS)
        found: dict[str, str | tuple[str, ...]] = {}
        for name, paths in request.artifacts.items():
            for path in paths:
                target = root / name / path.name
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
            inside = tuple(str(shown / name / path.name) for path in paths)
            if name in SEVERAL or len(inside) > 1:
                found[name] = inside
            elif inside:
                found[name] = inside[0]
        return found

    async def _ask(
        self, request: Request, document: DispatchDocument, view: Mount, folder: Path, gateway: Gateway | None
    ) -> AgentResult:
        agent = self.config.agent(request.role)
        tools = request.tools(view) if request.tools is not None else Tools()
        cache = Cache(self.checkout.root / "caches" / request.role.value)
        exchange = folder / "exchange"
        exchange.mkdir(mode=0o700)  # an agent can leave a set-user program in it
        job = AgentJob(
            sandbox=self.box,
            document=document.to_json().encode(),
            view=view,
            exchange=exchange,
            artifacts=(Mount(folder / "artifacts", ARTIFACTS),),
            read=(cache.mount(self.box), *tools.mounts, *(Mount(Path(path), Path(path)) for path in agent.read)),
            argv=agent.argv,
            script=Path(agent.script) if agent.script else None,
            used=self._used_entries(agent),
            env={**cache.env(self.box), **tools.env, **agent.env},
            timeout_s=agent.timeout_s,
            network=agent.network.value,
            gateway=gateway,
            search_path=self.search_path,
            depth=self.depth,
        )
        try:
            return await BACKENDS[agent.backend.value].run(job)
        finally:
            cache.trim()
            remove_tree(exchange / "out")  # the agent may have put anything beside its report

    def _used_entries(self, agent: AgentConfig) -> frozenset[int]:
        """Return the script entries that finished dispatches of this run took (from disk, so that a resume agrees)."""
        used: set[int] = set()
        for result in self.results.values():
            role = result.dispatch.rpartition("-")[2]
            same = next((self.config.agent(r).script == agent.script for r in self.roles if r.value == role), False)
            if same and result.entry is not None:
                used.add(result.entry)
        return frozenset(used)

    # --- what came back ----------------------------------------------------------------------------------------

    def _result(
        self,
        record: DispatchRecord,
        request: Request,
        answer: AgentResult,
        gate: GateResult,
        escape: Escape | None,
    ) -> DispatchResult:
        signal, complaint, report = judge(request, answer, gate, escape.why if escape is not None else None)
        legal = () if escape is not None else gate.changes
        changes = tuple(self._stored(change) for change in legal)
        tree = self.repository.build_tree(record.base_tree, (_tree_change(change) for change in changes))
        return DispatchResult(
            dispatch=record.dispatch,
            signal=signal,
            complaint=complaint,
            report=report,
            report_sha256=hashlib.sha256(to_json(report, pretty=False).encode()).hexdigest() if report else None,
            gate="admitted" if gate.admitted and escape is None else "rejected",
            base_tree=record.base_tree,
            # After a rejection the agent goes on from the legal part, offending paths put back (architecture 6, Gate).
            tree=None if escape is not None else tree,
            changes=changes,
            dropped=gate.dropped,
            violations=tuple(ViolationRecord(path=v.path, rule=v.rule, why=v.why) for v in gate.violations),
            notes=gate.notes,
            usage=Usage(
                cost_usd=answer.usage.cost_usd,
                input_tokens=answer.usage.input_tokens,
                output_tokens=answer.usage.output_tokens,
                model=answer.usage.model,
            ),
            checkpoint="ready" if signal is None else "partial" if changes else "failed",
            entry=answer.entry,
        )

    def _stored(self, change: AdmittedChange) -> ChangeRecord:
        if change.content is None:
            return ChangeRecord(path=change.path, kind="deleted")
        oid = self.repository.write_blob(change.content, change.path, self.checkout.tree)
        kind = "added" if change.kind is ChangeKind.ADDED else "modified"
        return ChangeRecord(path=change.path, kind=kind, mode=change.mode, oid=oid, sha256=change.sha256)


def _write_list(spec: RoleSpec, request: Request) -> tuple[WriteGrant, ...]:
    match spec.writes:
        case Writes.TASK:
            grants = request.grants
        case Writes.TESTS:
            grants = request.tests.files if request.tests is not None else ()
        case _:
            grants = ()
    return tuple(WriteGrant(path=grant.path, action=grant.action) for grant in grants)


def _tree_change(change: ChangeRecord) -> TreeChange:
    if change.oid is None or change.mode is None:
        return TreeChange(change.path, None)
    return TreeChange(change.path, Entry(change.path, change.mode, change.oid))
