"""What our runner writes of Go, as values: checked where it comes in, unknown keys left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


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
    """A test is over. `blocks` are the pieces of code that it entered, None where it did not say."""

    kind: Literal["ended"]
    id: str
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


def read_session(data: bytes, nonce: str) -> Session:
    """Return the records in `data`; a line that is not ours makes the session unusable. A torn last line is none."""
    lines = data.split(b"\n")[:-1]
    records: list[Record] = []
    for number, line in enumerate(lines):
        try:
            record = _ADAPTER.validate_json(line)
        except ValidationError:
            return Session(tuple(records), f"line {number + 1} of the records is not a record")
        if record.nonce != nonce or record.n != number:
            return Session(tuple(records), f"line {number + 1} of the records was not written by the harness")
        if records and isinstance(records[-1], End):
            return Session(tuple(records), "something was written after the end of the records")
        records.append(record)
    return Session(tuple(records))
