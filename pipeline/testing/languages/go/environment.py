"""Finds the Go that runs a project's tests, on the host, before any agent ran.

It is the `go` on PATH, which is asked once, in the root, where no file of a project chooses another one. The box is
shown that toolchain's own folder. Where a `go.mod` asks for a newer one, `go test` says so.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from pipeline.programs import locate
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.protocol import Environment, Lookup, Missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SWITCHES: Final = frozenset(
    {
        "a", "asan", "benchmem", "c", "cover", "failfast", "fullpath", "i", "json", "linkshared", "modcacherw", "msan",
        "n", "race", "short", "trimpath", "v", "work", "x", "buildvcs", "artifacts",
    }
)  # fmt: skip
"""Flags without a value; any other flag takes the next word, unless it contains a `=`."""

_BUILD: Final = frozenset(
    {
        "a", "asan", "asmflags", "buildmode", "buildvcs", "compiler", "gccgoflags", "gcflags", "installsuffix",
        "ldflags", "linkshared", "mod", "modcacherw", "modfile", "msan", "overlay", "p", "pgo", "pkgdir", "race",
        "tags", "trimpath",
    }
)  # fmt: skip
"""Flags on how packages are compiled, which `go list` and `go test` must both be given."""

_OURS: Final = frozenset(
    {
        "bench", "benchmem", "benchtime", "count", "cover", "covermode", "coverpkg", "coverprofile", "failfast",
        "fullpath", "fuzz", "fuzztime", "json", "list", "run", "shuffle", "timeout", "v", "vet", "work", "x",
    }
)  # fmt: skip
"""Flags on which tests run, how long, and the output: set anew for each run."""

_REFUSED: Final = frozenset({"c", "exec", "i", "n", "o", "outputdir", "toolexec", "C"})


@dataclass(frozen=True)
class GoTest:
    """The arguments of `go test` that are kept, by purpose.

    Args:
        build: For everything that compiles.
        test: For `go test` alone.
        patterns: The packages; none for all of every module.
        rest: `-args` and what follows, for the tests themselves.
    """

    build: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


def parse(arguments: Sequence[str]) -> GoTest | str:
    """Return the kept arguments of `go test`, or a sentence on the one that cannot be measured.

    What chooses tests, limits their time, counts or prints is left out without a word: each run decides it. Flags that
    would run another program, or make none, are refused.
    """
    build, test, patterns = list[str](), list[str](), list[str]()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name = word.lstrip("-").partition("=")[0].removeprefix("test.")
        if word in {"-args", "--args"}:
            return GoTest(tuple(build), tuple(test), tuple(patterns), ("-args", *words))
        if not word.startswith("-") or word == "-":
            patterns.append(word)
            continue
        if name in _REFUSED:
            return f"go test -{name} cannot be measured; leave it out of the command"
        whole = [word, *(words[:1] if "=" not in word and name not in _SWITCHES else ())]
        del words[: len(whole) - 1]
        if name not in _OURS:
            (build if name in _BUILD else test).extend(whole)
    return GoTest(tuple(build), tuple(test), tuple(patterns))


def arguments_of(env: Environment) -> GoTest:
    """Return the kept arguments in an environment's command."""
    arguments = parse(env.command[2:])
    return arguments if isinstance(arguments, GoTest) else GoTest()


HINT: Final = "install Go (https://go.dev/dl, or the package `golang-go`)"

_ASK_TIMEOUT_S: Final = 60.0
_OLDEST: Final = (1, 19)
_VERSION: Final = re.compile(r"go(\d+)\.(\d+)")
_ASKED: Final = (
    "GOROOT", "GOVERSION", "GOMODCACHE", "GOFLAGS", "GOEXPERIMENT", "GOWORK", "CGO_ENABLED", "CC",
)  # fmt: skip
_UNWANTED: Final = ("-exec", "-toolexec", "-json", "-n", "-o", "-c")
"""Flags that GOFLAGS may not contain: they change the output that is read, or start programs that the box does not
show."""

_TOLD: Final = TypeAdapter(dict[str, str])
_OFFLINE: Final[Mapping[str, str]] = {
    "GOENV": "off",
    "GOTOOLCHAIN": "local",
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "GOVCS": "*:off",
}


async def find_environment(lookup: Lookup) -> Environment | Missing:
    """Return the environment of the project's tests, or why it is missing."""
    found = await devshell.started_by("go", lookup)
    if isinstance(found, Missing):
        return found
    shell, arguments = found
    if isinstance(refused := parse(arguments), str):
        return Missing(f"[toolchains.go] command: {refused}.")
    program = shutil.which("go", path=shell.search_path)
    if program is None:
        return Missing(f"No go was found on PATH: {HINT}.{devshell.advice(lookup.worktree, 'go', 'test')}")
    told = await _told(program, shell)
    version = _VERSION.match(told.get("GOVERSION", ""))
    if version is None:
        return Missing(f"{program} cannot be started, or is no Go: {HINT}.")
    if (int(version[1]), int(version[2])) < _OLDEST:
        return Missing(f"{program} is {told['GOVERSION']}; go{_OLDEST[0]}.{_OLDEST[1]} or newer is needed: {HINT}.")
    prefix = Path(told["GOROOT"])
    own = prefix / "bin" / "go"
    go = locate(str(own) if os.access(own, os.X_OK) else program)
    return Environment(
        command=go.argv("test", *arguments),
        # of what was fetched the sources, without credentials
        mounts=shell.mounts_for(go, prefix, Path(told.get("GOMODCACHE") or "/nowhere")),
        prefix=prefix,
        versions=(told["GOVERSION"],),
        variables={**shell.variables_for(prefix), **_OFFLINE, **_settings(told, shell.search_path)},
    )


def _settings(told: Mapping[str, str], search_path: str) -> dict[str, str]:
    """Return the user's go settings that decide how tests are compiled."""
    flags = [flag for flag in told.get("GOFLAGS", "").split() if flag.partition("=")[0] not in _UNWANTED]
    compiler = shutil.which(told.get("CC", "cc").split(" ")[0], path=search_path)
    found = {
        # there may be no repository where the box shows the files, or another one
        "GOFLAGS": " ".join((*flags, "-buildvcs=false")),
        "GOMODCACHE": told.get("GOMODCACHE", ""),
        "CGO_ENABLED": told.get("CGO_ENABLED", "0") if compiler else "0",
        "GOEXPERIMENT": told.get("GOEXPERIMENT", ""),
        "GOWORK": "off" if told.get("GOWORK") == "off" else "",
    }
    return {name: value for name, value in found.items() if value}


async def _told(program: str, shell: devshell.Shell) -> Mapping[str, str]:
    """Return the settings of go; nothing is fetched."""
    words = (program, "env", "-json", *_ASKED)
    environ = {**shell.variables, "GOPROXY": "off", "GOSUMDB": "off"}
    said = await devshell.ask(words, shell.search_path, limit_s=_ASK_TIMEOUT_S, environ=environ)
    try:
        return _TOLD.validate_json(said or "")
    except ValidationError:
        return {}
