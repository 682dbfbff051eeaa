"""The records of our runner for Go, as validated values; unknown keys are ignored."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners.sessions import End, Line, OutOfTime, ProcessLine, Said, Start


class Package(Said):
    """A package of the workspace: import path, folder, file names; `deps` are the packages that it needs."""

    path: str
    dir: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()


class Trouble(Said):
    """An error that keeps a package from being compiled: a place and a sentence, or the compiler's whole text."""

    pos: str
    said: str


class Modules(ProcessLine):
    """A record of the measured modules: folders by module path."""

    kind: Literal["modules"]
    modules: tuple[tuple[str, str], ...] = ()


class Packages(ProcessLine):
    """A record of the workspace's packages and their compile errors."""

    kind: Literal["packages"]
    packages: tuple[Package, ...] = ()
    errors: tuple[Trouble, ...] = ()


class Linked(ProcessLine):
    """A record that the test executables are built."""

    kind: Literal["linked"]


class Executable(Line):
    """A test executable, the folder it runs in, and the arguments that `go test` would pass."""

    kind: Literal["executable"]
    executable: str
    dir: str
    arguments: tuple[str, ...] = ()


class Ended(ProcessLine):
    """A record that a test ended; see `exec_guard.Watch` for the calls that its process attempted.

    `logged` if `testing` wrote its log, as it does when its tests are over; `blocks` are the pieces of code that it
    entered, None where it did not say.
    """

    kind: Literal["ended"]
    id: str
    logged: bool
    replaced: bool = False
    unwatched: str = ""
    blocks: tuple[tuple[str, int], ...] | None = None
    doors: tuple[str, ...] = ()


Record = Modules | Packages | Linked | Executable | Start | Ended | OutOfTime | End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
