"""Real agents on the issue of a real package, their model a script on loopback: how each is set up, what it plays."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
from agent_clis import cli
from e2e.test_third_party import prepare
from kit import HONEST
from model_service.script import Report, Use, conversation, edit, read, run, write
from model_service.service import ModelService

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from e2e.packages import Case
    from kit import Entry, Project
    from model_service.script import Conversation, Turn

KEY: Final = "the-users-own-key-0123456789"
MODEL: Final = "scripted-1"


@dataclass(frozen=True)
class Agent:
    """One agent as a user configures it, and the dialect of its model."""

    name: str
    api: str
    lines: str
    program: str | None = None

    def configuration(self, url: str, more: str = "") -> str:
        """Return a configuration in which every role is played by it, with its model at *url*."""
        argv = f"argv = {json.dumps([str(cli(self.program))])}\n" if self.program else ""
        return (
            f'{more}\n[agents]\n{self.lines}\n{argv}provider = "loop"\nmodel = "{MODEL}"\n'
            f'[providers.loop]\nurl = "{url}"\ncredential_env = "LOOP_KEY"\napi = ["{self.api}"]\n'
            f'[prices."{MODEL}"]\ninput = 3.0\noutput = 15.0\n'
        )


AGENTS: Final = (
    Agent("claude", "anthropic", 'backend = "claude"', "claude"),
    Agent("codex", "responses", 'backend = "codex"', "codex"),
    Agent("opencode", "chat", 'backend = "acp"\nprofile = "opencode"', "opencode"),
    Agent("gemini", "google", 'backend = "acp"\nprofile = "gemini"', "gemini"),
    Agent("claude-acp", "anthropic", 'backend = "acp"\nprofile = "claude"', "claude-agent-acp"),
    Agent("codex-acp", "responses", 'backend = "acp"\nprofile = "codex"', "codex-acp"),
    Agent("api-chat", "chat", 'backend = "api"'),
    Agent("api-anthropic", "anthropic", 'backend = "api"'),
    Agent("api-responses", "responses", 'backend = "api"'),
    Agent("api-google", "google", 'backend = "api"'),
)


def each(agents: Sequence[Agent], *always: str) -> list[Any]:
    """Return parameters for a test of every agent; those that are not named are broad (tests/conftest.py)."""
    return [
        pytest.param(agent, id=agent.name, marks=() if agent.name in always else pytest.mark.broad) for agent in agents
    ]


def conversations(case: Case, agent: Agent) -> list[Conversation]:
    """Return what the model says in a run without detours: look, change, run the tests, report."""
    said = [answer for answer in case.answers() if answer["when"].get("kind") != "plan-and-tasks"]  # of `quick`
    return [_conversation(case, answer, shell=not agent.name.startswith("api")) for answer in _each(said)]


def _each(answers: Sequence[Entry]) -> list[Entry]:
    """Return the answers, one for each dispatch: @check and @simplify are asked more than once."""
    kinds = {"check": ("review-plan", "review-result"), "simplify": ("review-plan", "review-result")}
    found: list[Entry] = []
    for answer in answers:
        role = answer["when"].get("role")
        found += [{**answer, "when": {"role": role, "kind": kind}} for kind in kinds[role]] if role else [answer]
    return found


def _conversation(case: Case, answer: Entry, *, shell: bool) -> Conversation:
    turns: list[Turn] = []
    for path, old, new in answer.get("edits", []):
        turns += [Use(read(path)), Use(edit(path, old, new))]
        if shell:
            turns.append(Use(run(f"python -m pytest -q {case.tests.path}")))
    turns.append(Report(answer["report"]))
    return conversation(*turns, **answer["when"])


@contextmanager
def playing(agent: Agent, script: Sequence[Conversation], project: Project, more: str = "") -> Generator[ModelService]:
    """Let *agent* play every role of *project*, its model answering from *script*."""
    with ModelService(script, secret=KEY) as service:
        project.env["LOOP_KEY"] = KEY
        project.configure(agent.configuration(service.url, more))
        yield service


def prepared(case: Case, cache: Path, place: Path) -> Project:
    """Return a repository of the package with the issue."""
    place.mkdir()
    return prepare(case, cache, place)


def commits(project: Project) -> list[tuple[str, str]]:
    """Return subject and tree of each commit of the run, the first one first; of the tracker's only the subject.

    The tracker's names the commits before it, whose trailers name the evidence, which holds times.
    """
    lines = project.git("log", "--reverse", "--grep=^Run-Id: run-GAL-1$", "--format=%T %s").splitlines()
    found = [(subject, tree) for tree, _, subject in (line.partition(" ") for line in lines)]
    return [(subject, "" if subject.startswith("chore(todo)") else tree) for subject, tree in found]


def results(project: Project) -> list[dict[str, Any]]:
    """Return every result.json of the run, in order."""
    found = sorted(project.run_folder().glob("dispatches/*/result.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in found]


def story(*, before: Sequence[Turn] = (), instead: dict[str, Sequence[Turn]] | None = None) -> list[Conversation]:
    """Return the kit's honest story as conversations.

    Args:
        before: Turns that come before everything else, in the first conversation.
        instead: Kind -> its turns instead of the honest ones.
    """
    found: list[Conversation] = []
    for number, entry in enumerate(HONEST):
        turns = list((instead or {}).get(entry["when"]["kind"], _honest(entry)))
        found.append(conversation(*(before if number == 0 else ()), *turns, **entry["when"]))
    return found


def _honest(entry: Entry) -> list[Turn]:
    turns: list[Turn] = []
    for path, content in entry.get("files", {}).items():
        turns += [Use(read(path)), Use(write(path, content))]
    return [*turns, Report(entry["report"])]
