"""Keeps an agent's conversation for each slot in a folder outside the run's folder, for the length of the run.

What is in it was written by an agent and is shown to agents of the same slot only. This program reads nothing of it but
what it wrote itself, known by its hash (`backends.api_record`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.protocol import Session
from pipeline.process import Mount
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from pipeline.process import Box
    from pipeline.runs.info import DispatchRecord, DispatchResult

SESSION: Final = Path("/redfirst-session")


def session_of(
    top: Path, record: DispatchRecord, before: DispatchResult | None, product: str, *, box: Box, prompt: str
) -> Session:
    """Return the slot's session; it starts anew if the earlier one is of another product.

    Args:
        top: Where the sessions of the run are.
        record: The dispatch.
        before: The dispatch whose conversation may be gone on with.
        product: Who is asked now.
        box: Where the folder is shown.
        prompt: What is said in a conversation that goes on.
    """
    folder = top / f"{record.visit}-{record.role.value}"
    known = before.session if before is not None and _same(before, product) else None
    if known is None and folder.is_dir():
        remove_tree(folder)
    # An agent can leave a set-user program there, which on disk is one of the driver's user: no other may reach it.
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return Session(Mount(folder, box.inside(folder, SESSION), writable=True), known, prompt)


def _same(before: DispatchResult, product: str) -> bool:
    return before.agent is not None and before.agent.product == product
