"""What the plugin writes, as values: checked where it comes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from pipeline.evidence.observation import Case, Fault, Reach, Value
from pipeline.languages.runners.sessions import Line, read_records

if TYPE_CHECKING:
    from pipeline.process import Answer


class _Line(Line):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SessionStart(_Line):
    """The plugin is loaded."""

    kind: Literal["session_start"]
    python: str
    pytest: str


class LayoutLine(_Line):
    """What the project's configuration says about test files."""

    kind: Literal["layout"]
    testpaths: tuple[str, ...]
    python_files: tuple[str, ...]


class FileLine(_Line):
    """A test file was opened for collection."""

    kind: Literal["file"]
    path: str
    sha256: str


class CollectionErrorLine(_Line):
    """Something could not be collected."""

    kind: Literal["collection_error"]
    path: str
    fault: Fault


class Item(_Line):
    """A collected test id, whether chosen or not."""

    kind: Literal["item"]
    id: str
    function: str
    path: str
    region_sha256: str
    case: Case | None
    doctest: bool


class Start(_Line):
    """A test begins; without its `test` line it did not survive."""

    kind: Literal["start"]
    id: str


class Limit(_Line):
    """A test reached its own time limit."""

    kind: Literal["limit"]
    id: str


class Phase(Value):
    """One report of one phase; sub-tests and re-runs give several. `sub`: it is a sub-test's, not the test's own."""

    when: Literal["setup", "call", "teardown"]
    outcome: Literal["passed", "failed", "skipped", "xfailed", "xpassed", "strict_xpass", "rerun"]
    reason: str
    fault: Fault | None
    sub: bool = False


class Finished(_Line):
    """A test ended; `seconds` is what it took, set-up and tear-down included, and is no evidence."""

    kind: Literal["test"]
    id: str
    phases: tuple[Phase, ...]
    reach: Reach | None
    timed_out: bool
    seconds: float


class Modules(_Line):
    """The project's modules that are loaded, and the namesakes from elsewhere."""

    kind: Literal["modules"]
    own: dict[str, str]
    foreign: dict[str, str]


class SessionEnd(_Line):
    """The session ended in an orderly way."""

    kind: Literal["session_end"]
    exitstatus: int
    canaries: dict[str, str]


Record = (
    SessionStart | LayoutLine | FileLine | CollectionErrorLine | Item | Start | Limit | Finished | Modules | SessionEnd
)
_ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@dataclass(frozen=True)
class Session:
    """The records of one process, and how that process ended."""

    records: tuple[Record, ...]
    exit_code: int | None
    timed_out: bool
    forged: str = ""

    @property
    def ended(self) -> SessionEnd | None:
        """Return the end record, which is the last one or is missing."""
        last = self.records[-1] if self.records else None
        return last if isinstance(last, SessionEnd) else None

    @property
    def contradicted(self) -> str:
        """Return in words how the process ended otherwise than it had said, or nothing."""
        end = self.ended
        if end is None or self.timed_out or end.exitstatus == self.exit_code:
            return ""
        how = "was ended by a signal" if self.exit_code is None else f"exited with {self.exit_code}"
        return f"the test process {how} after it had said that it would exit with {end.exitstatus}"

    @property
    def unfinished(self) -> str | None:
        """Return the id that was running when the process died or stopped."""
        open_id: str | None = None
        for record in self.records:
            if isinstance(record, Start):
                open_id = record.id
            elif isinstance(record, Finished) and record.id == open_id:
                open_id = None
        return open_id


def read_session(answer: Answer, nonce: str, *, exit_code: int | None, timed_out: bool) -> Session:
    """Return the records that a process left; a line that is not ours makes the session unusable (`forged`)."""
    records, forged = read_records(answer.data, answer.fault, nonce, _ADAPTER, SessionEnd)
    for place, record in enumerate(records):
        if not forged and isinstance(record, SessionStart) != (place == 0):
            forged = f"line {place + 1} of the records was not written by the harness"
    return Session(records, exit_code, timed_out, forged)
