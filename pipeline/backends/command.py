"""Backend `command`: any program that reads one JSON document and answers with one JSON object (contract 5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.backends.program import run_program
from pipeline.backends.protocol import Ended
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.programs import SYSTEM_FOLDERS, SYSTEM_SETTINGS, locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.backends.protocol import AgentJob, AgentResult
    from pipeline.config.model import AgentConfig


ADD: Final = "add it, or its folder, to `read` of this agent"


class CommandBackend:
    """Runs the configured program; argv[0] is looked up on the host and shown in the box."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed.

        Raises:
            UserError: it is not.
        """
        if agent.argv:
            locate(agent.argv[0], search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with the program and return its result.

        Raises:
            UserError: there is no argv, or its program is not there.
            BoxError: the box did not work.
        """
        if not job.argv:
            raise UserError('backend = "command" needs argv: the program to start, as a list.', Reason.CONFIG)
        program = locate(job.argv[0], job.search_path)
        result = await run_program(job, program.argv(*job.argv[1:]), program.mounts, job.document)
        unseen = not_shown(job.argv, (mount.target for mount in (*job.read, *program.mounts, job.view)))
        if result.ended is not Ended.NONZERO or not unseen or not job.box.maps_paths:
            return result
        return replace(result, complaint=f"{result.complaint} {unseen[0]} is here, but not in the box: {ADD}.")


def not_shown(argv: Sequence[str], shown: Iterable[Path]) -> tuple[str, ...]:
    """Return the files in a program's arguments that the box does not show."""
    folders = (*shown, *SYSTEM_FOLDERS, *SYSTEM_SETTINGS)
    paths = [Path(word) for word in argv[1:] if word.startswith("/")]
    return tuple(str(path) for path in paths if path.exists() and not any(map(path.is_relative_to, folders)))
