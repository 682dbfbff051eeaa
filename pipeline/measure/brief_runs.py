"""Measuring in passing: under a short time limit, without a line in the journal or on the screen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.config.model import Toolchain as ToolchainTable
from pipeline.languages.table import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.config.model import Config
    from pipeline.engine.events import JournalEvent
    from pipeline.git import Repository
    from pipeline.languages.protocol import Environment, Toolchain
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.process import Box
    from pipeline.runs.checkout import PrivateCheckout
    from pipeline.views.copies import Copies


@dataclass
class Unjournalled:
    """A `MeasurementContext` with the tools of another one; no run of tests takes longer than `limit_s` seconds."""

    lender: MeasurementContext
    limit_s: float
    environment: Environment | None = field(init=False)
    copies: Copies = field(init=False)

    def __post_init__(self) -> None:
        self.environment, self.copies = self.lender.environment, self.lender.copies

    @property
    def config(self) -> Config:
        """Return the configuration with the time limits of tests cut; several toolchains share the time."""
        config = self.lender.config
        limit = max(1, math.ceil(self.limit_s))
        share = max(1, math.ceil(self.limit_s / len(self.toolchain.name.split(SEVERAL))))
        cut = {
            name: table.model_copy(
                update={"timeout_s": min(table.timeout_s, share), "test_timeout_s": min(table.test_timeout_s, limit)}
            )
            for name, table in config.toolchains
            if isinstance(table, ToolchainTable)
        }
        return config.model_copy(update={"toolchains": config.toolchains.model_copy(update=cut)})

    @property
    def repository(self) -> Repository:
        """Return the lender's repository."""
        return self.lender.repository

    @property
    def checkout(self) -> PrivateCheckout:
        """Return the lender's checkout."""
        return self.lender.checkout

    @property
    def box(self) -> Box:
        """Return the lender's box."""
        return self.lender.box

    @property
    def toolchain(self) -> Toolchain:
        """Return the lender's toolchain."""
        return self.lender.toolchain

    @property
    def search_path(self) -> str:
        """Return the lender's PATH."""
        return self.lender.search_path

    @property
    def environ(self) -> Mapping[str, str]:
        """Return the lender's variables."""
        return self.lender.environ

    @property
    def say(self) -> Callable[[str], None]:
        """Return what says nothing."""
        return lambda _: None

    @property
    def secrets(self) -> frozenset[str]:
        """Return what has to be taken out of outputs."""
        return self.lender.secrets

    def note(self, event: JournalEvent) -> None:
        """Take nothing down: what comes of many small measurements is written once, as evidence."""
