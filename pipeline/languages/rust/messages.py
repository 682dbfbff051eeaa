"""The records of cargo, libtest and our runner, as validated values; unknown keys are ignored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners.sessions import End, Line, OutOfTime, ProcessLine, Said, Start

if TYPE_CHECKING:
    from pipeline.languages.runners.sessions import Session


class Target(Said):
    """A target that cargo compiles: a library, a program, an integration test."""

    kind: tuple[str, ...]
    name: str
    src_path: str
    test: bool = True
    doctest: bool = False

    @property
    def is_test(self) -> bool:
        """Return whether the whole target is tests."""
        return self.kind[0] in {"test", "bench"}

    @property
    def label(self) -> str:
        """Return the part of a test id that distinguishes a package's targets; the library is `lib`."""
        return f"{self.kind[0]}/{self.name}" if self.kind[0] in {"bin", "test", "example", "bench"} else "lib"


class Package(Said):
    """A member of the workspace."""

    name: str
    version: str
    manifest_path: str
    targets: tuple[Target, ...]


class Metadata(Said):
    """The workspace and its packages."""

    packages: tuple[Package, ...]
    workspace_root: str


class Span(Said):
    """A place in a source."""

    file_name: str
    line_start: int
    is_primary: bool
    label: str | None = None


class Code(Said):
    """The code of a compiler error, such as `E0432`."""

    code: str


class Diagnostic(Said):
    """A compiler error."""

    message: str
    code: Code | None = None
    spans: tuple[Span, ...] = ()
    rendered: str | None = None


class CompilerMessage(Said):
    """A compiler error with the target that it is in."""

    manifest_path: str
    target: Target
    message: Diagnostic


class Artifact(Said):
    """A compiled test executable."""

    manifest_path: str
    target: Target
    executable: str


class MetadataLine(ProcessLine):
    """The output of `cargo metadata`."""

    kind: Literal["metadata"]


class ArtifactLine(Line):
    """A record that a test executable was compiled."""

    kind: Literal["artifact"]
    message: Artifact


class ErrorLine(Line):
    """A record of a compiler error."""

    kind: Literal["error"]
    message: CompilerMessage


class Built(ProcessLine):
    """A record that the compilation ended."""

    kind: Literal["built"]


class Documented(Line):
    """A record of the packages that may have examples in their documentation."""

    kind: Literal["documented"]
    packages: tuple[str, ...]


class Listed(Line):
    """The tests in an executable; no `names` where the project's own harness does not list like libtest."""

    kind: Literal["listed"]
    executable: str
    names: tuple[str, ...] | None
    ignored: tuple[str, ...]


class DoctestsListed(Line):
    """A record of the examples in a package's documentation."""

    kind: Literal["doctests_listed"]
    package: str
    names: tuple[str, ...]


class TooMany(Line):
    """A record that an executable or package lists more tests than `names`, or more than `size` bytes of names."""

    kind: Literal["too_many"]
    where: str
    names: int
    size: int


class Ended(ProcessLine):
    """A record that a test ended; see `exec_guard.Watch` for the calls that its process attempted."""

    kind: Literal["ended"]
    id: str
    replaced: bool = False
    left_aside: bool = False
    unwatched: str = ""


class DoctestsRan(ProcessLine):
    """A record that a run of a package's examples ended; `hung` ones did not end within the limit for one test."""

    kind: Literal["doctests_ran"]
    package: str
    hung: tuple[str, ...] = ()


Record = (
    MetadataLine
    | ArtifactLine
    | ErrorLine
    | Built
    | Documented
    | Listed
    | DoctestsListed
    | TooMany
    | Start
    | Ended
    | DoctestsRan
    | OutOfTime
    | End
)
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


def is_done(session: Session) -> bool:
    """Return whether our runner's records are valid and complete, and no limit of time or size was exceeded."""
    return not session.fault and session.is_whole and not session.is_late and not session.of(TooMany)


def excess(session: Session) -> str:
    """Return a message if there are more tests than are read, else an empty text."""
    found = session.first(TooMany)
    if found is None:
        return ""
    limits = f"at most {found.names:,} names and {found.size:,} bytes of them are taken of one workspace"
    return f"{found.where.rpartition('/')[2]} lists more tests than are taken: {limits}"


def read_metadata(line: MetadataLine) -> Metadata | None:
    """Return the workspace in cargo's output, None if cargo failed."""
    try:
        return Metadata.model_validate(json.loads(line.stdout)) if line.code == 0 else None
    except (ValueError, RecursionError):
        return None
