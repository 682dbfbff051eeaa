"""Finds type and syntax errors: with `tsc --noEmit` where the project has it, else with node's parser."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from pipeline.judge.evidence.observation import CollectionError, Fault, Frame, Missing, Observation, Raised, RunState
from pipeline.testing.languages.javascript import faults
from pipeline.testing.languages.javascript.project import TYPED, Project
from pipeline.testing.languages.javascript.records import PrintedLine, Thrown
from pipeline.testing.languages.javascript.syntax import is_own, module_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.testing.languages.javascript.measuring import BoxedRunner
    from pipeline.testing.languages.javascript.sources import Sources
    from pipeline.testing.languages.runners.sessions import Session

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
class Plan:
    """The programs to run: the compiler for each configuration, and a parser for scripts that no compiler reads."""

    jobs: tuple[dict[str, object], ...]
    compiled: int
    unread: tuple[str, ...]
    command: tuple[str, ...]


def plan(runner: BoxedRunner, project: Project, sources: Sources) -> Plan:
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
    return Plan((*tsc, *check), len(tsc), tuple(unread), command)


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


def observe(plan: Plan, session: Session, sources: Sources, root: str, *, timed_out: bool) -> Observation:
    """Return the errors in the sources as an observation of collection errors."""
    if session.fault:
        return Observation(state=RunState.UNUSABLE, detail=session.fault, command=plan.command)
    printed = session.of(PrintedLine)
    if timed_out or session.is_late or len(printed) < len(plan.jobs):
        return Observation(
            state=RunState.TIMED_OUT, detail="checking the types reached the time limit", command=plan.command
        )
    errors: dict[str, CollectionError] = {}
    tail = ""
    for one in printed:
        found = _compiled(one, sources) if one.job < plan.compiled else _parsed(one, sources, root)
        if one.job < plan.compiled:
            tail += one.stdout + one.stderr
        found = list(found)
        if one.code and not found and not _LINE.search(one.stdout):
            detail = f"the check did not run: {(one.stderr or one.stdout).strip()[:400]}"
            return Observation(state=RunState.UNUSABLE, detail=detail, command=plan.command, tail=tail[-_MOST * 40 :])
        for error in found:
            errors.setdefault(error.path, error)
    for error in _unread(plan.unread, sources):
        errors.setdefault(error.path, error)
    wrong = tuple(errors[path] for path in sorted(errors))[:_MOST]
    said = tail or "\n".join(f"{one.path}: {one.fault.raised.message}" for one in wrong)
    return Observation(state=RunState.COMPLETE, collection_errors=wrong, command=plan.command, tail=said[-8_000:])


def _compiled(printed: PrintedLine, sources: Sources) -> Iterator[CollectionError]:
    for line in printed.stdout.splitlines():
        found = _LINE.match(line)
        if found is not None and "node_modules" in found["path"].split("/"):
            continue  # what others declare is not the project's to mend
        if found is not None:
            yield _error(
                found["path"], int(found["line"]), int(found["column"]), found["code"], found["message"], sources
            )
        elif (whole := _GLOBAL.match(line)) is not None:
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


def _unread(paths: Iterable[str], sources: Sources) -> Iterator[CollectionError]:
    for path in paths:
        line = sources.error_in(path)
        if line is not None:
            raised = Raised(kind="SyntaxError", message="cannot be parsed")
            frame = Frame(path=path, line=line)
            yield CollectionError(path=path, fault=Fault(chain=(raised,), frames=(frame,)))
