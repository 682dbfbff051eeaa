"""Records the process of a running dispatch in a file, so that the next driver can end it (`orphans`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (a field of a dataclass)
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.pids import ProcessId
from pipeline.trees import read_regular

_LONGEST: Final = 64 * 1024


class Recorded(BaseModel):
    """The content of `process.json`: a process by number, start time and boot, and the mark of its descendants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    start_time: int
    boot_id: str
    box: str
    mark: str

    @property
    def process(self) -> ProcessId:
        """Return the id of the recorded process."""
        return ProcessId(self.pid, self.start_time, self.boot_id)

    @classmethod
    def read(cls, path: Path) -> Recorded | None:
        """Return the record in a file; None if it is missing or incomplete."""
        try:
            return cls.model_validate_json(read_regular(path, _LONGEST))
        except (OSError, ValidationError):
            return None


@dataclass(frozen=True)
class Recording:
    """The file in which a process is recorded, and the box that it runs in."""

    path: Path
    box: str

    def write(self, pid: int, mark: str) -> None:
        """Record the process *pid*; nothing if it has ended already."""
        process = ProcessId.of(pid)
        if process is not None:
            facts = Recorded(pid=pid, start_time=process.start_time, boot_id=process.boot_id, box=self.box, mark=mark)
            self.path.write_text(facts.model_dump_json() + "\n", encoding="utf-8")

    def remove(self) -> None:
        """Remove the record once all the processes are dead."""
        self.path.unlink(missing_ok=True)
