"""Any program is an agent: it reads one JSON document and answers with one JSON object (contract 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.backends.program import run_program
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.programs import locate

if TYPE_CHECKING:
    from pipeline.backends.protocol import AgentJob, AgentResult
    from pipeline.config.model import AgentConfig


class CommandBackend:
    """Starts the configured program; argv[0] is found on the host and shown to the box."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Return when the program is there.

        Raises:
            UserError: it is not.
        """
        if agent.argv:
            locate(agent.argv[0], search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Ask the program.

        Raises:
            UserError: there is no argv, or its program is not there.
            BoxError: the box did not work.
        """
        if not job.argv:
            raise UserError('backend = "command" needs argv: the program to start, as a list.', Reason.CONFIG)
        program = locate(job.argv[0], job.search_path)
        return await run_program(job, program.argv(*job.argv[1:]), program.mounts, job.document)
