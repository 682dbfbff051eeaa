"""Reads a configured `go test` command: which arguments are kept, and which redfirst replaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.languages.protocol import Environment

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


@dataclass
class _Reader:
    build: list[str] = field(default_factory=list[str])
    test: list[str] = field(default_factory=list[str])
    patterns: list[str] = field(default_factory=list[str])
    rest: tuple[str, ...] = ()
    refused: str = ""

    def read(self, words: Sequence[str]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word in {"-args", "--args"}:
                self.rest = ("-args", *words[at:])
                return
            if not word.startswith("-") or word == "-":
                self.patterns.append(word)
                continue
            name, _, value = word.lstrip("-").partition("=")
            name = name.removeprefix("test.")
            whole = [word]
            if not value and "=" not in word and name not in _SWITCHES:
                whole += words[at : at + 1]
                at += 1
            self._flag(name, whole)

    def _flag(self, name: str, whole: list[str]) -> None:
        if name in _REFUSED:
            self.refused = self.refused or name
        elif name in _BUILD:
            self.build += whole
        elif name not in _OURS:
            self.test += whole


def parse(arguments: Sequence[str]) -> GoTest | str:
    """Return the kept arguments of `go test`, or a sentence on the one that cannot be measured.

    What chooses tests, limits their time, counts or prints is left out without a word: each run decides it. Flags that
    would run another program, or make none, are refused.
    """
    reader = _Reader()
    reader.read(arguments)
    if reader.refused:
        return f"go test -{reader.refused} cannot be measured; leave it out of the command"
    return GoTest(tuple(reader.build), tuple(reader.test), tuple(reader.patterns), reader.rest)


def arguments_of(env: Environment) -> GoTest:
    """Return the kept arguments in an environment's command."""
    arguments = parse(env.command[2:])
    return arguments if isinstance(arguments, GoTest) else GoTest()
