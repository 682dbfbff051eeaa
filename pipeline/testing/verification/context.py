"""Builds the context of measurements without a run: the same copies, box and toolchain, in a folder that goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.run.ignored import include_ignored
from pipeline.testing.measure import setup
from pipeline.testing.measure.measuring import MeasurementContext

if TYPE_CHECKING:
    from pipeline.repo import UntouchedRepository


@dataclass(kw_only=True)
class VerificationContext(MeasurementContext):
    """What measures without a run. What it writes, objects included, lies in the folder of its checkout.

    `notes` are what whoever reads the result should know of how it was asked.
    """

    repository: UntouchedRepository  # pyright: ignore[reportIncompatibleVariableOverride]  nobody puts another there
    notes: tuple[str, ...] = ()

    async def prepare(self, tree: str) -> None:
        """Make ready what measurements need besides a tree; `setup` runs in a checkout of *tree*, if it is configured.

        Raises:
            UnmeasurableError: the setup command failed.
            UserError: the disk does not take it.
        """
        self.checkout.open(tree)
        include_ignored(self.repository, self.checkout.root)
        await setup.run_once(self)
