"""Measures JavaScript tests in the box with node:test, vitest or jest; packages are shown inside the view.

What a run came to is recorded by scripts of ours (`js`) that node, vitest or jest load. Tested code shares its process
with some of them, so that a record cannot be written by accident or by printing, but code that sets out to change
node's own functions can make its tests pass; with vitest and jest it can also imitate what their processes tell each
other.

For node's own runner there is one job for each test file, as `node --test` has it; vitest and jest start processes by
themselves and are one job.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from pipeline.judge.evidence.observation import CollectionError, Fault, Frame, Missing, Observation, Raised, RunState
from pipeline.process import Completed, Mount
from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.environments.installed import installed_mounts, linked
from pipeline.testing.languages.javascript import faults
from pipeline.testing.languages.javascript.command import Invocation, Unknown, of_words
from pipeline.testing.languages.javascript.environment import home_of
from pipeline.testing.languages.javascript.project import TYPED, Project, files_with_tests, read_project
from pipeline.testing.languages.javascript.records import ADAPTER, PrintedLine, Run, Thrown
from pipeline.testing.languages.javascript.sources import Sources
from pipeline.testing.languages.javascript.syntax import is_own, module_key
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.sessions import Session, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.testing.languages.protocol import Environment, Measurement, Selection


async def run_tests(asked: Measurement) -> Observation:
    """Run the selected tests and return the observation; the cache is not used.

    Every test file is loaded in any case, so the ids of the observation are complete. After a test that took its
    process along, or that had to be ended with it, the rest is run in another one, a few times.

    Raises:
        BoxError: the box did not work.
    """
    invocation, project = _invocation(asked.env), read_project(asked.view.host)
    command = _shown(invocation, asked.selection)
    if isinstance(project, str):
        return Observation(state=RunState.UNUSABLE, detail=project, command=command)
    sources = Sources.read(asked.view.host, project.names)
    own = [path for path in sources.files if not path.startswith(tuple(f"{one}/" for one in asked.elsewhere))]
    files = files_with_tests(own, invocation.arguments) if invocation.runner == "node" else []
    with scratch_folder("node") as place:
        runner = BoxedRunner.under(place, asked)
        jobs = runner.jobs(invocation, files, project.folders_with(invocation.runner, sources.files))
        request = {"do": "test", "jobs": jobs, "per_test_s": asked.per_test_timeout_s}
        session, completed = await runner.run(request)
    run = Run(sources, session, invocation, asked, str(place))
    return run.observe(timed_out=completed.timed_out, command=command)


async def check_types(asked: Measurement) -> Observation:
    """Return type errors (`tsc --noEmit`) and syntax errors as collection errors; nothing is run.

    Raises:
        BoxError: the box did not work.
    """
    project = read_project(asked.view.host)
    if isinstance(project, str):
        return Observation(state=RunState.UNUSABLE, detail=project)
    sources = Sources.read(asked.view.host, project.names)
    with scratch_folder("node") as place:
        runner = BoxedRunner.under(place, asked)
        checks = type_checks(runner, project, sources)
        session, completed = await runner.run({"do": "check", "jobs": checks.jobs})
    return observed_errors(checks, session, sources, str(asked.view.workspace), timed_out=completed.timed_out)


def _invocation(env: Environment) -> Invocation:
    """Return the test command in the environment's own command.

    `find_environment` has made it, so that it names a runner.
    """
    invocation = of_words(("node", *env.command[1:]), {})
    assert not isinstance(invocation, Unknown), env.command  # noqa: S101  (see above)
    return invocation


def _shown(invocation: Invocation, selection: Selection | None) -> tuple[str, ...]:
    """Return the command that a person would type for the same test files; long lists are cut."""
    entries = (selection and (selection.ids or selection.files)) or ()
    paths = sorted({entry.partition("::")[0] for entry in entries})
    start = {"node": ("node", *invocation.flags, "--test"), "vitest": ("npx", "vitest", "run"), "jest": ("npx", "jest")}
    return (*start[invocation.runner], *shortened(paths or invocation.arguments))


_SCRIPTS: Final = "js"
_RESTARTS: Final = {"node": 3, "vitest": 10, "jest": 10}
"""The most new processes that are started after tests ended theirs, by runner."""


@dataclass(frozen=True)
class BoxedRunner(sessions.BoxedRunner):
    """The place of one measurement; `shared` is a folder that the runners share."""

    shared: BoxFolder

    @classmethod
    def under(cls, place: Path, asked: Measurement) -> BoxedRunner:
        """Create the place: our programs, and the runners' shared folder."""
        shared = BoxFolder.made(place, "shared")
        program = sessions.lay_out(place, "javascript")
        shutil.copytree(Path(__file__).with_name(_SCRIPTS), program / _SCRIPTS)
        shared.add("cache")
        return cls(asked, program, shared)

    @property
    def node(self) -> str:
        """Return the path of node."""
        return self.asked.env.command[0]

    def script(self, name: str) -> str:
        """Return the path of one of our scripts in the box."""
        return str(self.program / _SCRIPTS / name)

    async def run(self, request: Mapping[str, object]) -> tuple[Session, Completed]:
        """Run our program with a request, and return the records that it wrote."""
        path = {"PATH": devshell.box_path(self.asked.env.prefix, self.asked.env.variables)}
        shared = self.shared.mount(self.shared.path)
        packages = tuple(Mount(folder.path, folder.path) for folder in self.asked.env.installed)
        if self.asked.box.maps_paths:
            packages = installed_mounts(self.asked.env, self.asked.view)
        with linked(self.asked.env, self.asked.view, isolated=self.asked.box.maps_paths):
            return await self.ask(request, self.asked.timeout_s, ADAPTER, path, shared, packages=packages)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of the tests."""
        path = devshell.box_path(self.asked.env.prefix, self.asked.env.variables)
        programs = [str(self.asked.view.workspace / folder.relative / ".bin") for folder in self.asked.env.installed]
        return {**self.asked.env.variables, **self.asked.env.test_variables, "PATH": ":".join((*programs, path))}

    def program_job(self, argv: Sequence[str], stdin: str = "") -> dict[str, object]:
        """Return the job that runs a program which is no test."""
        return {
            "argv": [self.node, *argv],
            "cwd": str(self.asked.view.workspace),
            "env": self.variables,
            "stdin": stdin,
        }

    def jobs(self, invocation: Invocation, files: Sequence[str], projects: Sequence[str]) -> list[dict[str, object]]:
        """Return the jobs that run the tests.

        Args:
            invocation: How the project does it.
            files: The test files, for node's own runner.
            projects: Packages with a configuration of their own, for the others.
        """
        selection = self.asked.selection
        request: dict[str, Any] = {
            "root": str(self.asked.view.workspace),
            "ids": None if selection is None or selection.ids is None else sorted(selection.ids),
            "files": None if selection is None or selection.files is None else sorted(selection.files),
            "trace": self.asked.trace,
        }
        if invocation.runner == "node":
            return [self._file(invocation, path, request) for path in files]
        more = {
            "arguments": list(invocation.arguments),
            "cache": str(self.shared.path / "cache"),
            "home": os.path.normpath(self.asked.view.workspace / home_of(invocation.runner, self.asked.env.installed)),
            "projects": list(projects),
        }
        main = "vitest_main.mjs" if invocation.runner == "vitest" else "jest_main.cjs"
        argv = [self.node, *invocation.flags, self.script(main)]
        return [self._job(argv, {**request, **more}, invocation, hints=str(self.shared.path / "hints.jsonl"))]

    def _file(self, invocation: Invocation, path: str, request: dict[str, Any]) -> dict[str, object]:
        ids: list[str] | None = request["ids"]
        mine = ids if ids is None else [entry for entry in ids if entry.startswith(f"{path}::")]
        if request["files"] is not None and path not in request["files"]:
            mine = []
        ours = self.script("node_test.cjs")
        reporter = [f"--test-reporter={ours}", "--test-reporter-destination=stdout"]
        argv = [self.node, "--require", ours, *invocation.flags, *reporter, str(self.asked.view.workspace / path)]
        return self._job(argv, {**request, "ids": mine, "files": None, "path": path}, invocation, path=path)

    def _job(
        self, argv: list[str], request: dict[str, Any], invocation: Invocation, *, path: str = "", hints: str = ""
    ) -> dict[str, object]:
        return {
            "argv": argv,
            "cwd": str(self.asked.view.workspace),
            "env": {**self.variables, "REDFIRST_CHANNEL": "3,4"},
            "request": request,
            "file": path,
            "hints": hints or None,
            "restarts": _RESTARTS[invocation.runner],
        }


COMPILER: Final = "node_modules/typescript/bin/tsc"
_CONFIG: Final = "tsconfig.json"
_LINE: Final = re.compile(
    r"(?m)^(?P<path>[^\s(][^(]*)\((?P<line>\d+),(?P<column>\d+)\): error (?P<code>TS\d+): (?P<message>.*)$"
)
_GLOBAL: Final = re.compile(r"^error (?P<code>TS\d+): (?P<message>.*)$")
_KINDS: Final = {
    "ImportError": frozenset({"TS2305", "TS2306", "TS2307", "TS2613", "TS2614", "TS2724", "TS7016"}),
    "AttributeError": frozenset({"TS2339", "TS2551"}),
    "NameError": frozenset({"TS2304", "TS2552", "TS2503", "TS18004"}),
}
_MEMBER: Final = (
    re.compile(r"Module '\"(?P<owner>[^\"']+)\"' has no exported member(?: named)? '(?P<name>[^']+)'"),
    re.compile(r"Cannot find module '(?P<module>[^']+)'"),
    re.compile(r"Property '(?P<name>[^']+)' does not exist on type '(?P<type>[^']+)'"),
    re.compile(r"Cannot find (?:name|namespace) '(?P<name>[^']+)'"),
)
_BUILT_IN: Final = frozenset({"string", "number", "boolean", "bigint", "symbol", "never", "unknown", "void", "{}"})
_MOST: Final = 200


_WRONG: Final = TypeAdapter(list[dict[str, object]])


@dataclass(frozen=True)
class TypeChecks:
    """The programs to run: the compiler for each configuration, and a parser for scripts that no compiler reads."""

    jobs: tuple[dict[str, object], ...]
    compiled: int
    unread: tuple[str, ...]
    command: tuple[str, ...]


def type_checks(runner: BoxedRunner, project: Project, sources: Sources) -> TypeChecks:
    """Return the programs to run for a project."""
    scripts = [path for path in sorted(sources.code) if not path.endswith((".d.ts", ".d.mts", ".d.cts"))]
    configs = _configs(sources) if any((one.path / "typescript").exists() for one in runner.asked.env.installed) else []
    plain = [path for path in scripts if not path.endswith(TYPED) and not sources.has_markup(path)]
    # what only a bundler can read, and typed sources without a compiler, are read by our own parser
    unread = [path for path in scripts if path not in plain and (not configs or not path.endswith(TYPED))]
    tsc = [runner.program_job([COMPILER, "--noEmit", "--pretty", "false", "-p", config]) for config in configs]
    asked = {
        "root": str(runner.asked.view.workspace),
        "files": [{"path": path, "kind": _kind(path, project)} for path in plain],
    }
    flags = ["--experimental-vm-modules", "--no-warnings", runner.script("check.cjs")]
    check = [runner.program_job(flags, json.dumps(asked))] if plain else []
    command = ("npx", "tsc", "--noEmit") if configs else ("node", "--check", *plain[:1])
    return TypeChecks((*tsc, *check), len(tsc), tuple(unread), command)


def _configs(sources: Sources) -> list[str]:
    """Return the TypeScript configuration at the top, else those of the packages."""
    if _CONFIG in sources.files:
        return [_CONFIG]
    return sorted(path for path in sources.files if PurePosixPath(path).name == _CONFIG and path.count("/") <= 2)  # noqa: PLR2004  (packages/a/tsconfig.json)


def _kind(path: str, project: Project) -> str:
    """Return how node reads a file: by its ending, else by the nearest package.json, else as either."""
    ending = PurePosixPath(path).suffix
    if ending in {".mjs", ".cjs"}:
        return "module" if ending == ".mjs" else "commonjs"
    folders = [str(parent) for parent in PurePosixPath(path).parents]
    nearest = next(
        (project.packages[at] for at in ("" if one == "." else one for one in folders) if at in project.packages), None
    )
    return "module" if nearest is not None and nearest.type == "module" else "either"


def observed_errors(
    checks: TypeChecks, session: Session, sources: Sources, root: str, *, timed_out: bool
) -> Observation:
    """Return the errors in the sources as an observation of collection errors."""
    if session.fault:
        return Observation(state=RunState.UNUSABLE, detail=session.fault, command=checks.command)
    printed = session.of(PrintedLine)
    if timed_out or session.is_late or len(printed) < len(checks.jobs):
        return Observation(
            state=RunState.TIMED_OUT, detail="checking the types reached the time limit", command=checks.command
        )
    errors: dict[str, CollectionError] = {}
    tail = ""
    for one in printed:
        is_compiled = one.job < checks.compiled
        found = list(_compiled(one, sources) if is_compiled else _parsed(one, sources, root))
        tail += one.stdout + one.stderr if is_compiled else ""
        if one.code and not found and not _LINE.search(one.stdout):
            detail = f"the check did not run: {(one.stderr or one.stdout).strip()[:400]}"
            return Observation(state=RunState.UNUSABLE, detail=detail, command=checks.command, tail=tail[-_MOST * 40 :])
        for error in found:
            errors.setdefault(error.path, error)
    for path in checks.unread:
        line = sources.error_in(path)
        if line is not None:
            raised = Raised(kind="SyntaxError", message="cannot be parsed")
            fault = Fault(chain=(raised,), frames=(Frame(path=path, line=line),))
            errors.setdefault(path, CollectionError(path=path, fault=fault))
    wrong = tuple(errors[path] for path in sorted(errors))[:_MOST]
    said = tail or "\n".join(f"{one.path}: {one.fault.raised.message}" for one in wrong)
    return Observation(state=RunState.COMPLETE, collection_errors=wrong, command=checks.command, tail=said[-8_000:])


def _compiled(printed: PrintedLine, sources: Sources) -> Iterator[CollectionError]:
    for text in printed.stdout.splitlines():
        found = _LINE.match(text)
        if found is not None and "node_modules" in found["path"].split("/"):
            continue  # what others declare is not the project's to mend
        if found is not None:
            line, column = int(found["line"]), int(found["column"])
            yield _error(found["path"], line, column, found["code"], found["message"], sources)
        elif (whole := _GLOBAL.match(text)) is not None:
            yield _error(_CONFIG, 1, 1, whole["code"], whole["message"], sources)


def _error(path: str, line: int, column: int, code: str, message: str, sources: Sources) -> CollectionError:
    clean = path.removeprefix("./")
    bases = tuple(name for name, codes in _KINDS.items() if code in codes)
    if code.startswith("TS1") and len(code) == len("TS1005"):
        bases = ("SyntaxError",)
    frame = Frame(path=clean, line=line, function=sources.function_at(clean, line, column))
    raised = Raised(kind=code, bases=bases, message=message)
    return CollectionError(
        path=clean, fault=Fault(chain=(raised,), frames=(frame,), missing=_missing(clean, message, sources))
    )


def _missing(path: str, message: str, sources: Sources) -> Missing | None:
    found = next(filter(None, (pattern.search(message) for pattern in _MEMBER)), None)
    if found is None:
        return None
    said = found.groupdict()
    if module := said.get("module"):
        return Missing(name=module_key(path, module, sources.files), first_party=is_own(module, sources.packages))
    owner = said.get("owner") or ""
    kind = said.get("type") or ""
    own = is_own(owner, sources.packages) if owner else kind not in _BUILT_IN and '"' not in kind
    known = module_key(path, owner, sources.files) if owner else kind.removeprefix("typeof ")
    return Missing(name=said["name"], owner=known, first_party=own and "Cannot find" not in message)


def _parsed(printed: PrintedLine, sources: Sources, root: str) -> Iterator[CollectionError]:
    try:
        wrong = _WRONG.validate_json(printed.stdout)
    except ValidationError:
        return
    for one in wrong:
        path = str(one["path"])
        thrown = Thrown.model_validate(one["error"])
        yield CollectionError(path=path, fault=faults.of_thrown(thrown, sources, root, test=path, loading=True))
