"""Backend `codex`: runs Codex with `codex exec --json`.

Its isolation is no option: no configuration, rules, hooks, plugins, skills, instructions or MCP servers, neither the
project's nor the user's. It has no permissions by role that would hold without its own sandbox, which cannot run inside
ours: the box and the gate are what holds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pipeline.backends.codex_stream import read_stream
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

CODEX: Final = Native(
    name="codex",
    package="@openai/codex",
    inside="vendor/*/bin/codex",
    marker="codex-package.json",
    install="npm install -g @openai/codex",
    tested="0.169.0",
)
TESTED: Final = CODEX.tested
"""The version that this backend was tested with."""

PLACE: Final = Place(".codex", "sessions", "auth.json")
"""The folders of Codex below the home folder."""
_OFF: Final = (
    *("apps", "browser_use", "computer_use", "goals", "hooks", "image_generation", "memories", "multi_agent"),
    *("plugins", "remote_plugin", "shell_snapshot", "skill_search", "tool_suggest"),
)
"""Codex features switched off: they reach beyond the workspace, or load what others wrote."""
_SETTINGS: Final = (
    'approval_policy="never"',
    'web_search="disabled"',
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "project_doc_max_bytes=0",
    "skills.include_instructions=false",
    "skills.bundled.enabled=false",
    "tools.experimental_request_user_input.enabled=false",
    *(f"features.{name}=false" for name in _OFF),
)
_SERVICE: Final = f'name="redfirst",base_url="{MODEL_URL}/v1",wire_api="responses"'
# Without a key: the gateway adds the credential. Who to ask after some tries is decided outside.
_TRIES: Final = "request_max_retries=2,stream_max_retries=2"
_PROVIDER: Final = ('model_provider="redfirst"', f"model_providers.redfirst={{{_SERVICE},{_TRIES}}}")


def installed(search_path: str | None) -> Path | None:
    """Return the path of the program, None if it is not installed."""
    return CODEX.installed(search_path)


class CodexBackend:
    """Runs Codex once for each dispatch; a re-ask continues the conversation."""

    def require(self, agent: AgentConfig, search_path: str) -> None:
        """Check that the program is installed and may reach a model.

        Raises:
            UserError: it is not, or may not.
        """
        CODEX.require(agent, search_path)

    async def run(self, job: AgentJob) -> AgentResult:
        """Run one dispatch with Codex and return its result.

        Raises:
            UserError: the program or the login is not there.
            BoxError: the box did not work.
        """
        program = CODEX.program(job.argv, job.search_path)
        exchange = Exchange.open(job)
        home = home_for(PLACE, exchange)
        report = form(job.report_schema, strict=True)
        schema = job.exchange / "schema.json"
        schema.write_text(json.dumps(report.schema), encoding="utf-8")
        argv = program.argv(*_options(job, exchange.inside(schema), home))
        mounts = (*program.mounts, *home.mounts, exchange.shown(schema))
        goes_on = home.session if home.session is not None and home.session.id is not None else None
        prompt = goes_on.prompt if goes_on is not None else job.prompt
        # It makes the default folder itself, and refuses a named one that is not there.
        env = {"CODEX_HOME": str(home.path)} if home.made else {}
        ended = await exchange.run(argv, mounts, prompt.encode(), env, on_line=lines_to_words(job))
        facts = read_stream(
            ended.stdout,
            ended.stderr,
            report,
            model=job.model,
            resumed=goes_on is not None,
            keeps=home.session is not None,
        )
        again = without_lost_session(job, facts)
        return result_of(exchange, ended, facts) if again is None else await self.run(again)


def _options(job: AgentJob, schema: Path, home: Home) -> Iterator[str]:
    yield from ("exec", "--json", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check")
    # A sandbox inside the box cannot be set up, and every command would fail.
    yield from ("--sandbox", "danger-full-access", "--output-schema", str(schema))
    settings = [*_SETTINGS, *(_PROVIDER if job.network == "model" else ())]
    if job.effort is not None:
        settings.append(f'model_reasoning_effort="{job.effort}"')
    for setting in settings:
        yield from ("-c", setting)
    if job.model is not None:
        yield from ("--model", job.model)
    if home.session is None:
        yield "--ephemeral"
    elif home.session.id is not None:
        yield from ("resume", home.session.id)
    yield "-"
