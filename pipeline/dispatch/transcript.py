"""Writes an agent's output to disk as evidence, without known secrets.

An agent in a box sees no secret of the user's; one without a box, or with a file that the user shows it, may.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (a field of a dataclass)
from typing import TYPE_CHECKING, Final

from pipeline.backends.logins import login_values
from pipeline.config.folders import home
from pipeline.dispatch.redaction import dotenv, redact, secrets_of
from pipeline.languages.table import LANGUAGES
from pipeline.routing.vocabulary import Role
from pipeline.runs.files import disk, to_json, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.backends.protocol import AgentResult
    from pipeline.config.model import Config
    from pipeline.dispatch.gate import GateResult
    from pipeline.views.view import View

_COPY_LIMIT: Final = 1_000_000
"""The largest refused file, in bytes, that is copied; a larger one is only named."""


def secrets_of_run(worktree: Path, environ: Mapping[str, str], config: Config) -> frozenset[str]:
    """Return the secrets that must not be written: credentials, logins, values of the user's and others' variables.

    Args:
        worktree: The user's; its `.env` files are read.
        environ: The driver's environment.
        config: Names the variables and logins of agents, spares too, and the credentials of model services.
    """
    agents = [agent for role in Role for agent in config.candidates(role)]
    credentials = {environ.get(table.credential_env or "", "") for table in config.providers.values()} - {""}
    of_tests = [config.toolchains.settings_of(name).env for name in LANGUAGES]
    found = [secrets_of(each) for each in (environ, dotenv(worktree), *(agent.env for agent in agents), *of_tests)]
    logins = [login_values(agent, home(environ)) for agent in agents]
    return frozenset(credentials).union(*found, *logins)


@dataclass(frozen=True)
class Transcript:
    """The output files of one dispatch."""

    folder: Path
    secrets: frozenset[str]

    def keep(self, answer: AgentResult) -> None:
        """Write the agent's output; a mark shows where its middle is missing."""
        self._write(self.folder / "stdout.log", answer.stdout)
        self._write(self.folder / "stderr.log", answer.stderr)
        if answer.report_file is not None:
            self._write(self.folder / "report.raw", answer.report_file)
        if answer.truncated:
            (self.folder / "TRUNCATED").write_text("The middle of stdout or stderr is missing.\n", encoding="utf-8")

    def quarantine(self, folder: Path, view: View, gate: GateResult) -> None:
        """Store the refused changes in `folder` as evidence: their list, and the content of files."""
        index: list[dict[str, str]] = []
        for number, (path, violation) in enumerate(zip(gate.offending, gate.violations, strict=True), 1):
            line = {"path": violation.path, "rule": violation.rule, "why": violation.why}
            try:
                content = view.read(path)
            except (OSError, ValueError):
                content = None
            if content is not None and len(content) <= _COPY_LIMIT:
                line["content"] = f"{number:03}"
                self._write(folder / line["content"], content)
            index.append(line)
        write_atomic(folder / "violations.json", to_json(index))

    def _write(self, path: Path, content: bytes) -> None:
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(redact(content, self.secrets))
