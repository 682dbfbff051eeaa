"""Reads how a project starts its tests from a command line: the runner, and the options that matter.

A command line is the configured one, or the `test` script of a package.json, which may call other scripts. What it does
beside running tests (linting, building, coverage) is not done in a measurement.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Runner = Literal["node", "vitest", "jest"]

OTHERS: Final = frozenset({
    "ava", "bun", "cypress", "deno", "jasmine", "karma", "lab", "mocha", "playwright", "qunit", "tap", "tape", "uvu",
    "wtr",
})  # fmt: skip
"""Test runners that cannot be measured."""
MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
STARTERS: Final = frozenset({"npx", "bunx", "cross-env", "cross-env-shell", "env", "dotenv", "c8", "nyc"})
ENTRIES: Final[Mapping[Runner, tuple[str, ...]]] = {
    "vitest": ("node_modules", "vitest", "vitest.mjs"),
    "jest": ("node_modules", "jest", "bin", "jest.js"),
}

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VALUED: Final = frozenset(
    {
        "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
        "--experimental-default-type", "--input-type", "--disable-warning", "--env-file-if-exists",
    }
)  # fmt: skip
"""Options of node that are kept together with their value in the next word."""
_DROPPED: Final = ("--test", "--watch", "--experimental-test-coverage", "--inspect")
"""Options of node that are dropped: they choose, show or debug tests."""
_DROPPED_VALUED: Final = frozenset(
    {"--test-reporter", "--test-reporter-destination", "--test-name-pattern", "--test-skip-pattern",
     "--test-concurrency", "--test-timeout", "--test-shard"}
)  # fmt: skip
_DEPTH: Final = 4


@dataclass(frozen=True)
class Invocation:
    """A command that runs tests: `flags` are node's, `arguments` the runner's, `variables` are set for it."""

    runner: Runner
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def words(self) -> tuple[str, ...]:
        """Return the words after `node` that run all tests as the project does, in the project's folder."""
        if self.runner == "node":
            return (*self.flags, "--test", *self.arguments)
        run = ("run",) if self.runner == "vitest" else ()
        return (*self.flags, "/".join(ENTRIES[self.runner]), *run, *self.arguments)


@dataclass(frozen=True)
class Unknown:
    """A command line whose runner cannot be measured, with its name; empty if none is recognised."""

    name: str = ""


def of_script(text: str, scripts: Mapping[str, str], depth: int = 0) -> Invocation | Unknown:
    """Return the test command in a script's text; a script that only calls another one is followed."""
    found = Unknown()
    for words in _commands(text):
        one = of_words(words, scripts, depth)
        if isinstance(one, Invocation):
            return one
        found = found if found.name else one
    return found


def of_words(words: Sequence[str], scripts: Mapping[str, str], depth: int = 0) -> Invocation | Unknown:
    """Return the test command in the words of one command.

    Args:
        words: The words of the command.
        scripts: The scripts of the package.json, for `npm test`.
        depth: How many scripts were followed already.
    """
    variables, rest = _without_starters(words)
    if not rest:
        return Unknown()
    program, arguments = PurePosixPath(rest[0]).name, rest[1:]
    match program:
        case "vitest":
            return Invocation("vitest", (), tuple(arguments[arguments[:1] == ["run"] :]), variables)
        case "jest":
            return Invocation("jest", (), tuple(arguments), variables)
        case "tsx" if "--test" in arguments:
            flags, further = _node_flags(arguments)
            return Invocation("node", ("--import", "tsx", *flags), tuple(further), variables)
        case "node" | "nodejs":
            return _of_node(arguments, variables, scripts, depth)
        case _ if program in MANAGERS:
            return _of_manager(arguments, variables, scripts, depth)
        case _:
            return Unknown(program if program in OTHERS else "")


def is_start(words: Sequence[str]) -> bool:
    """Return whether a test run may begin with these words, after the wrapper of a development shell."""
    name = PurePosixPath(words[0]).name
    return name in {"node", "nodejs", "vitest", "jest", "tsx"} or name in MANAGERS or name in STARTERS - {"env"}


def _of_node(
    arguments: Sequence[str], variables: dict[str, str], scripts: Mapping[str, str], depth: int
) -> Invocation | Unknown:
    flags, further = _node_flags(arguments)
    if further and "--test" not in arguments:
        script = PurePosixPath(further[0])
        name = {"vitest.mjs": "vitest", "jest.js": "jest", "vitest": "vitest", "jest": "jest"}.get(script.name)
        if name is not None:
            inner = of_words([name, *further[1:]], scripts, depth)
            return replace(inner, flags=tuple(flags), variables=variables) if isinstance(inner, Invocation) else inner
        return Unknown()
    return Invocation("node", tuple(flags), tuple(further), variables) if "--test" in arguments else Unknown()


def _of_manager(
    arguments: Sequence[str], variables: dict[str, str], scripts: Mapping[str, str], depth: int
) -> Invocation | Unknown:
    """Return the test command behind `npm test`, `pnpm run unit`, `yarn vitest` and the like."""
    names = [word for word in arguments if not word.startswith("-") and word not in {"run", "run-script", "exec"}]
    if not names or depth >= _DEPTH:
        return Unknown()
    name = {"t": "test", "tst": "test"}.get(names[0], names[0])
    extra = arguments[arguments.index("--") + 1 :] if "--" in arguments else ()
    if name in scripts:
        found = of_script(scripts[name], scripts, depth + 1)
    else:
        found = of_words(arguments[arguments.index(names[0]) :], scripts, depth + 1)
        extra = ()
    if isinstance(found, Unknown):
        return found
    return replace(found, variables={**found.variables, **variables}, arguments=(*found.arguments, *extra))


def _without_starters(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables before a command, and the command without programs that only start it."""
    variables: dict[str, str] = {}
    rest = list(words)
    while rest:
        assigned = _ASSIGNMENT.fullmatch(rest[0])
        if assigned is not None:
            variables[assigned[1]] = assigned[2]
        elif PurePosixPath(rest[0]).name not in STARTERS:
            break
        else:
            while len(rest) > 1 and rest[1].startswith("-"):
                rest.pop(1)
        rest.pop(0)
    return variables, rest


def _node_flags(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return node's options that decide how code is loaded, and the words after all options."""
    flags: list[str] = []
    waiting = list(arguments)
    while waiting and waiting[0].startswith("-"):
        flag = waiting.pop(0)
        if flag in _DROPPED_VALUED:
            waiting = waiting[1:]
        elif flag in _VALUED:
            flags += [flag, *waiting[:1]]
            waiting = waiting[1:]
        elif not flag.startswith(_DROPPED):
            flags.append(flag)
    return flags, [word for word in waiting if word not in {"--test", "--watch"}]


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the commands of a script as words; text that shells split differently is left out."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("&|;"):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        return
    yield words
