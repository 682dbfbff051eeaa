"""What our runner writes of Go, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pipeline.languages.sessions import read_records

if TYPE_CHECKING:
    from pipeline.process import Answer


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Package(_Value):
    """A package of the workspace: import path, folder, names of its files; `deps` are the others that it needs."""

    path: str
    dir: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()


class Trouble(_Value):
    """What keeps a package from being compiled: one place and sentence, or the compiler's whole text."""

    pos: str
    said: str


class _Line(_Value):
    nonce: str
    n: int


class _Process(_Line):
    code: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


class Modules(_Process):
    """The modules that are measured, by path, each with its folder."""

    kind: Literal["modules"]
    modules: tuple[tuple[str, str], ...] = ()


class Packages(_Process):
    """The packages of the workspace, and what of them does not compile."""

    kind: Literal["packages"]
    packages: tuple[Package, ...] = ()
    errors: tuple[Trouble, ...] = ()


class Linked(_Process):
    """The making of test executables is over."""

    kind: Literal["linked"]


class Executable(_Line):
    """A test executable, the folder it runs in, and the arguments that `go test` would give it."""

    kind: Literal["executable"]
    executable: str
    dir: str
    arguments: tuple[str, ...] = ()


class Start(_Line):
    """A test begins."""

    kind: Literal["start"]
    id: str


class Ended(_Process):
    """A test is over; see `watched.Watch` for what its process asked for.

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


class OutOfTime(_Line):
    """The time for all tests together is used up."""

    kind: Literal["out_of_time"]


class End(_Line):
    """The runner came to its end."""

    kind: Literal["end"]


Record = Modules | Packages | Linked | Executable | Start | Ended | OutOfTime | End
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


def read_session(answer: Answer, nonce: str) -> Session:
    """Return the records that came; a line that is not ours makes the session unusable."""
    return Session(*read_records(answer, nonce, _ADAPTER, End))
