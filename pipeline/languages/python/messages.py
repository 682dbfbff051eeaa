"""The records that the plugin writes, as validated values."""

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
    """A record that the plugin is loaded, with the versions of Python and pytest."""

    kind: Literal["session_start"]
    python: str
    pytest: str


class LayoutLine(_Line):
    """A record of the project's configuration of test files."""

    kind: Literal["layout"]
    testpaths: tuple[str, ...]
    python_files: tuple[str, ...]


class FileLine(_Line):
    """A record that a test file was opened for collection."""

    kind: Literal["file"]
    path: str
    sha256: str


class CollectionErrorLine(_Line):
    """A record that a file could not be collected."""

    kind: Literal["collection_error"]
    path: str
    fault: Fault


class Item(_Line):
    """A record of a collected test id, whether selected or not."""

    kind: Literal["item"]
    id: str
    function: str
    path: str
    region_sha256: str
    case: Case | None
    doctest: bool


class Start(_Line):
    """A record that a test begins; without a later `test` line the process died in it."""

    kind: Literal["start"]
    id: str


class Limit(_Line):
    """A record that a test reached its time limit."""

    kind: Literal["limit"]
    id: str


class Phase(Value):
    """A report of one phase of a test; sub-tests and re-runs give several. `sub`: it is of a sub-test."""

    when: Literal["setup", "call", "teardown"]
    outcome: Literal["passed", "failed", "skipped", "xfailed", "xpassed", "strict_xpass", "rerun"]
    reason: str
    fault: Fault | None
    sub: bool = False


class Finished(_Line):
    """A record that a test ended; `seconds` includes set-up and tear-down, and is no evidence."""

    kind: Literal["test"]
    id: str
    phases: tuple[Phase, ...]
    reach: Reach | None
    timed_out: bool
    seconds: float


class Modules(_Line):
    """A record of the project's modules that are loaded, and of their namesakes from elsewhere."""

    kind: Literal["modules"]
    own: dict[str, str]
    foreign: dict[str, str]


class SessionEnd(_Line):
    """A record that the session ended in order."""

    kind: Literal["session_end"]
    exitstatus: int
    canaries: dict[str, str]


Record = (
    SessionStart | LayoutLine | FileLine | CollectionErrorLine | Item | Start | Limit | Finished | Modules | SessionEnd
)
_ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@dataclass(frozen=True)
class Session:
    """The records of one process, and its exit."""

    records: tuple[Record, ...]
    exit_code: int | None
    timed_out: bool
    forged: str = ""

    @property
    def ended(self) -> SessionEnd | None:
        """Return the end record, which is the last one; None if it is missing."""
        last = self.records[-1] if self.records else None
        return last if isinstance(last, SessionEnd) else None

    @property
    def contradicted(self) -> str:
        """Return in words how the exit code contradicts the end record, empty if it does not."""
        end = self.ended
        if end is None or self.timed_out or end.exitstatus == self.exit_code:
            return ""
        how = "was ended by a signal" if self.exit_code is None else f"exited with {self.exit_code}"
        return f"the test process {how} after it had said that it would exit with {end.exitstatus}"

    @property
    def unfinished(self) -> str | None:
        """Return the id of the test that was running when the process died or stopped, None if none was."""
        open_id: str | None = None
        for record in self.records:
            if isinstance(record, Start):
                open_id = record.id
            elif isinstance(record, Finished) and record.id == open_id:
                open_id = None
        return open_id


def read_session(answer: Answer, nonce: str, *, exit_code: int | None, timed_out: bool) -> Session:
    """Return the session that a process recorded; a line that is not ours makes it unusable (`forged`)."""
    records, forged = read_records(answer.data, answer.fault, nonce, _ADAPTER, SessionEnd)
    for place, record in enumerate(records):
        if not forged and isinstance(record, SessionStart) != (place == 0):
            forged = f"line {place + 1} of the records was not written by the harness"
    return Session(records, exit_code, timed_out, forged)
