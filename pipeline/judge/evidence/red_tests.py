"""The RED tests of a task: the ids that are its evidence, and the frozen state of their files (matrix 5)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  pydantic reads it at run time
from typing import Final, Literal

from pydantic import Field

from pipeline.judge.evidence import freeze
from pipeline.judge.evidence.observation import TestRecord, Value
from pipeline.judge.evidence.red_classes import RedClass  # noqa: TC001  pydantic reads it at run time

_DIGESTED_ENTRY: Final = ("function", "cls", "legal", "region_sha256", "tree", "granularity")
_DIGESTED_FROZEN: Final = ("regions", "files", "ids", "uncollected")


class RedEntry(Value):
    """The evidence of one RED id. With granularity `file` the id is a test file that cannot be imported yet."""

    function: str
    cls: RedClass
    legal: bool
    message: str
    region_sha256: str
    tree: str
    granularity: Literal["id", "file"] = "id"


class RedTests(Value):
    """The evidence of a task: RED ids, ids that pass before and after, and the frozen state of their files.

    `renames` are the test files that have another name now, by the old one: their tests are guards under the new one.
    """

    task: str
    tree: str
    red: Mapping[str, RedEntry] = Field(default_factory=dict[str, RedEntry])
    guards: Mapping[str, str] = Field(default_factory=dict[str, str])
    frozen: freeze.Frozen = freeze.Frozen(regions={}, files={}, ids=frozenset())
    renames: Mapping[str, str] = Field(default_factory=dict[str, str])

    @property
    def whole_files(self) -> frozenset[str]:
        """Return the test files that are RED as a whole: their test ids are not known before GREEN."""
        return frozenset(entry for entry, red in self.red.items() if red.granularity == "file")

    def owns(self, record: TestRecord) -> bool:
        """Return whether the test is part of this task's evidence."""
        return record.id in self.red or record.id in self.guards or record.path in self.whole_files

    def digest(self) -> str:
        """Return the sha256 for the Red-Evidence trailer: everything but the messages, which vary between versions.

        What is in it is fixed: a field that comes later may not change what older trailers say. So the values of cases
        and renamed files count where there are any, and are no part of it where there are none.
        """
        red = {entry: value.model_dump(include=set(_DIGESTED_ENTRY)) for entry, value in self.red.items()}
        frozen = self.frozen.model_dump(include={*_DIGESTED_FROZEN, *(("cases",) if self.frozen.cases else ())})
        known = {"task": self.task, "tree": self.tree, "red": red, "guards": dict(self.guards), "frozen": frozen}
        return freeze.digest({**known, **({"renames": dict(self.renames)} if self.renames else {})})
