"""Builds the context of measurements without a run: the same copies, box and toolchain, in a folder that goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pipeline.progress import Progress
from pipeline.repo import UntouchedRepository  # noqa: TC001  (dataclasses read it)
from pipeline.run.ignored import include_ignored
from pipeline.sandbox.escapes import without_escape
from pipeline.sandbox.views.copies import Copies
from pipeline.testing.measure import setup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.config.model import Config
    from pipeline.matrix.engine.journal_kinds import JournalEvent
    from pipeline.process import Box
    from pipeline.run.checkout import PrivateCheckout
    from pipeline.testing.languages.protocol import Environment
    from pipeline.testing.languages.toolchain import Toolchain


@dataclass
class VerificationContext:
    """A `MeasurementContext` without a run. What it writes, objects included, lies in the folder of its checkout.

    `notes` are what whoever reads the result should know of how it was asked.
    """

    repository: UntouchedRepository
    checkout: PrivateCheckout
    config: Config
    box: Box
    toolchain: Toolchain
    search_path: str
    environ: Mapping[str, str]
    say: Callable[[str], None]
    secrets: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    environment: Environment | None = None
    progress: Progress = field(default_factory=Progress)
    copies: Copies = field(init=False)

    def __post_init__(self) -> None:
        self.copies = Copies(self.checkout, "measured", self.box, partial(without_escape, self.repository))

    def note(self, event: JournalEvent) -> None:
        """Take nothing down: there is no journal."""

    async def prepare(self, tree: str) -> None:
        """Make ready what measurements need besides a tree; `setup` runs in a checkout of *tree*, if it is configured.

        Raises:
            UnmeasurableError: the setup command failed.
            UserError: the disk does not take it.
        """
        self.checkout.open(tree)
        include_ignored(self.repository, self.checkout.root)
        await setup.run_once(self)
