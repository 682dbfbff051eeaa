"""What cargo, libtest and our runner write, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pipeline.languages.sessions import read_records

if TYPE_CHECKING:
    from pipeline.process import Answer


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Target(_Value):
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


class Package(_Value):
    """A member of the workspace."""

    name: str
    version: str
    manifest_path: str
    targets: tuple[Target, ...]


class Metadata(_Value):
    """The workspace."""

    packages: tuple[Package, ...]
    workspace_root: str


class Span(_Value):
    """A place in a source."""

    file_name: str
    line_start: int
    is_primary: bool
    label: str | None = None


class Code(_Value):
    """The number of a compiler error, such as `E0432`."""

    code: str


class Diagnostic(_Value):
    """One error of the compiler."""

    message: str
    code: Code | None = None
    spans: tuple[Span, ...] = ()
    rendered: str | None = None


class CompilerMessage(_Value):
    """An error, and the target in which it stands."""

    manifest_path: str
    target: Target
    message: Diagnostic


class Artifact(_Value):
    """A compiled test executable."""

    manifest_path: str
    target: Target
    executable: str


class _Line(_Value):
    nonce: str
    n: int


class _Process(_Line):
    code: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


class MetadataLine(_Process):
    """What `cargo metadata` said."""

    kind: Literal["metadata"]


class ArtifactLine(_Line):
    """A test executable was compiled."""

    kind: Literal["artifact"]
    message: Artifact


class ErrorLine(_Line):
    """The compiler refused something."""

    kind: Literal["error"]
    message: CompilerMessage


class Built(_Process):
    """The compilation is over."""

    kind: Literal["built"]


class Documented(_Line):
    """The packages that may have examples in their documentation."""

    kind: Literal["documented"]
    packages: tuple[str, ...]


class Listed(_Line):
    """What a test executable holds; no `names` where a harness of the project's own answers otherwise than libtest."""

    kind: Literal["listed"]
    executable: str
    names: tuple[str, ...] | None
    ignored: tuple[str, ...]


class DoctestsListed(_Line):
    """The examples in a package's documentation."""

    kind: Literal["doctests_listed"]
    package: str
    names: tuple[str, ...]


class TooMany(_Line):
    """An executable or package names more tests than are taken of a workspace, `names` or `size` bytes."""

    kind: Literal["too_many"]
    where: str
    names: int
    size: int


class Start(_Line):
    """A test begins."""

    kind: Literal["start"]
    id: str


class Ended(_Process):
    """A test is over; see `watched.Watch` for what its process asked for."""

    kind: Literal["ended"]
    id: str
    replaced: bool = False
    left_aside: bool = False
    unwatched: str = ""


class DoctestsRan(_Process):
    """A run of a package's examples is over; what is `hung` did not end within the limit for one test."""

    kind: Literal["doctests_ran"]
    package: str
    hung: tuple[str, ...] = ()


class OutOfTime(_Line):
    """The time for all tests together is used up."""

    kind: Literal["out_of_time"]


class End(_Line):
    """The runner came to its end."""

    kind: Literal["end"]


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
_ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@dataclass(frozen=True)
class Session:
    """The records of one run of the runner. `fault` says why they cannot be believed, or is empty."""

    records: tuple[Record, ...]
    fault: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether the runner came to its end."""
        return bool(self.records) and isinstance(self.records[-1], End)

    @property
    def is_done(self) -> bool:
        """Return whether it can be believed, came to its end, and did all that it was asked."""
        return (
            not self.fault and self.is_whole and not any(isinstance(one, OutOfTime | TooMany) for one in self.records)
        )

    def then(self, later: Session) -> Session:
        """Return it with the records of a later run of the runner."""
        return Session((*self.records, *later.records), self.fault or later.fault)


def read_session(answer: Answer, nonce: str) -> Session:
    """Return the records that came; a line that is not ours makes the session unusable."""
    return Session(*read_records(answer, nonce, _ADAPTER, End))


def excess(session: Session) -> str:
    """Return what is to be told where there are more tests than are taken, or nothing."""
    found = next((line for line in session.records if isinstance(line, TooMany)), None)
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
