"""What cargo, libtest and our runner write, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.languages.runners.sessions import End, Line, OutOfTime, ProcessLine, Said, Start

if TYPE_CHECKING:
    from pipeline.languages.runners.sessions import Session


class Target(Said):
    """Something that cargo compiles: a library, a program, an integration test."""

    kind: tuple[str, ...]
    name: str
    src_path: str
    test: bool = True
    doctest: bool = False

    @property
    def is_test(self) -> bool:
        """Return whether it consists of tests as a whole."""
        return self.kind[0] in {"test", "bench"}

    @property
    def label(self) -> str:
        """Return the part of an id that tells the targets of one package apart; a package has one library."""
        return f"{self.kind[0]}/{self.name}" if self.kind[0] in {"bin", "test", "example", "bench"} else "lib"


class Package(Said):
    """A member of the workspace."""

    name: str
    version: str
    manifest_path: str
    targets: tuple[Target, ...]


class Metadata(Said):
    """The workspace."""

    packages: tuple[Package, ...]
    workspace_root: str


class Span(Said):
    """A place in a source."""

    file_name: str
    line_start: int
    is_primary: bool
    label: str | None = None


class Code(Said):
    """The number of a compiler error, such as `E0432`."""

    code: str


class Diagnostic(Said):
    """One error of the compiler."""

    message: str
    code: Code | None = None
    spans: tuple[Span, ...] = ()
    rendered: str | None = None


class CompilerMessage(Said):
    """An error, and the target in which it stands."""

    manifest_path: str
    target: Target
    message: Diagnostic


class Artifact(Said):
    """A compiled test executable."""

    manifest_path: str
    target: Target
    executable: str


class MetadataLine(ProcessLine):
    """What `cargo metadata` said."""

    kind: Literal["metadata"]


class ArtifactLine(Line):
    """A test executable was compiled."""

    kind: Literal["artifact"]
    message: Artifact


class ErrorLine(Line):
    """The compiler refused something."""

    kind: Literal["error"]
    message: CompilerMessage


class Built(ProcessLine):
    """The compilation is over."""

    kind: Literal["built"]


class Documented(Line):
    """The packages that may have examples in their documentation."""

    kind: Literal["documented"]
    packages: tuple[str, ...]


class Listed(Line):
    """What a test executable holds; no `names` where a harness of the project's own answers otherwise than libtest."""

    kind: Literal["listed"]
    executable: str
    names: tuple[str, ...] | None
    ignored: tuple[str, ...]


class DoctestsListed(Line):
    """The examples in a package's documentation."""

    kind: Literal["doctests_listed"]
    package: str
    names: tuple[str, ...]


class TooMany(Line):
    """An executable or package names more tests than are taken of a workspace, `names` or `size` bytes."""

    kind: Literal["too_many"]
    where: str
    names: int
    size: int


class Ended(ProcessLine):
    """A test is over; see `exec_guard.Watch` for what its process asked for."""

    kind: Literal["ended"]
    id: str
    replaced: bool = False
    left_aside: bool = False
    unwatched: str = ""


class DoctestsRan(ProcessLine):
    """A run of a package's examples is over; what is `hung` did not end within the limit for one test."""

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
    """Return whether our runner can be believed, came to its end, and did all that it was asked."""
    return not session.fault and session.is_whole and not session.is_late and not session.of(TooMany)


def excess(session: Session) -> str:
    """Return what is to be told where there are more tests than are taken, or nothing."""
    found = session.first(TooMany)
    if found is None:
        return ""
    limits = f"at most {found.names:,} names and {found.size:,} bytes of them are taken of one workspace"
    return f"{found.where.rpartition('/')[2]} lists more tests than are taken: {limits}"


def read_metadata(line: MetadataLine) -> Metadata | None:
    """Return the workspace, None where cargo could not say."""
    try:
        return Metadata.model_validate(json.loads(line.stdout)) if line.code == 0 else None
    except (ValueError, RecursionError):
        return None
