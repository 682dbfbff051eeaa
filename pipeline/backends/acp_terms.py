"""The terms of one dispatch to an ACP agent, and the setup that tells them to a product (see `acp_profiles`)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (dataclasses and pyright read it at run time)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.providers import Api


@dataclass(frozen=True)
class Terms:
    """The permissions, model and folders of an agent in one dispatch.

    Args:
        agent: A name that no agent of the repository has.
        folder: Where the product keeps its things, if that is not its own place in the home folder.
        conversations: Where a conversation is kept that can be gone on with; None if it is not.
        writes: Whether the role may change files.
        shell: Whether it may run commands.
        api: How the gateway's service is spoken to; None where the product talks to its own.
        model: By the service's name; None for the product's own choice.
        effort: How much it thinks; None for the model's own default.
        steps: How many answers the model may give.
        folders: Where else than in the workspace it has to look, for a product that keeps to its workspace.
    """

    agent: str
    folder: Path | None
    conversations: Path | None
    writes: bool
    shell: bool
    api: Api | None = None
    model: str | None = None
    effort: str | None = None
    steps: int | None = None
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Setup:
    """The arguments, variables and files that set up a product for one dispatch.

    Args:
        arguments: What follows the program.
        env: Its variables.
        files: Read-only files below the product's own folder, with their content.
        meta: `_meta` of a new session.
        options: What the session's options are set to, in this order.
    """

    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
