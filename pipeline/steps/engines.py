"""Other programs that put faults into code: mutmut and cargo-mutants, where the project has them.

They run in the box, on a copy, under the time limit of the probe; a project that asks for one and does not have it is
told so, and nothing is done in its place. What they say is advice for @check and decides nothing: the tested code runs
in the same box, and could write their results as well.
"""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.box_folder import BoxFolder, private_place
from pipeline.config.probes import Engine
from pipeline.dispatch.redaction import redact
from pipeline.errors import UserError
from pipeline.languages.sources.faults.foreign import cargo_mutants_lines, functions, mutmut_place, mutmut_results
from pipeline.measure.measuring import UnmeasurableError
from pipeline.measure.mutating import changed_sources
from pipeline.measure.probe_evidence import MutationEvidence, Survivor
from pipeline.process import WORKSPACE, Command, Mount, SandboxError
from pipeline.programs import locate
from pipeline.steps.tools import kit_of
from pipeline.toml_text import toml_table
from pipeline.trees import Files, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeline.evidence.observation import Layout
    from pipeline.languages.sources.faults.foreign import Found
    from pipeline.measure.measuring import Apparatus
    from pipeline.measure.mutating import Allowance, Judges, Source
    from pipeline.process import Completed
    from pipeline.programs import Program
    from pipeline.steps.tools import Kit

_PROGRAMS: Final = {Engine.MUTMUT: "mutmut", Engine.CARGO_MUTANTS: "cargo-mutants"}
_HINTS: Final = {
    Engine.MUTMUT: "install mutmut 3 beside pytest (`pip install mutmut`)",
    Engine.CARGO_MUTANTS: "install it (`cargo install cargo-mutants`)",
}
_OUTPUT: Final = 2_000_000
_LONGEST: Final = 200
_SHOW_S: Final = 20.0
_KILLED: Final = frozenset({"killed", "timeout", "suspicious", "segfault", "caught by type check"})
_SURVIVED: Final = frozenset({"survived", "no tests"})
_LISTS: Final = ("caught.txt", "timeout.txt", "missed.txt", "unviable.txt")


async def engine_probe(
    ctx: Apparatus, engine: Engine, base: str, tree: str, judges: Judges, layout: Layout, allowance: Allowance
) -> MutationEvidence:
    """Return what another program says of the tests; the arguments are those of `mutation_probe`.

    Raises:
        UnmeasurableError: the box does not work.
    """
    kit = await kit_of(ctx)
    program = _program(engine, kit, ctx.search_path)
    if isinstance(program, str):
        return MutationEvidence(engine=engine.value, not_tried=None, trouble=program)
    begun = anyio.current_time()
    sources = changed_sources(ctx, base, tree, layout)
    if not sources or not allowance.mutants:
        return MutationEvidence(engine=engine.value)
    at_work = _AtWork(ctx, kit, program, sources, begun + allowance.seconds, allowance)
    try:
        if engine is Engine.MUTMUT:
            found = await at_work.mutmut(tree, judges)
        else:
            found = await at_work.cargo_mutants(tree, ctx.repository.patch(base, tree, *sources))
    except SandboxError as error:
        raise UnmeasurableError(f"the sandbox did not work: {error}") from error
    return found.model_copy(update={"seconds": round(anyio.current_time() - begun, 1)})


def _program(engine: Engine, kit: Kit, search_path: str) -> Program | str:
    """Return the program, or in words that the project does not have it.

    mutmut runs the project's tests in its own process, so that only one of the project's environment will do.
    """
    name, own = _PROGRAMS[engine], ":".join(map(str, kit.folders))
    try:
        return locate(name, own if engine is Engine.MUTMUT else f"{own}:{search_path}")
    except UserError:
        where = f"in {own}" if engine is Engine.MUTMUT else "on PATH"
        return f'[probes] engine = "{engine.value}", and there is no {name} {where}: {_HINTS[engine]}'


@dataclass(frozen=True)
class _AtWork:
    """One engine on the changed files of one candidate."""

    ctx: Apparatus
    kit: Kit
    program: Program
    sources: Mapping[str, Source]
    deadline: float
    allowance: Allowance

    @property
    def left(self) -> float:
        return max(1.0, self.deadline - anyio.current_time())

    async def mutmut(self, tree: str, judges: Judges) -> MutationEvidence:
        wanted = {path: functions(source.content, source.lines) for path, source in self.sources.items()}
        patterns = sorted({each.pattern for found in wanted.values() for each in found})
        if not patterns:
            return MutationEvidence(engine=Engine.MUTMUT.value)
        with self.ctx.copies.lent(tree) as folder:
            _configure(folder, sorted(self.sources), sorted(judges.own))
            jobs = str(self.allowance.jobs)
            ran = await self._run(folder, ("run", "--max-children", jobs, *patterns), self.left)
            results = mutmut_results(await self._said(folder, ("results", "--all", "true")))
            survived = [name for name, status in results.items() if status in _SURVIVED]
            shown: list[Found] = []
            for name in survived[: self.allowance.mutants]:
                text = await self._said(folder, ("show", name))
                places = (mutmut_place(name, text, path, source.content) for path, source in self.sources.items())
                shown += [place for place in places if place is not None][:1]
        trouble = "" if results else f"mutmut said nothing: {_end_of(ran)}"
        killed = sum(status in _KILLED for status in results.values())
        return self._evidence(Engine.MUTMUT, shown, killed, trouble=trouble)

    async def cargo_mutants(self, tree: str, patch: str) -> MutationEvidence:
        with self.ctx.copies.lent(tree) as folder, private_place("redfirst-mutants-") as place:
            changed, said = place / "changed.diff", BoxFolder.made(place, "said")
            changed.write_text(patch, encoding="utf-8", errors="replace")
            per_test = str(self.ctx.config.toolchains.of("cargo").test_timeout_s)
            words = (
                "mutants", "--in-place", "--in-diff", str(changed), "--output", str(said.path),
                "--baseline", "skip", "--timeout", per_test, "--no-shuffle", "--colors", "never", "--no-times",
            )  # fmt: skip
            ran = await self._run(folder, words, self.left, Mount(changed, changed), said.mount(said.path))
            lists = {name: _text(said, f"mutants.out/{name}") for name in _LISTS}
        found = {name: list(cargo_mutants_lines(text)) for name, text in lists.items() if text is not None}
        trouble = "" if found else f"cargo-mutants left no results: {_end_of(ran)}"
        killed = len(found.get("caught.txt", ())) + len(found.get("timeout.txt", ()))
        unfit = len(found.get("unviable.txt", ()))
        return self._evidence(Engine.CARGO_MUTANTS, found.get("missed.txt", ()), killed, unfit, trouble)

    def _evidence(
        self, engine: Engine, missed: Iterable[Found], killed: int, unfit: int = 0, trouble: str = ""
    ) -> MutationEvidence:
        ours = [each for each in missed if each.path in self.sources and each.line in self.sources[each.path].lines]
        return MutationEvidence(
            engine=engine.value,
            killed=killed,
            survivors=tuple(map(self._survivor, ours[: self.allowance.mutants])),
            unfit=unfit,
            not_tried=None,
            trouble=self._quiet(trouble),
        )

    def _survivor(self, found: Found) -> Survivor:
        lines = self.sources[found.path].content.splitlines()
        source = lines[found.line - 1].strip().decode("utf-8", "replace")[:_LONGEST]
        return Survivor(path=found.path, line=found.line, what=self._quiet(found.what), source=self._quiet(source))

    def _quiet(self, text: str) -> str:
        return redact(text.encode(), self.ctx.secrets).decode("utf-8", "replace")

    async def _said(self, folder: Path, words: Sequence[str]) -> str:
        return (await self._run(folder, words, _SHOW_S)).stdout.decode("utf-8", "replace")

    async def _run(self, folder: Path, words: Sequence[str], limit_s: float, *mounts: Mount) -> Completed:
        workspace = self.ctx.sandbox.inside(folder, WORKSPACE)
        view = Mount(folder, workspace, writable=True)
        tools = self.kit.tools(view)
        shown = (view, *tools.mounts, *self.program.mounts, *mounts)
        return await self.ctx.sandbox.run(
            Command(
                argv=self.program.argv(*words),
                cwd=workspace,
                mounts=tuple(dict.fromkeys(shown)),
                env={**tools.env, "NO_COLOR": "1"},
                timeout_s=limit_s,
                output_limit=_OUTPUT,
            )
        )


def _configure(folder: Path, changed: Sequence[str], tests: Sequence[str]) -> None:
    """Tell mutmut in the copy what to change and which tests to run, where the project does not say so itself."""
    settings = configparser.ConfigParser(interpolation=None)
    try:
        content = Files(folder).read("pyproject.toml", _OUTPUT)
        shared = toml_table((content or b"").decode())
        if "mutmut" in shared.get("tool", {}):
            return
    except (OSError, ValueError):
        pass  # then mutmut does not read it either
    own = folder / "setup.cfg"
    if os.path.lexists(own):
        try:  # a link may lead to a device, or out of the copy
            settings.read_string(read_regular(own, _OUTPUT).decode())
        except (OSError, ValueError, configparser.Error):
            return
    if settings.has_section("mutmut"):
        return
    tops = sorted({path.split("/")[0] for path in changed})
    lines = {"source_paths": tops, "only_mutate": changed, "pytest_add_cli_args_test_selection": tests}
    text = "".join(f"{key} =\n" + "".join(f"    {value}\n" for value in values) for key, values in lines.items())
    with own.open("a", encoding="utf-8") as file:
        file.write(f"\n[mutmut]\n{text}")


def _text(folder: BoxFolder, path: str) -> str | None:
    """Return a list that cargo-mutants left; code of the project ran there."""
    content = Files(folder.path).read(path, _OUTPUT)
    return None if content is None else content.decode("utf-8", "replace")


def _end_of(completed: Completed) -> str:
    lines = (completed.stderr + b"\n" + completed.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:_LONGEST] if lines else "it printed nothing"
