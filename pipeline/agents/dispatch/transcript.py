"""Keeps what agents print: the transcript of a dispatch and its live words, without the secrets of the run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pipeline.agents.backends.products import login_values
from pipeline.config.user_folders import home
from pipeline.run.files import disk, to_json, write_atomic
from pipeline.sandbox.redaction import SHORTEST, dotenv, redact, redacted_text, secrets_of
from pipeline.testing.languages.table import LANGUAGES
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pipeline.agents.backends.protocol import AgentResult
    from pipeline.agents.dispatch.gate import GateResult
    from pipeline.config.model import Config
    from pipeline.judge.reports.decode import JsonObject
    from pipeline.sandbox.views.view import View


_ACTED_ON: Final = frozenset(
    {
        *("path", "from", "files", "seam_files", "location", "id", "name", "tests", "task", "item", "duplicate_of"),
        *("content", "old", "new", "quote"),
    }
)
"""The fields of reports that are compared or carried out. With another text they would be another work, as files would;
a secret in them is for the reviewers to see."""


def redacted_report(report: JsonObject, secrets: Collection[str]) -> JsonObject:
    """Return a report with secrets redacted in what it tells; what it names or edits stays as it was said."""

    def of(value: object, field: str) -> object:
        if isinstance(value, dict):
            return redacted_report(cast("JsonObject", value), secrets)
        if isinstance(value, list):
            return [of(inner, field) for inner in cast("list[object]", value)]
        if isinstance(value, str) and field not in _ACTED_ON:
            return redacted_text(value, secrets, shapes=True)
        return value

    return {field: of(value, field) for field, value in report.items()}


_SHOWN: Final = 4
_WIDTH: Final = 200
_WINDOW: Final = 64_000
"""How many characters are looked at for secrets: a key of many lines that ends among those shown begins among these."""


class LiveWords:
    """The words of one agent, in memory alone.

    Secrets are removed from more lines than are shown, and lines are cut to their width after that, so that no part of
    one is left. Of a secret of several lines each line counts, since the others may not have come yet.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
        self._secrets = frozenset(secrets) | lines
        self._lines: deque[str] = deque()
        self._size = 0
        self._told: tuple[str, ...] | None = ()

    def hear(self, text: str) -> None:
        """Take what the agent said; empty lines do not count."""
        for line in text.splitlines():
            if line.strip():
                self._lines.append(line)
                self._size += len(line)
                self._told = None
        while self._size > _WINDOW and len(self._lines) > _SHOWN:
            self._size -= len(self._lines.popleft())

    def said(self) -> tuple[str, ...]:
        """Return the last lines, each cut to a width, without secrets."""
        if self._told is None:
            text = "\n".join(self._lines).encode(errors="replace")
            lines = redact(text, self._secrets).decode(errors="replace").splitlines()
            self._told = tuple(line.strip()[:_WIDTH] for line in lines[-_SHOWN:])
        return self._told


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
