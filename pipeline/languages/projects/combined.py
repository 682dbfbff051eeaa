"""A repository with more than one language: each with its own runner, environment and limits, one observation of all.

Every runner is shown the files as they are, and not as the tests of another left them: whoever runs second gets a copy
that was made before the first began. Else the code of one language could change what is measured of the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.evidence.observation import RunState
from pipeline.languages.projects import merging
from pipeline.languages.projects.copies import cache_of, own_views
from pipeline.languages.projects.same_collection import Memory, contents, key_of
from pipeline.languages.projects.subfolder import Rooted
from pipeline.languages.protocol import (
    Cache,
    Environment,
    Missing,
    Selection,
    Settings,
    Toolchain,
    View,
)
from pipeline.languages.sources.stubs import Stubbed, StubFault
from pipeline.languages.table import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.evidence.red_classes import Symbol
    from pipeline.process import Box
    from pipeline.views.renames import Traces


@dataclass(frozen=True)
class Part:
    """One of several toolchains: its limits and command, and whether the user asks for it or it was only recognised."""

    toolchain: Toolchain
    table: Settings
    asked: bool = False

    @property
    def name(self) -> str:
        """Return the toolchain's name."""
        return self.toolchain.name


@dataclass(frozen=True)
class SeveralEnvironment(Environment):
    """The environments of the parts by name, and why others are left out; `command` and `prefix` are the first's."""

    parts: Mapping[str, Environment] = field(default_factory=dict[str, Environment])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


class Several:
    """The `Toolchain` of a repository in which several recognise a project."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Put the parts together; their order is that in which they are run and named."""
        self.parts = tuple(parts)
        self.name = SEVERAL.join(part.name for part in parts)
        self.sources = tuple(dict.fromkeys(end for part in parts for end in part.toolchain.sources))
        self.stub = _listed(parts, lambda toolchain: f"`{toolchain.stub}`")
        self.stub_like = re.compile("|".join(f"(?:{part.toolchain.stub_like.pattern})" for part in parts))
        self.install_hint = _listed(parts, lambda toolchain: toolchain.install_hint)
        self._memory = Memory()
        self._first_tree: str | None = None

    def detect(self, worktree: Path) -> bool:
        """Return whether any of them recognises the project."""
        return any(part.toolchain.detect(worktree) for part in self.parts)

    def for_files(self, paths: Iterable[str]) -> tuple[Toolchain, ...]:
        """Return the toolchains whose sources are among these files, in order."""
        wanted = tuple(paths)
        return tuple(one for one in toolchains_in(self) if any(owns(one, path) for path in wanted))

    async def find_environment(
        self, worktree: Path, main: Path, configured: tuple[str, ...] | None, state: Path, search_path: str
    ) -> Environment | Missing:
        """Return the environments of the parts, each with the command of its own table; see `find_environments`."""
        del configured  # there is one for each part
        return await self.find_environments(lambda _: worktree, main, state, search_path)

    async def find_environments(
        self, worktree_of: Callable[[Part], Path], main: Path, state: Path, search_path: str
    ) -> SeveralEnvironment | Missing:
        """Return the environments of the parts.

        One that is missing is left out, unless the user asks for it, or no other is there.

        Args:
            worktree_of: The checkout in which a part's environment is looked for.
            main: The main checkout of the same repository.
            state: A private folder.
            search_path: PATH of the user.
        """
        found: dict[str, Environment] = {}
        left_out: dict[str, str] = {}
        for part in self.parts:
            command = part.table.command
            answer = await part.toolchain.find_environment(worktree_of(part), main, command, state, search_path)
            if isinstance(answer, Environment):
                found[part.name] = answer
            elif part.asked:
                return Missing(f"{part.name}, which the configuration asks for: {answer.sentence}")
            else:
                left_out[part.name] = answer.sentence
        if not found:
            return Missing(" ".join(f"{name}: {why}" for name, why in left_out.items()))
        first = next(iter(found.values()))
        return SeveralEnvironment(
            command=first.command,
            mounts=tuple(dict.fromkeys(mount for env in found.values() for mount in env.mounts)),
            prefix=first.prefix,
            versions=tuple(version for env in found.values() for version in env.versions),
            parts=found,
            left_out=left_out,
        )

    async def run_tests(
        self,
        box: Box,
        view: View,
        env: Environment,
        selection: Selection | None = None,
        *,
        trace: bool = False,
        timeout_s: float = 900.0,  # noqa: ARG002  (each part has its own)
        per_test_timeout_s: float | None = None,  # noqa: ARG002
        cache: Cache | None = None,
    ) -> Observation:
        """Run what of the selection is a part's, and list the tests of every part.

        Raises:
            BoxError: the box did not work.
        """
        files = contents(view.host)
        others = {part.name: set(self.sources).difference(part.toolchain.sources) for part in self._there(env)}
        keys = {name: key_of(files, foreign) for name, foreign in others.items()}
        seen = {name: self._memory.unrun(name, key, selection) for name, key in keys.items()}
        running = [part for part in self._there(env) if seen[part.name] is None]
        traces: list[Traces] = []
        with own_views(box, view, [part.name for part in running], traces.append) as views:
            for part in running:
                shown = await part.toolchain.run_tests(
                    box,
                    views[part.name],
                    environment_of(env, part.toolchain),
                    selection,
                    trace=trace,
                    timeout_s=part.table.timeout_s,
                    per_test_timeout_s=part.table.test_timeout_s,
                    cache=cache_of(cache, part.name),
                )
                self._memory.remember(part.name, keys[part.name], shown)
                seen[part.name] = self._explained(part, shown)
        shown = merging.together({name: each for name, each in seen.items() if each is not None})
        return shown.model_copy(
            update={
                "touched": tuple({path for each in traces for path in each.touched}),
                "moved": tuple({path for each in traces for path in each.renames.moved}),
                "tail": "\n".join(filter(None, (shown.tail, *(each.renames.unwatched for each in traces)))),
            }
        )

    async def check_types(
        self,
        box: Box,
        view: View,
        env: Environment,
        *,
        timeout_s: float = 900.0,  # noqa: ARG002  (see run_tests)
    ) -> Observation:
        """Return what does not compile or type-check, of all parts.

        Raises:
            BoxError: the box did not work.
        """
        seen: dict[str, Observation] = {}
        for part in self._there(env):
            inner = environment_of(env, part.toolchain)
            seen[part.name] = await part.toolchain.check_types(box, view, inner, timeout_s=part.table.timeout_s)
        return merging.together(seen)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner of this file's language collects it; of a file of none, whether any does."""
        asked = self.for_files([path]) or toolchains_in(self)
        return any(toolchain.is_test_path(path, observation) for toolchain in asked)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests of any part run."""
        return any(part.toolchain.is_control_path(path) for part in self.parts)

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the bodies of the symbols replaced by a failure; each by its language."""
        changed: dict[str, str] = {}
        unknown: list[set[Symbol]] = []
        for toolchain, (mine,) in self._shares(files):
            stubbed = toolchain.stub_symbols(mine, [symbol for symbol in symbols if _is_for(symbol, toolchain)])
            changed |= stubbed.files
            unknown.append({*stubbed.unknown, *(symbol for symbol in symbols if not _is_for(symbol, toolchain))})
        nowhere = set(symbols).intersection(*unknown)
        return Stubbed(changed, tuple(symbol for symbol in symbols if symbol in nowhere))

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        """Return what the files define at their top level that they did not define before."""
        shares = self._shares(before, after)
        return tuple(symbol for toolchain, (old, new) in shares for symbol in toolchain.introduced(old, new))

    def stub_faults(
        self, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
    ) -> tuple[StubFault, ...]:
        """Return what a stub pass changed that is no stub; a symbol without a path counts in every language."""
        return tuple(
            fault
            for toolchain, (old, new) in self._shares(before, after)
            for fault in toolchain.stub_faults(old, new, [one for one in symbols if _is_for(one, toolchain)])
        )

    def first_tree(self, tree: str) -> str:
        """Return the tree that was measured first in this process, to compare others with; `tree` if none was."""
        self._first_tree = self._first_tree or tree
        return self._first_tree

    def missing_for(self, env: Environment, paths: Iterable[str]) -> str | None:
        """Return why these files cannot be measured: one is a source of a part that is left out. None if they can."""
        wanted, missing = tuple(paths), left_out(env)
        for part in self.parts:
            mine = next((path for path in wanted if owns(part.toolchain, path)), None)
            if part.name in missing and mine is not None:
                return f"{mine} is measured with {part.name}, which is missing here: {missing[part.name]}"
        return None

    def _there(self, env: Environment) -> list[Part]:
        known = environments_in(env)
        return [part for part in self.parts if part.name in known]

    def _explained(self, part: Part, seen: Observation) -> Observation:
        """Return the observation; where a part that nobody asked for does not work, with how to leave it out."""
        if part.asked or seen.state is not RunState.UNUSABLE:
            return seen
        others = ", ".join(f'"{other.name}"' for other in self.parts if other is not part)
        hint = f"(if this is no project to measure, leave it out: [toolchains] use = [{others}])"
        return seen.model_copy(update={"detail": f"{seen.detail} {hint}".strip()})

    def _shares(self, *files: Mapping[str, str]) -> Iterator[tuple[Toolchain, tuple[dict[str, str], ...]]]:
        """Yield the toolchains that own any of the files, with what they own."""
        for toolchain in self.for_files(path for each in files for path in each):
            yield toolchain, tuple({p: text for p, text in each.items() if owns(toolchain, p)} for each in files)


def owns(toolchain: Toolchain, path: str) -> bool:
    """Return whether a file is a source of the toolchain's project: by its ending and, if it has one, by its folder."""
    return path.endswith(toolchain.sources) and (not isinstance(toolchain, Rooted) or toolchain.place.has(path))


def toolchains_in(toolchain: Toolchain) -> tuple[Toolchain, ...]:
    """Return the toolchains that measure the repository: the parts of several, else the one."""
    return tuple(part.toolchain for part in toolchain.parts) if isinstance(toolchain, Several) else (toolchain,)


def for_files(toolchain: Toolchain, paths: Iterable[str]) -> tuple[Toolchain, ...]:
    """Return the toolchains whose sources are among these files; where there is only one, that one."""
    return toolchain.for_files(paths) if isinstance(toolchain, Several) else (toolchain,)


def environment_of(env: Environment, toolchain: Toolchain) -> Environment:
    """Return the environment of one of several toolchains; where there is only one, the environment itself.

    Raises:
        KeyError: the toolchain is left out.
    """
    return env.parts[toolchain.name] if isinstance(env, SeveralEnvironment) else env


def environments_in(env: Environment) -> Mapping[str, Environment]:
    """Return the environments of several toolchains by name; where there is only one, that one without a name."""
    return env.parts if isinstance(env, SeveralEnvironment) else {"": env}


def left_out(env: Environment) -> Mapping[str, str]:
    """Return the toolchains that are left out, by name, each with why."""
    return env.left_out if isinstance(env, SeveralEnvironment) else {}


def _is_for(symbol: Symbol, toolchain: Toolchain) -> bool:
    return not symbol.path or owns(toolchain, symbol.path)


def _listed(parts: Sequence[Part], said: Callable[[Toolchain], str]) -> str:
    return "; ".join(f"{part.name}: {said(part.toolchain)}" for part in parts)
