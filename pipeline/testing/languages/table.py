"""The table of languages. A new language is a folder beside this file, and a line here.

What stands here is plain: names, endings, files. What reads sources or runs tests is a module of the language's folder,
which is loaded when a project, or a file, of that language is met: each parser is a shared library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from pipeline.judge.policy.listed_commands import ListedCommand
    from pipeline.testing.languages.protocol import Checkouts
    from pipeline.testing.languages.toolchain import Toolchain

Part = Literal["forgery", "fault_sites", "test_regions", "compile_time", "environment"]
"""The name of a module that a language may have. `languages.sources` calls those that read sources, and has their
protocols."""


@dataclass(frozen=True)
class Language:
    """The facts about a language that are known without importing its modules.

    Args:
        name: What it is called in `[toolchains.NAME]`.
        package: The folder of its modules; `toolchain` in it has `TOOLCHAIN`.
        sources: The endings of its files.
        marks: The files by which a project is recognised, and what a person is told was looked for.
        parts: The modules that the folder has for reading its sources.
        manifests: Files beside its sources that say what of them runs while they are compiled.
        further: Endings of files that are its code, too, though no runner knows them.
        texts: Endings of texts whose examples its runner tests.
        examples: A pattern for what of documentation is a test, or checks something in one.
        runners: The programs that start its tests. What else a command starts with is run on the host.
        interpreters: A pattern for the names of programs that start its tests with `-m` and `module`.
        module: See there.
        subcommand: The word that a runner needs, where it could run anything: `cargo run cargo test` runs no tests.
        package_file: The name of a file that stands for its folder.
        lock: The name of a file that its runner itself brings up to date.
        root_option: How a runner is told the root, where it takes our ids as they are.
        ignore_option: How a runner is told a folder whose tests are another project's.
        ids_by_path: Whether an id begins with the path of the test file, or of its folder.
        stub_first: Whether new symbols are scaffolded before their tests, unless the user says otherwise.
    """

    name: str
    package: str
    sources: tuple[str, ...]
    marks: tuple[str, ...]
    parts: frozenset[Part] = frozenset()
    manifests: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    examples: str = ""
    runners: frozenset[str] = frozenset()
    interpreters: str = ""
    module: str = ""
    subcommand: str = ""
    package_file: str = ""
    lock: str = ""
    root_option: str = ""
    ignore_option: str = ""
    ids_by_path: bool = True
    stub_first: bool = False

    def starts_runner(self, program: str, words: Sequence[str]) -> bool:
        """Return whether a command starts the language's test runner, by program name and following words."""
        if self.interpreters and re.fullmatch(self.interpreters, program):
            return list(words[:2]) == ["-m", self.module]
        if self.subcommand and words and words[0] != self.subcommand:
            return False
        return program in self.runners

    @property
    def checkouts(self) -> Checkouts | None:
        """Return the module that finds environments in checkouts, None if the language keeps none there."""
        return self.part("environment")

    @property
    def toolchain(self) -> Toolchain:
        """Return the language's toolchain."""
        return cast("Toolchain", import_module(f"{self.package}.toolchain").TOOLCHAIN)

    def part(self, name: Part) -> ModuleType | None:
        """Return a module of the language's folder, None if the language has no such part."""
        return import_module(f"{self.package}.{name}") if name in self.parts else None


_COMMON: Final[frozenset[Part]] = frozenset({"forgery", "fault_sites"})
"""The parts that each of our languages has."""

PYTHON: Final = Language(
    "pytest",
    "pipeline.testing.languages.python",
    sources=(".py",),
    marks=("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini"),
    parts=frozenset({*_COMMON, "environment"}),
    further=(".pyw", ".pyi"),
    texts=(".txt", ".rst", ".md"),
    examples=r"^[ \t]*>>>.*(?:\n(?![ \t]*(?:>>>|\"\"\"|'''|```|$)).+)*",
    runners=frozenset({"pytest", "py.test"}),
    interpreters=r"(python|pypy)\d*(\.\d+)?t?",
    module="pytest",
    package_file="__init__.py",
    root_option="--rootdir",
    ignore_option="--ignore",
)
RUST: Final = Language(
    "cargo",
    "pipeline.testing.languages.rust",
    sources=(".rs",),
    marks=("Cargo.toml",),
    parts=frozenset({*_COMMON, "test_regions", "compile_time"}),
    manifests=("Cargo.toml",),
    examples=r"^[ \t]*//[/!].*(?:\bassert|```).*",
    runners=frozenset({"cargo"}),
    lock="Cargo.lock",
    subcommand="test",
    ids_by_path=False,
    stub_first=True,
)
JAVASCRIPT: Final = Language(
    "node",
    "pipeline.testing.languages.javascript",
    sources=(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
    marks=("package.json",),
    parts=_COMMON,
    runners=frozenset({"node", "npm", "npx", "pnpm", "yarn", "bun", "vitest", "jest"}),
)
GO: Final = Language(
    "go",
    "pipeline.testing.languages.go",
    sources=(".go",),
    marks=("go.mod",),
    parts=_COMMON,
    runners=frozenset({"go"}),
    lock="go.sum",
    subcommand="test",
    stub_first=True,
)

SEVERAL: Final = "+"
"""The separator between the names of several toolchains that measure one project together."""

LANGUAGES: Mapping[str, Language] = {language.name: language for language in (PYTHON, RUST, JAVASCRIPT, GO)}
"""The languages by name, in the order in which projects are recognised."""

DEFAULT: Final = PYTHON
"""The language to assume if none is recognised; its error tells what is missing."""


def language_of(path: str) -> Language | None:
    """Return the language of a file by its ending, None if it is unknown."""
    return next((language for language in LANGUAGES.values() if path.endswith(language.sources)), None)


def has_part(path: str, name: Part) -> bool:
    """Return whether the language of a file has a part; no module is imported."""
    language = language_of(path)
    return language is not None and name in language.parts


def part_for(path: str, name: Part) -> ModuleType | None:
    """Return a part's module for the language of a file, None if there is none."""
    language = language_of(path)
    return language.part(name) if language is not None else None


def listed_commands() -> tuple[ListedCommand, ...]:
    """Return the commands of all languages that an agent's tool may run."""
    return tuple(command for language in LANGUAGES.values() for command in language.toolchain.commands)
