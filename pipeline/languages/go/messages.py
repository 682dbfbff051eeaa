"""What our runner writes of Go, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners.sessions import End, Line, OutOfTime, ProcessLine, Said, Start


class Package(Said):
    """A package of the workspace: import path, folder, names of its files; `deps` are the others that it needs."""

    path: str
    dir: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()


class Trouble(Said):
    """What keeps a package from being compiled: one place and sentence, or the compiler's whole text."""

    pos: str
    said: str


class Modules(ProcessLine):
    """The modules that are measured, by path, each with its folder."""

    kind: Literal["modules"]
    modules: tuple[tuple[str, str], ...] = ()


class Packages(ProcessLine):
    """The packages of the workspace, and what of them does not compile."""

    kind: Literal["packages"]
    packages: tuple[Package, ...] = ()
    errors: tuple[Trouble, ...] = ()


class Linked(ProcessLine):
    """The making of test executables is over."""

    kind: Literal["linked"]


class Executable(Line):
    """A test executable, the folder it runs in, and the arguments that `go test` would give it."""

    kind: Literal["executable"]
    executable: str
    dir: str
    arguments: tuple[str, ...] = ()


class Ended(ProcessLine):
    """A test is over; see `exec_guard.Watch` for what its process asked for.

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
