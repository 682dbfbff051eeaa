"""Backend `claude`: runs Claude Code with `claude -p`.

Its isolation is no option: no settings, hooks, plugins, skills, agents, memories or MCP servers, neither the project's
nor the user's. Its own permissions follow the role, so that a model learns of a limit at once; the box and the gate are
what holds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pipeline.backends.claude_stream import read_stream
from pipeline.backends.homes import Place, home_for
from pipeline.backends.native_programs import Native
from pipeline.backends.program import Exchange
from pipeline.backends.report_schemas import form
from pipeline.backends.stream_result import lines_to_words, result_of, without_lost_session
from pipeline.process import MODEL_URL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.backends.homes import Home
    from pipeline.backends.protocol import AgentJob, AgentResult
    from pipeline.config.agents import AgentConfig

CLAUDE: Final = Native(
    name="claude",
    package="@anthropic-ai/claude-code",
    inside="claude",
    marker=None,
    install="npm install -g @anthropic-ai/claude-code",
    tested="2.1.197",
)
TESTED: Final = CLAUDE.tested
"""The version that this backend was tested with."""

PLACE: Final = Place(".claude", "projects", ".credentials.json")
"""The folders of Claude Code below the home folder."""
ISOLATED: Final = {
    "CLAUDE_CODE_SAFE_MODE": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    # Its own ten retries take minutes; who to ask next is decided outside.
    "CLAUDE_CODE_MAX_RETRIES": "3",
}
"""Variables that keep Claude Code from loading other settings; its ACP agent is the same program inside."""
_READ: Final = ("Read", "Grep", "Glob")
_WRITE: Final = ("Edit", "Write", "NotebookEdit")
_SHELL: Final = ("Bash",)
_NEVER: Final = ("WebFetch", "WebSearch", "Agent", "Task", "Skill")


def installed(search_path: str | None) -> Path | None:
    """Return the path of the program, None if it is not installed."""
    return CLAUDE.installed(search_path)


class ClaudeBackend:
    """Runs Claude Code once for each dispatch; a re-ask continues the conversation."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed and may reach a model.

        Raises:
            UserError: it is not, or may not.
        """
        CLAUDE.require(agent, search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with Claude Code and return its result.

        Raises:
            UserError: the program or the login is not there.
            BoxError: the box did not work.
        """
        program = CLAUDE.program(job.argv, job.search_path)
        exchange = Exchange.open(job)
        home = home_for(PLACE, exchange)
        report = form(job.report_schema, strict=False)
        argv = program.argv(*_options(job, home), "--json-schema", json.dumps(report.schema))
        mounts, prompt = (*program.mounts, *home.mounts), _prompt(job, home).encode()
        ended = await exchange.run(argv, mounts, prompt, _env(job, home), on_line=lines_to_words(job))
        facts = read_stream(ended.stdout, report, keeps=home.session is not None)
        again = without_lost_session(job, facts)
        return result_of(exchange, ended, facts) if again is None else await self.run(again)


def _prompt(job: AgentJob, home: Home) -> str:
    return home.session.prompt if home.session is not None and home.session.id is not None else job.prompt


def _env(job: AgentJob, home: Home) -> dict[str, str]:
    env = {**ISOLATED, "CLAUDE_CONFIG_DIR": str(home.path)}
    if job.network == "model":
        env |= {"ANTHROPIC_BASE_URL": MODEL_URL, "ANTHROPIC_API_KEY": "placeholder"}
    return env


def _options(job: AgentJob, home: Home) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--verbose")
    yield from ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
    granted = (*_READ, *(_WRITE if job.view.writable else ()), *(_SHELL if job.shell else ()))
    refused = (*_NEVER, *(() if job.view.writable else _WRITE), *(() if job.shell else _SHELL))
    yield from ("--tools", ",".join(granted), "--disallowedTools", ",".join(refused))
    if job.box.maps_paths:
        yield from ("--permission-mode", "bypassPermissions")
    else:  # as root it refuses the other mode where nothing isolates it
        yield from ("--permission-mode", "dontAsk", "--allowedTools", ",".join(granted))
    if job.model is not None:
        yield from ("--model", job.model)
    if job.effort is not None:
        yield from ("--effort", job.effort)
    if job.max_steps is not None:
        yield from ("--max-turns", str(job.max_steps))
    if home.session is None:
        yield "--no-session-persistence"
    elif home.session.id is not None:
        yield from ("--resume", home.session.id)
