"""Combines a repository's projects to one toolchain: several languages, or one in a subfolder.

Every runner is shown the files as they are, and not as the tests of another left them: whoever runs second gets a copy
that was made before the first began. Else the code of one language could change what is measured of the other.

Evidence needs every id of every runner, also when only tests of one language are to run: a test that is not listed is
one that was removed. Listing the tests of a compiled language means compiling them, so it is done again only where
something changed that can matter to it. Nothing here claims that a test ran: outcomes are not remembered.

Which toolchains measure a repository, marker files say, or `[toolchains]`. At the top every toolchain is asked. One
that recognises nothing there is looked for one and two folders further down, and is taken where exactly one project of
it is found: `web/package.json` beside a Python package. Below a project the language says what is measured from its own
folder (`Toolchain.members`): members of a workspace, folders with settings of their own. A single toolchain at the top
is that toolchain itself, without anything around it.
"""

from __future__ import annotations

import hashlib
import posixpath
import shutil
from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pipeline.judge.evidence.observation import Observation, RunState
from pipeline.process import Box, Mount
from pipeline.sandbox.views.manifest import EntryKind, Manifest, scan
from pipeline.sandbox.views.renames import Traces, watched_folders
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.projects import merging
from pipeline.testing.languages.projects.merging import collected
from pipeline.testing.languages.projects.project import Project
from pipeline.testing.languages.protocol import Cache, Environment, Lookup, Measurement, Missing, Selection, View
from pipeline.testing.languages.sources.stubs import OldBodies, Stubbed, StubFault
from pipeline.testing.languages.table import LANGUAGES, SEVERAL
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.config.model import Toolchains
    from pipeline.judge.evidence.red_classes import Symbol
    from pipeline.testing.languages.protocol import Members


def cache_of(cache: Cache | None, name: str) -> Cache | None:
    """Return the part of a cache that belongs to one runner."""
    if cache is None:
        return None
    folder = cache.folder / _as_name(name)
    folder.mkdir(exist_ok=True)
    return replace(cache, folder=folder)


@contextmanager
def own_views(box: Box, view: View, names: Iterable[str], told: Callable[[Traces], None]) -> Generator[dict[str, View]]:
    """Yield a view for each runner: the view itself for the first, copies made in advance for the others.

    Args:
        box: Where they run.
        view: The files as they are.
        names: The runners, in the order in which they run.
        told: Hears at the end what was done to each of the copies.
    """
    with scratch_folder("several") as place, ExitStack() as traced:
        views: dict[str, View] = {}
        for name in names:
            if not views:
                views[name] = view
                continue
            copy = place / _as_name(name)
            shutil.copytree(view.host, copy, symlinks=True)
            shown = box.inside(copy, view.workspace)
            views[name] = View(Mount(copy, shown, writable=view.mount.writable))
            traced.enter_context(_traced_copy(copy, told))
        yield views


def _as_name(name: str) -> str:
    """Return a runner's name as that of one folder: of one project among several it has a path in it."""
    return quote(name, safe="")


@contextmanager
def _traced_copy(copy: Path, told: Callable[[Traces], None]) -> Generator[None]:
    base = scan(copy)
    folders = {path for path, entry in base.items() if entry.kind is EntryKind.FOLDER}
    with watched_folders(copy, folders) as renames:
        yield
    after = scan(copy, base, trusting=True)
    changed = {path for path in base.keys() | after.keys() if after.get(path) is not base.get(path)}
    is_folder = {path for path in changed if (after.get(path) or base[path]).kind is EntryKind.FOLDER}
    told(Traces(frozenset(changed - is_folder), renames))


_MOST: Final = 8
"""The most trees remembered for each runner: a task alternates between few."""


class Memory:
    """The collected tests of a repository's runners, in this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Observation] = OrderedDict()

    def unrun(self, name: str, key: str, selection: Selection | None) -> Observation | None:
        """Return a runner's observation for the selection without a run; None if it is unknown or a test would run.

        Args:
            name: The runner.
            key: What it was shown, from `key_of`.
            selection: What is to run.
        """
        known = self._known.get((name, key))
        if known is None or selection is None or any(selection.has(r.id, r.path) for r in known.records.values()):
            return None
        return known

    def remember(self, name: str, key: str, seen: Observation) -> None:
        """Store the collected tests of a run that may be used."""
        if seen.state is RunState.COMPLETE and seen.environment_problem is None:
            self._known[name, key] = collected(seen)
            self._known.move_to_end((name, key))
            mine = [entry for entry in self._known if entry[0] == name]
            for entry in mine[:-_MOST]:
                del self._known[entry]


def key_of(files: Manifest, others: Collection[str]) -> str:
    """Return a digest of the files that a runner reads: all but other languages' sources.

    Args:
        files: From `scan`.
        others: The endings of sources of other languages, which it does not read.
    """
    whole = hashlib.sha256()
    for path in sorted(files):
        if not path.endswith(tuple(others)):
            whole.update(f"{path}\0{files[path]!r}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


@dataclass(frozen=True)
class SeveralEnvironment(Environment):
    """The environments of projects by key, and why others are missing; `command` and `prefix` are the first's."""

    parts: Mapping[str, Environment] = field(default_factory=dict[str, Environment])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


class Projects(Toolchain):
    """The toolchain of a repository with several projects, or with one in a subfolder.

    `first_tree` is the tree that was measured first in this process.
    """

    def __init__(self, projects: Sequence[Project]) -> None:
        """Combine the projects; they run and are named in this order."""
        self.projects = tuple(_beside_others(one, projects) for one in projects)
        self.name = SEVERAL.join(one.name for one in projects)
        self.sources = tuple(dict.fromkeys(end for one in projects for end in one.toolchain.sources))
        self.first_tree: str | None = None
        self._memory = Memory()

    def detect(self, worktree: Path) -> bool:
        """Return whether any toolchain recognises its project."""
        return any(one.toolchain.detect(worktree / one.folder) for one in self.projects)

    def for_files(self, paths: Iterable[str]) -> tuple[Project, ...]:
        """Return the projects with sources among these files, in order; a single project is always returned."""
        wanted = tuple(paths)
        return tuple(one for one in self.projects if any(self._is_of(one, path) for path in wanted) or self._is_single)

    async def find_environments(self, lookup_of: Callable[[str], Lookup]) -> Environment | Missing:
        """Return the environments of the projects, looked for where *lookup_of* says for each.

        One that is missing is left out, unless the user asks for it, or no other is there.

        Args:
            lookup_of: Where the environment of a toolchain is looked for, by its name.
        """
        if self._is_single:
            return await self.projects[0].find_environment(lookup_of(self.projects[0].name))
        parts: dict[str, Environment] = {}
        left_out: dict[str, str] = {}
        for project in self.projects:
            answer = await project.find_environment(lookup_of(project.name))
            if isinstance(answer, Environment):
                parts[project.key] = answer
            elif project.asked:
                return Missing(f"{project.key}, which the configuration asks for: {answer.sentence}")
            else:
                left_out[project.key] = answer.sentence
        if not parts:
            return Missing(" ".join(f"{name}: {why}" for name, why in left_out.items()))
        first = next(iter(parts.values()))
        return SeveralEnvironment(
            command=first.command,
            mounts=tuple(dict.fromkeys(mount for env in parts.values() for mount in env.mounts)),
            prefix=first.prefix,
            versions=tuple(version for env in parts.values() for version in env.versions),
            parts=parts,
            left_out=left_out,
        )

    async def run_tests(self, asked: Measurement) -> Observation:
        """Run each project's share of the selection, and list the tests of every project.

        Raises:
            BoxError: the box did not work.
        """
        if self._is_single:
            return await self.projects[0].measure(asked, self.projects[0].toolchain.run_tests)
        measurements = self._measurements(asked)
        files = scan(asked.view.host)
        keys = {one.key: key_of(files, set(self.sources).difference(one.toolchain.sources)) for one, _ in measurements}
        seen = {name: self._memory.unrun(name, key, asked.selection) for name, key in keys.items()}
        running = [(one, measurement) for one, measurement in measurements if seen[one.key] is None]
        traces: list[Traces] = []
        with own_views(asked.box, asked.view, [one.key for one, _ in running], traces.append) as views:
            for project, measurement in running:
                inner = replace(measurement, view=views[project.key], cache=cache_of(asked.cache, project.key))
                shown = await project.measure(inner, project.toolchain.run_tests)
                self._memory.remember(project.key, keys[project.key], shown)
                seen[project.key] = self._explained(project, shown)
        shown = merging.together({name: each for name, each in seen.items() if each is not None})
        return shown.model_copy(
            update={
                "touched": tuple({path for each in traces for path in each.touched}),
                "moved": tuple({path for each in traces for path in each.renames.moved}),
                "tail": "\n".join(filter(None, (shown.tail, *(each.renames.unwatched for each in traces)))),
            }
        )

    async def check_types(self, asked: Measurement) -> Observation:
        """Return the compile and type errors of all projects.

        Raises:
            BoxError: the box did not work.
        """
        return merging.together(
            {
                one.key: await one.measure(measurement, one.toolchain.check_types)
                for one, measurement in self._measurements(asked)
            }
        )

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner of the file's project collects it; for other files, whether any runner does."""
        asked = self.for_files([path]) or self.projects
        return any(one.place.has(path) and one.toolchain.is_test_path(path, observation) for one in asked)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how any project's tests run, also from above its folder."""
        return any(one.toolchain.is_control_path(path) for one in self.projects)

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the symbols' bodies replaced by stubs, each in its language."""
        changed: dict[str, str] = {}
        unknown = set(symbols)
        for project, own, (mine,) in self._shares(symbols, files):
            stubbed = project.toolchain.stub_symbols(mine, project.symbols_inside(own))
            changed |= {project.place.outer_path(path): text for path, text in stubbed.files.items()}
            unknown &= {*project.symbols_outside(stubbed.unknown), *set(symbols).difference(own)}
        return Stubbed(changed, tuple(symbol for symbol in symbols if symbol in unknown))

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        """Return the symbols that the files newly define at their top level."""
        shares = self._shares((), before, after)
        found = (one.symbols_outside(one.toolchain.introduced(old, new)) for one, _, (old, new) in shares)
        return tuple(symbol for symbols in found for symbol in symbols)

    def with_old_bodies(self, before: Mapping[str, str], after: Mapping[str, str], *, kept: bool) -> OldBodies:
        """Return the files with the bodies that their functions had before, each in its language."""
        files: dict[str, str] = {}
        changed: list[Symbol] = []
        for project, _, (old, new) in self._shares((), before, after):
            found = project.toolchain.with_old_bodies(old, new, kept=kept)
            files |= {project.place.outer_path(path): text for path, text in found.files.items()}
            changed += project.symbols_outside(found.changed)
        return OldBodies(files, tuple(changed))

    def stub_faults(
        self, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
    ) -> tuple[StubFault, ...]:
        """Return the changes of a stub pass that are no stubs; a symbol without a path counts in every language."""
        return tuple(
            replace(fault, path=project.place.outer_path(fault.path))
            for project, own, (old, new) in self._shares(symbols, before, after)
            for fault in project.toolchain.stub_faults(old, new, project.symbols_inside(own))
        )

    @property
    def _is_single(self) -> bool:
        return len(self.projects) == 1

    def _is_of(self, project: Project, path: str) -> bool:
        return self._is_single or project.owns(path)

    def _measurements(self, asked: Measurement) -> list[tuple[Project, Measurement]]:
        """Return each project that has an environment with its measurement and its own limits."""
        pairs = ((one, environment_of(asked.env, one)) for one in self.projects)
        return [(one, one.limited(replace(asked, env=env))) for one, env in pairs if env is not None]

    def _explained(self, project: Project, seen: Observation) -> Observation:
        """Return the observation; if an unrequested project fails, with advice on leaving it out."""
        if (project.asked and project.alone) or seen.state is not RunState.UNUSABLE:
            return seen
        others = dict.fromkeys(f'"{other.name}"' for other in self.projects if other.name != project.name)
        if project.alone:
            instead = f"[toolchains] use = [{', '.join(others)}]"
        else:
            named = (f'"{one.folder or "."}"' for one in self.projects if one.name == project.name and one != project)
            instead = f"[toolchains.{project.name}] folder = [{', '.join(named)}]"
        hint = f"(if this is no project to measure, leave it out: {instead})"
        return seen.model_copy(update={"detail": f"{seen.detail} {hint}".strip()})

    def _shares(
        self, symbols: Sequence[Symbol], *files: Mapping[str, str]
    ) -> Iterator[tuple[Project, list[Symbol], tuple[dict[str, str], ...]]]:
        """Yield the projects that own any of the files, with their symbols and files relative to their folder."""
        for project in self.for_files(path for each in files for path in each):
            own = [symbol for symbol in symbols if not symbol.path or self._is_of(project, symbol.path)]
            shares = ({path: text for path, text in each.items() if self._is_of(project, path)} for each in files)
            yield project, own, tuple(map(project.files_inside, shares))


def _beside_others(project: Project, projects: Sequence[Project]) -> Project:
    """Return the project with what it has to know of the others of its toolchain."""
    folders = [one.folder for one in projects if one.name == project.name]
    inside = (folder for folder in folders if folder != project.folder and project.place.has(f"{folder}/"))
    return replace(project, nested=tuple(sorted(inside)), alone=len(folders) == 1)


async def find_environment(toolchain: Toolchain, lookup_of: Callable[[str], Lookup]) -> Environment | Missing:
    """Return the environment of a repository's tests; `lookup_of` gives the folders to search, by toolchain name."""
    if isinstance(toolchain, Projects):
        return await toolchain.find_environments(lookup_of)
    return await Project(toolchain).find_environment(lookup_of(toolchain.name))


def projects_in(toolchain: Toolchain) -> tuple[Project, ...]:
    """Return the projects of a toolchain; a simple toolchain is one project."""
    return toolchain.projects if isinstance(toolchain, Projects) else (Project(toolchain),)


def for_files(toolchain: Toolchain, paths: Iterable[str]) -> tuple[Toolchain, ...]:
    """Return the toolchains with sources among these files; a single toolchain is always returned."""
    if isinstance(toolchain, Projects):
        return tuple(one.toolchain for one in toolchain.for_files(paths))
    return (toolchain,)


def environment_of(env: Environment, project: Project) -> Environment | None:
    """Return the environment of one of several projects, None if it is missing; of a single project, *env* itself."""
    return env.parts.get(project.key) if isinstance(env, SeveralEnvironment) else env


def left_out(env: Environment) -> Mapping[str, str]:
    """Return the projects without an environment, by key, with the reasons."""
    return env.left_out if isinstance(env, SeveralEnvironment) else {}


def first_tree(toolchain: Toolchain, tree: str) -> str:
    """Return the tree measured first in this process, for comparison; `tree` if it is the first."""
    if not isinstance(toolchain, Projects):
        return tree
    toolchain.first_tree = toolchain.first_tree or tree
    return toolchain.first_tree


def missing_for(toolchain: Toolchain, env: Environment, paths: Iterable[str]) -> str | None:
    """Return why these files cannot be measured: the project of one has no environment; None if they can."""
    wanted, missing = tuple(paths), left_out(env)
    for project in projects_in(toolchain):
        mine = next((path for path in wanted if project.owns(path)), None)
        if project.key in missing and mine is not None:
            return f"{mine} is measured with {project.key}, which is missing here: {missing[project.key]}"
    return None


TOP: Final = "."
"""What the top of the repository is called in a list of folders."""

_DEPTH: Final = 2
_DEEPEST: Final = 4
"""How far down a folder may be that says itself how its tests are run."""
_NOT_OURS: Final = frozenset(
    {
        # other people's code, and what is made of ours
        "node_modules", "vendor", "third_party", "third-party", "thirdparty", "external", "deps", "target", "dist",
        "build", "out", "venv", "env", "site-packages", "bower_components",
        # projects that are data: of tests, of documentation, to be copied
        "test", "tests", "spec", "specs", "testdata", "test-data", "test_data", "fixture", "fixtures", "__fixtures__",
        "snapshots", "corpus", "example", "examples", "sample", "samples", "demo", "demos", "template", "templates",
        "doc", "docs", "bench", "benches", "benchmark", "benchmarks", "fuzz",
    }
)  # fmt: skip


def choose(worktree: Path, tables: Toolchains, tracked: Iterable[str] = ()) -> Toolchain | None:
    """Return the toolchain of a repository, combined if there are several; None if none recognises it.

    Args:
        worktree: The checkout to look into.
        tables: `[toolchains]`: `use` names those to take, in order; `folder` says where a project is.
        tracked: The paths that the repository has, for projects below the top; what git ignores is nobody's project.
    """
    names = tuple(LANGUAGES) if tables.use is None else tuple(dict.fromkeys(map(str, tables.use)))
    paths = tuple(tracked)
    found = [project for name in names for project in _chosen(name, worktree, tables, paths)]
    if len(found) == 1 and not found[0].folder:
        return found[0].toolchain
    if len(found) > 1:
        found = [
            replace(one, table=tables.settings_of(one.name), asked=tables.is_configured(one.name)) for one in found
        ]
    return Projects(found) if found else None


def looked_for() -> str:
    """Return the marker files of all languages in words."""
    return "; ".join(f"{name}: {', '.join(language.marks)}" for name, language in LANGUAGES.items())


def folder_below(name: str, tracked: Iterable[str]) -> str | None:
    """Return the folder of a toolchain's only project one or two levels below the top; None if it is not alone.

    A project inside another one belongs to that: the members of a workspace.
    """
    folders = {posixpath.dirname(path) for path in tracked if posixpath.basename(path) in LANGUAGES[name].marks}
    near = {folder for folder in folders if 0 < len(_parts(folder)) <= _DEPTH and _is_ours(folder)}
    outer = [folder for folder in near if not any(folder.startswith(f"{other}/") for other in near)]
    return outer[0] if len(outer) == 1 else None


def _chosen(name: str, worktree: Path, tables: Toolchains, tracked: tuple[str, ...]) -> list[Project]:
    toolchain, named = LANGUAGES[name].toolchain, tables.settings_of(name).folder
    if named is not None:
        folders = ("" if one == TOP else one for one in dict.fromkeys((named,) if isinstance(named, str) else named))
        return [Project(toolchain, folder, home=_home(name, worktree, folder, tracked)) for folder in folders]
    is_top = toolchain.detect(worktree)
    top = "" if is_top else folder_below(name, tracked) or ""
    found = _members(name, worktree, top, tracked)
    below = [Project(toolchain, folder, home=top if is_top or top else None) for folder in found.folders]
    if (is_top or top) and (found.top_counts or not below):
        return [Project(toolchain, top), *below]
    return below or ([Project(toolchain)] if tables.use is not None else [])


def _members(name: str, worktree: Path, top: str, tracked: tuple[str, ...]) -> Members:
    toolchain = LANGUAGES[name].toolchain
    return toolchain.members(worktree, top, tracked, lambda one: len(_parts(one)) <= _DEEPEST and _is_ours(one))


def _home(name: str, worktree: Path, folder: str, tracked: tuple[str, ...]) -> str | None:
    """Return the nearest folder above that declares a folder as member of its workspace, None if none does."""
    parts = _parts(folder)
    above = ("/".join(parts[:depth]) for depth in reversed(range(len(parts))))
    return next((top for top in above if folder in _members(name, worktree, top, tracked).workspace), None)


def _parts(folder: str) -> list[str]:
    return folder.split("/") if folder else []


def _is_ours(folder: str) -> bool:
    return not any(part.startswith(".") or part.casefold() in _NOT_OURS for part in _parts(folder))
