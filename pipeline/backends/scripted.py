"""Backend `scripted`: plays prepared answers in the same view, box and gate as a real agent (contract 5)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.program import run_program
from pipeline.backends.script import choose, load_script
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from pipeline.backends.protocol import AgentJob, AgentResult
    from pipeline.config.model import AgentConfig

_PLAYER: Final = Path(__file__).with_name("script_player.py")
_INSIDE: Final = Path("/run/redfirst/script_player.py")


class ScriptedBackend:
    """Plays the first unused entry that matches a dispatch.

    Which entries are used is the caller's to know: it is derived from the dispatches that finished, so that a resumed
    run goes on where the script was.
    """

    def require(self, agent: AgentConfig, search_path: str) -> None:  # noqa: ARG002  (the protocol)
        """Check that the script can be read.

        Raises:
            UserError: it is missing or wrong.
        """
        if agent.script is not None:
            load_script(Path(agent.script))

    async def run(self, job: AgentJob) -> AgentResult:
        """Play one entry; the result names it.

        Raises:
            UserError: the script is missing or wrong.
            ScriptMismatchError: no entry matches.
            BoxError: the box did not work.
        """
        if job.script is None:
            raise UserError('backend = "scripted" needs script: the YAML file of answers.', Reason.CONFIG)
        entries = load_script(job.script)
        number = choose(job.script, entries, job.document, job.used)
        python = locate(sys.executable)
        player = Mount(_PLAYER, _INSIDE)
        argv = python.argv("-I", "-S", str(job.box.inside(player.source, player.target)))
        stdin = entries[number].model_dump_json(exclude={"when"}).encode()
        result = await run_program(job, argv, (*python.mounts, player), stdin)
        return replace(result, entry=number)
