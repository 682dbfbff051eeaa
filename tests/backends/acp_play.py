"""The scripted agent (`acp_agent.py`) at work: one dispatch, and what came of it in words for a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from backends.acp_stand import Stand
from backends.real_agents import COMPLETE

from pipeline.agents.backends.acp import AcpBackend
from pipeline.config.agents import Profile
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from pipeline.agents.backends.protocol import AgentJob, AgentResult
    from pipeline.sandbox.boxes.box import ProvableBox

AGENT = Path(__file__).with_name("acp_agent.py")
REPORT = json.dumps(COMPLETE)
DONE = ["say", f"All done.\n{REPORT}"]


def stand(folder: Path, box: ProvableBox | None = None, **more: Any) -> Stand:
    argv = (sys.executable, "-I", "-S", str(AGENT))
    return Stand(folder, box or NoBox(), Profile.CUSTOM, argv, **more)


def told(place: Stand, job: dict[str, Any], **said: Any) -> AgentJob:
    """Return a job for the scripted agent."""
    script = place.folder / "play.json"
    script.write_text(json.dumps(said), encoding="utf-8")
    shown = Mount(script, Path("/run/redfirst/play.json"))
    env = {"PLAY": str(place.box.inside(shown.source, shown.target)), **job.pop("env", {})}
    return place.job(env=env, read=(Mount(AGENT.parent, AGENT.parent), shown), **job)


def play(
    folder: Path, *turn: list[Any], box: ProvableBox | None = None, job: dict[str, Any] | None = None, **said: Any
) -> AgentResult:
    """Return how one dispatch to the scripted agent went."""
    return anyio.run(AcpBackend().run, told(stand(folder, box), {**(job or {})}, turn=turn, **said))


def lines(result: AgentResult) -> list[list[Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def spoken(result: AgentResult) -> str:
    return "".join(line[1] for line in lines(result) if line[0] == "message")
