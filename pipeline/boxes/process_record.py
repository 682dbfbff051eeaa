"""Writes down which process a running dispatch is, so that the next driver can end it (`orphans`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (a field of a dataclass)
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.pids import ProcessId
from pipeline.trees import read_regular

_LONGEST: Final = 64 * 1024


class Recorded(BaseModel):
    """`process.json`: the process by number, start time and boot, and the `NAME=value` that marks its descendants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    start_time: int
    boot_id: str
    box: str
    mark: str

    @property
    def process(self) -> ProcessId:
        """Return the process."""
        return ProcessId(self.pid, self.start_time, self.boot_id)

    @classmethod
    def read(cls, path: Path) -> Recorded | None:
        """Return what stands at `path`; None where nothing does, or half of it, as when the machine stopped."""
        try:
            return cls.model_validate_json(read_regular(path, _LONGEST))
        except (OSError, ValidationError):
            return None


@dataclass(frozen=True)
class Recording:
    """Where it is written down, and in which box the process runs."""

    path: Path
    box: str

    def write(self, pid: int, mark: str) -> None:
        """Write down the process *pid*; nothing if it has ended already."""
        process = ProcessId.of(pid)
        if process is not None:
            facts = Recorded(pid=pid, start_time=process.start_time, boot_id=process.boot_id, box=self.box, mark=mark)
            self.path.write_text(facts.model_dump_json() + "\n", encoding="utf-8")

    def remove(self) -> None:
        """Take note that everything of the process is dead."""
        self.path.unlink(missing_ok=True)
